// Tests that there is one function for a call, however people and drivers write it: with literals,
// with values of columns, with named arguments, and prepared with and without types.
#include "integration/postgres/harness.hpp"

namespace outbox::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kUuid = "0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1";

class PostgresSpellings : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (!IsSkipped()) connection_ = std::make_unique<Pg>(database_->url());
  }
  /// The key, the payload and the content type of the newest event.
  [[nodiscard]] PgRow newest() {
    return connection_
        ->exec(
            "SELECT aggregate_id, convert_from(payload, 'UTF8'), content_type FROM outbox.event ORDER BY seq DESC LIMIT 1")
        .at(0);
  }
  /// Prepares `call` with these types, and runs it with these values. Returns the error, or an
  /// empty text if both succeed.
  [[nodiscard]] std::string prepared(const std::string& types, const std::string& call,
                                     const std::string& values) {
    std::string trouble =
        find_complaint(*connection_, "PREPARE spelling" + types + " AS SELECT outbox." + call);
    if (!trouble.empty()) return trouble;
    trouble = find_complaint(*connection_, "EXECUTE spelling(" + values + ")");
    (void)connection_->exec("DEALLOCATE spelling");
    return trouble;
  }

  std::unique_ptr<Pg> connection_;
};

/// Each row is a way in which people and drivers write the call, and the key, payload and content
/// type of the event.
TEST_F(PostgresSpellings, every_usual_spelling_of_enqueue_resolves) {
  (void)connection_->exec(
      "CREATE TABLE orders (id bigint, uid uuid, name varchar(20), code char(3), total numeric, doc json, docb jsonb);"
      "CREATE TYPE mood AS ENUM ('fine'); CREATE DOMAIN order_no AS bigint; CREATE DOMAIN label AS text;"
      "INSERT INTO orders VALUES (42, '0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1', 'n1', 'abc', 12.5, '{ \"d\":1}', '{\"d\": 1}')");
  const std::string uid = kUuid;
  struct Spelling {
    const char* arguments;
    std::string key;
    std::string payload;
  };
  const std::vector<Spelling> spellings{
      {R"('order', '42', 'E', '{"a": 1}')", "42", R"({"a": 1})"},
      {R"('order', 42, 'E', '{"a": 1}')", "42", R"({"a": 1})"},
      {R"('order', 42::smallint, 'E', '{"a": 1}')", "42", R"({"a": 1})"},
      {R"('order', id, 'E', '{"a": 1}')", "42", R"({"a": 1})"},
      {R"('order', uid, 'E', '{"a": 1}')", uid, R"({"a": 1})"},
      {R"('order', total, 'E', '1')", "12.5", "1"},
      {R"('order', name, 'E', '1')", "n1", "1"},
      {R"('order', code, 'E', '1')", "abc", "1"},
      {R"('order', 42::order_no, 'E', '1')", "42", "1"},
      {R"('order', 'x'::label, 'E', '1')", "x", "1"},
      {R"('order', 'fine'::mood, 'E', '1')", "fine", "1"},
      {R"('order', date '2026-01-05', 'E', '1')", "2026-01-05", "1"},
      {R"('order', NULL, 'E', '1')", "", "1"},
      {R"('order', NULL::bigint, 'E', '1')", "", "1"},
      {R"('order', '', 'E', '1', NULL, NULL, NULL, NULL, NULL)", "", "1"},
      {R"('order', id, 'E', row_to_json(orders))", "42", ""},
      {R"('order', '42', 'E', row_to_json(orders))", "42", ""},
      {R"('order', id, 'E', to_jsonb(orders))", "42", ""},
      {R"('order', id, 'E', json_build_object('a', total))", "42", R"({"a" : 12.5})"},
      {R"('order', id, 'E', jsonb_build_object('a', total))", "42", R"({"a": 12.5})"},
      {R"('order', '42', 'E', jsonb_build_object('a', total))", "42", R"({"a": 12.5})"},
      {R"('order', id, 'E', doc)", "42", R"({ "d":1})"},
      {R"('order', '42', 'E', docb)", "42", R"({"d": 1})"},
      {R"('order', id, 'E', '{"a":  1}'::json)", "42", R"({"a":  1})"},
      {R"('order', id, 'E', '{"a":  1}'::jsonb)", "42", R"({"a": 1})"},
      {R"('order', '42', 'E', '{"a":  1}'::bytea)", "42", R"({"a":  1})"},
      {R"('order', id, 'E', '{"a":  1}'::bytea)", "42", R"({"a":  1})"},
      {R"('order', '42', 'E', ('"' || name || '"')::varchar)", "42", R"("n1")"},
      {R"('order', id::text, 'E', format('{"id": %s}', id))", "42", R"({"id": 42})"},
      {R"('order'::varchar, id, 'E'::varchar, doc::text)", "42", R"({ "d":1})"},
      {R"('order', id, 'E', '{}', jsonb_build_object('tenant', name))", "42", "{}"},
      {R"('order', id, 'E', '{}', '{"tenant": "a"}', gen_random_uuid())", "42", "{}"},
      {R"('order', id, 'E', '{}', lock_key => true, occurred_at => now())", "42", "{}"},
      {R"(aggregate_type => 'order', aggregate_id => '42', event_type => 'E', payload => '{}')",
       "42", "{}"},
      {R"(payload => doc, event_type => 'E', aggregate_id => id, aggregate_type => 'order')", "42",
       R"({ "d":1})"}};
  for (const Spelling& spelling : spellings) {
    const std::string sql =
        std::string("SELECT outbox.enqueue(") + spelling.arguments + ") FROM orders";
    ASSERT_EQ(find_complaint(*connection_, sql), "") << sql;
    EXPECT_EQ(newest()[0], spelling.key) << sql;
    EXPECT_EQ(newest()[2], "application/json") << sql;
    if (!spelling.payload.empty()) {
      EXPECT_EQ(newest()[1], spelling.payload) << sql;
    }
  }
}

/// Drivers prepare a call without types, with types of text, or with those of the program's values.
TEST_F(PostgresSpellings, every_prepared_spelling_of_enqueue_resolves) {
  const std::string uid = std::string("'") + kUuid + "'";
  for (const auto& [types, key] : std::vector<std::pair<std::string, std::string>>{
           {"", "'42'"},
           {"(unknown, unknown, unknown, unknown)", "'42'"},
           {"(text, text, text, text)", "'42'"},
           {"(varchar, varchar, varchar, varchar)", "'42'"},
           {"(varchar, int8, varchar, varchar)", "42"},
           {"(text, int4, text, jsonb)", "42"},
           {"(unknown, int2, unknown, json)", "42"},
           {"(varchar, uuid, varchar, unknown)", uid},
           {"(text, uuid, text, jsonb)", uid},
           {"(unknown, unknown, unknown, bytea)", "'42'"}}) {
    ASSERT_EQ(
        prepared(types, "enqueue($1, $2, $3, $4)", "'order', " + key + R"(, 'E', '{"a": 1}')"), "")
        << types;
    EXPECT_EQ(newest()[1], "{\"a\": 1}") << types;
  }
}

TEST_F(PostgresSpellings, enqueue_many_takes_json_as_any_type) {
  const std::string events =
      R"('[{"aggregate_type": "a", "aggregate_id": "1", "event_type": "E", "payload": {"a": 1}},
                                  {"aggregate_type": "a", "aggregate_id": "2", "event_type": "E", "payload": {"a":  2}}]')";
  std::vector<std::string> calls{events + ", NULL", "events => " + events,
                                 "lock_key => true, events => " + events};
  for (const char* type : {"", "::text", "::varchar", "::json", "::jsonb"}) {
    calls.push_back(events + type);
    calls.push_back(events + type + ", true");
  }
  for (const std::string& call : calls) {
    const auto ids = connection_->exec("SELECT outbox.enqueue_many(" + call + ")");
    ASSERT_EQ(ids.size(), 2U) << call;
    EXPECT_NE(ids[0][0], ids[1][0]) << call;
    EXPECT_THAT(newest(), ElementsAre("2", R"({"a": 2})", "application/json")) << call;
  }
  for (const char* type : {"", "(unknown)", "(text)", "(varchar)", "(json)", "(jsonb)"})
    EXPECT_EQ(prepared(type, "enqueue_many($1)", events), "") << type;
  for (const char* aggregate : {"json_agg(json_build_object(", "jsonb_agg(jsonb_build_object("}) {
    EXPECT_EQ(
        connection_
            ->exec(
                std::string("SELECT * FROM outbox.enqueue_many((SELECT ") + aggregate +
                "'aggregate_type', 'a', 'event_type', 'E', 'payload', g)) FROM generate_series(1, 3) g))")
            .size(),
        3U);
  }
  // All events are written, however many of the ids are read.
  const std::string count = value("SELECT count(*) FROM outbox.event");
  (void)connection_->exec("SELECT outbox.enqueue_many(" + events + ") LIMIT 1");
  EXPECT_EQ(value("SELECT count(*) - " + count + " FROM outbox.event"), "2");
}

TEST_F(PostgresSpellings, enqueue_many_refuses_what_is_no_array_as_any_type) {
  for (const char* type : {"", "::text", "::varchar", "::json", "::jsonb"}) {
    for (const char* events : {"'{}'", "NULL"})
      EXPECT_THAT(find_complaint(*connection_,
                                 std::string("SELECT outbox.enqueue_many(") + events + type + ")"),
                  HasSubstr("events: is not a JSON array"))
          << type;
  }
  EXPECT_EQ(find_sqlstate(*connection_, "SELECT outbox.enqueue_many('{bad')"), "22P02");
}

TEST_F(PostgresSpellings, the_key_of_a_task_is_of_any_scalar_type) {
  (void)connection_->exec("CREATE TYPE mood AS ENUM ('fine'); CREATE DOMAIN label AS text");
  const std::string uuid = kUuid;
  const std::vector<std::pair<std::string, std::string>> keys{
      {"", ""},
      {", 'k'", "k"},
      {", NULL", ""},
      {", 42", "42"},
      {", 42::smallint", "42"},
      {", 42::bigint", "42"},
      {", 12.5", "12.5"},
      {", '" + uuid + "'::uuid", uuid},
      {", 'k'::varchar", "k"},
      {", 'k'::char(1)", "k"},
      {", 'k'::label", "k"},
      {", 'fine'::mood", "fine"},
      {", NULL::bigint", ""},
      {", key => 42", "42"},
      {", key => 'k', priority => 3", "k"},
      {", key => 42, priority => 3::smallint, max_attempts => 5", "42"},
      {", 42, '{\"tenant\": \"a\"}', on_done => NULL", "42"},
      {", unique_key => 'u'", ""}};
  for (const char* type : {"", "::text", "::varchar", "::bytea", "::json", "::jsonb"}) {
    for (const auto& [arguments, key] : keys) {
      const std::string sql =
          std::string("SELECT outbox.enqueue_task('mail', 'send', '{}'") + type + arguments + ")";
      ASSERT_EQ(find_complaint(*connection_, sql), "") << sql;
      EXPECT_EQ(newest()[0], key) << sql;
      (void)connection_->exec("DELETE FROM outbox.task_unique");
    }
  }
  EXPECT_EQ(
      find_complaint(
          *connection_,
          "SELECT outbox.enqueue_task(payload => '{}', key => 42, type => 'send', queue => 'mail')"),
      "");
}

TEST_F(PostgresSpellings, every_prepared_spelling_of_enqueue_task_resolves) {
  const std::string uuid = std::string("'") + kUuid + "'";
  for (const auto& [types, key] : std::vector<std::pair<std::string, std::string>>{
           {"", "'42'"},
           {"(unknown, unknown, unknown, unknown)", "'42'"},
           {"(text, text, text, text)", "'42'"},
           {"(varchar, varchar, varchar, varchar)", "'42'"},
           {"(varchar, varchar, varchar, int8)", "42"},
           {"(text, text, jsonb, int4)", "42"},
           {"(unknown, unknown, json, uuid)", uuid},
           {"(unknown, unknown, unknown, numeric)", "12.5"},
           {"(varchar, varchar, bytea, unknown)", "'42'"}}) {
    const std::string values = "'mail', 'send', '{}', " + key;
    EXPECT_EQ(prepared(types, "enqueue_task($1, $2, $3, $4)", values), "") << types;
    EXPECT_EQ(prepared(types, "enqueue_task($1, $2, $3, key => $4)", values), "") << types;
    EXPECT_EQ(prepared(types, "enqueue_task($1, $2, $3, key => $4, priority => 1)", values), "")
        << types;
  }
  EXPECT_EQ(prepared("", "enqueue_task($1, $2, $3)", "'mail', 'send', '{}'"), "");
  EXPECT_EQ(prepared("", "enqueue_task($1, $2, $3, unique_key => $4)", "'mail', 'send', '{}', 'u'"),
            "");
}

TEST_F(PostgresSpellings, a_message_has_an_id_of_any_scalar_type) {
  const std::string uuid = std::string("'") + kUuid + "'";
  // The text is the id, whatever its type.
  for (const std::string id :
       {"'42'", "42", "42::smallint", "42::bigint", "42::numeric", "'42'::text", "'42'::varchar"}) {
    const bool first = id == "'42'";
    EXPECT_EQ(connection_->value("SELECT outbox.receive('billing', " + id + ")"), first ? "t" : "f")
        << id;
  }
  for (const std::string& id : {uuid + "::uuid", uuid, uuid + "::varchar"}) {
    const bool first = id == uuid + "::uuid";
    EXPECT_EQ(connection_->value("SELECT outbox.receive('billing'::varchar, " + id + ")"),
              first ? "t" : "f")
        << id;
  }
  EXPECT_EQ(connection_->value("SELECT outbox.receive(message_id => 43, consumer => 'billing')"),
            "t");
  for (const char* id : {"NULL", "NULL::text", "NULL::bigint"})
    EXPECT_THAT(
        find_complaint(*connection_, std::string("SELECT outbox.receive('billing', ") + id + ")"),
        HasSubstr("message_id: is null"));
  for (const auto& [types, id] :
       std::vector<std::pair<std::string, std::string>>{{"", "'1'"},
                                                        {"(unknown, unknown)", "'1'"},
                                                        {"(text, text)", "'1'"},
                                                        {"(varchar, varchar)", "'1'"},
                                                        {"(varchar, int8)", "1"},
                                                        {"(unknown, int4)", "1"},
                                                        {"(text, numeric)", "1"},
                                                        {"(text, uuid)", uuid}})
    EXPECT_EQ(prepared(types, "receive($1, $2)", "'other', " + id), "") << types;
}

TEST_F(PostgresSpellings, settings_of_the_session_do_not_make_another_message) {
  const char* const settings =
      "SET datestyle = 'SQL, DMY'; SET timezone = 'Asia/Tokyo'; SET bytea_output = 'escape'; SET extra_float_digits = -5; "
      "SET intervalstyle = 'iso_8601'";
  for (const char* id : {"timestamptz '2026-01-05 08:09:12Z'", "date '2026-01-05'",
                         "'\\x00ff'::bytea", "0.1::float8 + 0.2", "interval '1 day'"}) {
    const std::string receive = std::string("SELECT outbox.receive('billing', ") + id + ")";
    EXPECT_EQ(connect().value(receive), "t") << id;
    Pg other = connect();
    (void)other.exec(settings);
    EXPECT_EQ(other.value(receive), "f") << id;
  }
}

}  // namespace
}  // namespace outbox::test
