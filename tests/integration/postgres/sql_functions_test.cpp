// Tests the functions and the view for programs in any language.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "integration/postgres/harness.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PostgresSql : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (!IsSkipped()) connection_ = std::make_unique<Pg>(database_->url());
  }
  /// The newest event as text.
  [[nodiscard]] PgRow newest() {
    return connection_
        ->exec(
            "SELECT aggregate_type, aggregate_id, event_type, convert_from(payload, 'UTF8'), content_type, headers "
            "FROM outbox.event ORDER BY seq DESC LIMIT 1")
        .at(0);
  }
  [[nodiscard]] std::string complaint(const std::string& sql) {
    return find_complaint(*connection_, "SELECT outbox." + sql);
  }

  std::unique_ptr<Pg> connection_;
};

// Every payload is JSON unless it has another content type, as it is on SQLite and the command
// line.
TEST_F(PostgresSql, an_untyped_literal_is_json_byte_for_byte_or_refused) {
  (void)connection_->exec(R"(SELECT outbox.enqueue('order', '42', 'OrderPlaced', '{"a":  1}'))");
  EXPECT_THAT(newest(),
              ElementsAre("order", "42", "OrderPlaced", R"({"a":  1})", "application/json", "{}"));
  for (const char* payload : {"hello", "{bad", "[not json", "", "{\"a\": 1}}"}) {
    EXPECT_THAT(complaint(std::string("enqueue('a', 'b', 'c', '") + payload + "')"),
                HasSubstr("payload: is not JSON"));
    EXPECT_EQ(complaint(std::string("enqueue('a', 'b', 'c', '") + payload +
                        "', content_type => 'text/plain')"),
              "");
    EXPECT_EQ(newest()[3], payload);
    EXPECT_EQ(newest()[4], "text/plain");
  }
  (void)connection_->exec("SELECT outbox.enqueue('a', 'b', 'c', '{bad', content_type => '')");
  EXPECT_THAT(newest(), ElementsAre("a", "b", "c", "{bad", std::nullopt, "{}"));
}

TEST_F(PostgresSql, it_may_have_happened_before_it_was_enqueued) {
  const std::string then = "2001-02-03 04:05:06.789012+00";
  (void)connection_->exec(
      "SET TimeZone = 'Asia/Tokyo';"
      "SELECT outbox.enqueue('a', 'k', 'E', '1', occurred_at => '2001-02-03 05:05:06.789012+01');"
      "SELECT outbox.enqueue('a', 1, 'E', '1'::jsonb, NULL, NULL, 'text/plain', NULL, '2001-02-03 04:05:06.789012Z');"
      "SELECT outbox.enqueue_many('[{\"aggregate_type\": \"a\", \"event_type\": \"E\", \"payload\": 1, "
      "\"occurred_at\": \"2001-02-03T05:05:06.789012+01:00\"}]');"
      "INSERT INTO outbox.new_event (aggregate_type, event_type, payload, occurred_at) "
      "VALUES ('a', 'E', '1', '2001-02-03 04:05:06.789012+00')");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event WHERE occurred_at = '" + then +
                  "' AND created_at > now() - interval '1 hour'"),
            "4");
  (void)connection_->exec("SELECT outbox.enqueue('a', 'k', 'E', '1')");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event WHERE occurred_at IS NULL"), "1");
  for (const char* never : {"infinity", "-infinity", "0044-03-15 BC", "12000-01-01"}) {
    EXPECT_THAT(
        complaint(std::string("enqueue('a', 'k', 'E', '1', occurred_at => '") + never + "')"),
        HasSubstr("occurred_at: lies outside the years 1 to 9999"));
    EXPECT_EQ(
        find_sqlstate(
            *connection_,
            std::string(
                "INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, "
                "headers, occurred_at) VALUES (gen_random_uuid(), 'a', 'k', 'E', 'x', '{}', '") +
                never + "')"),
        "22023");
  }
  for (const char* no_time :
       {"now", "yesterday", "2001-02-03", "2001-02-03T04:05:06", "2001-02-30T04:05:06Z",
        "2001-13-03T04:05:06Z", "2001-02-03T24:05:06Z"}) {
    EXPECT_THAT(
        complaint(std::string("enqueue_many('[{\"aggregate_type\": \"a\", \"event_type\": \"E\", "
                              "\"payload\": 1, \"occurred_at\": \"") +
                  no_time + "\"}]')"),
        HasSubstr("event 0: occurred_at: is not a time"));
  }
}

TEST_F(PostgresSql, jsonb_bytea_and_named_arguments) {
  (void)connection_->exec(
      R"(SELECT outbox.enqueue('order', NULL, 'A', '{"a": 1}'::jsonb, '{"k": "v"}'))");
  EXPECT_THAT(newest(),
              ElementsAre("order", "", "A", R"({"a": 1})", "application/json", R"({"k": "v"})"));
  (void)connection_->exec(
      "SELECT outbox.enqueue('order', '1', 'B', '\\x68c3bc'::bytea, content_type => 'text/plain')");
  EXPECT_THAT(newest(), ElementsAre("order", "1", "B", "h\xC3\xBC", "text/plain", "{}"));
  EXPECT_EQ(
      connection_->value(
          "SELECT outbox.enqueue('order', '1', 'C', '1', id => '0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1')"),
      "0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1");
}

TEST_F(PostgresSql, parameters_without_a_type_resolve) {
  (void)connection_->exec("SELECT outbox.enqueue($1, $2, $3, $4)",
                          {"order", "42", "OrderPlaced", R"({"a": 1})"});
  EXPECT_THAT(newest(),
              ElementsAre("order", "42", "OrderPlaced", R"({"a": 1})", "application/json", "{}"));
}

TEST_F(PostgresSql, new_ids_are_uuids_of_version_7_of_now) {
  const std::string id = connection_->value("SELECT outbox.enqueue('a', 'b', 'c', '{}')");
  EXPECT_EQ(id[14], '7');
  EXPECT_THAT(std::string("89ab"), HasSubstr(std::string(1, id[19])));
  EXPECT_EQ(
      connection_->value(
          "SELECT abs(('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint "
          "- extract(epoch FROM clock_timestamp()) * 1000) < 60000 FROM outbox.event"),
      "t");
}

TEST_F(PostgresSql, refuses_with_the_fields_name) {
  EXPECT_THAT(complaint("enqueue(' ', 'b', 'c', 'd')"), HasSubstr("aggregate_type: is blank"));
  EXPECT_THAT(complaint("enqueue('', 'b', 'c', 'd')"), HasSubstr("aggregate_type: is empty"));
  EXPECT_THAT(complaint("enqueue('a', E'b\\n', 'c', 'd')"),
              HasSubstr("aggregate_id: contains a control character"));
  EXPECT_THAT(complaint("enqueue('a', 'b', repeat('c', 256), 'd')"),
              HasSubstr("event_type: is 256 bytes long"));
  EXPECT_THAT(complaint("enqueue('a', 'b', NULL, 'd')"), HasSubstr("event_type: is null"));
  EXPECT_THAT(complaint("enqueue('a', 'b', 'c', NULL::jsonb)"), HasSubstr("payload: is null"));
  EXPECT_THAT(complaint("enqueue('a', 'b', 'c', repeat('d', 1048577))"),
              HasSubstr("payload: is 1048577 bytes"));
  EXPECT_THAT(complaint("enqueue('a', 'b', 'c', '{', content_type => 'application/json')"),
              HasSubstr("payload: is not JSON"));
  EXPECT_THAT(complaint("enqueue('a', 'b', 'c', '\\xff'::bytea, content_type => 'a/x+JSON; v=1')"),
              HasSubstr("payload: is not JSON"));
  EXPECT_THAT(complaint("enqueue('a', 'b', 'c', 'd', content_type => 'text')"),
              HasSubstr("content_type: is not a media type"));
  EXPECT_THAT(complaint(R"(enqueue('a', 'b', 'c', 'd', '{"x y": "1"}'))"),
              HasSubstr("headers: 'x y' is not a header name"));
  EXPECT_THAT(complaint(R"(enqueue('a', 'b', 'c', 'd', '{"x": 1}'))"),
              HasSubstr("headers: the value of 'x' is not a string"));
  EXPECT_THAT(complaint(R"(enqueue('a', 'b', 'c', 'd', '{"x": "1", "X": "1"}'))"),
              HasSubstr("is given twice"));
  EXPECT_THAT(complaint(R"(enqueue('a', 'b', 'c', 'd', '{"Outbox-Seq": "1"}'))"),
              HasSubstr("is reserved"));
  EXPECT_THAT(complaint(R"(enqueue('a', 'b', 'c', '{}', '{"outbox_seq": "1"}'))"),
              HasSubstr("is reserved"));
  EXPECT_THAT(complaint(R"(enqueue('a', 'b', 'c', '{}', '{"content_type": "text/plain"}'))"),
              HasSubstr("content-type is set twice"));
  EXPECT_THAT(complaint(R"(enqueue('a', 'b', 'c', 'd', '{"x": "1\n2"}'))"),
              HasSubstr("contains a line break"));
  EXPECT_THAT(complaint(R"(enqueue('a', 'b', 'c', '{}', '{"content-type": "text/plain"}'))"),
              HasSubstr("content-type is set twice"));
  EXPECT_THAT(complaint("enqueue('a', 'b', 'c', '{}', jsonb_build_object(repeat('x', 256), '1'))"),
              HasSubstr("a header name is longer than 255 bytes"));
  EXPECT_THAT(
      complaint("enqueue('a', 'b', 'c', '{}', jsonb_build_object('x', repeat('x', 65536)))"),
      HasSubstr("headers: all names and values together is 65537 bytes"));
  EXPECT_EQ(find_sqlstate(*connection_, "SELECT outbox.enqueue(' ', 'b', 'c', 'd')"), "22023");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event"), "0");
}

TEST_F(PostgresSql, a_refusal_leaves_the_transaction_usable_behind_a_savepoint) {
  (void)connection_->exec("BEGIN; SAVEPOINT s");
  EXPECT_THAT(complaint("enqueue(' ', 'b', 'c', 'd')"), HasSubstr("is blank"));
  (void)connection_->exec("ROLLBACK TO SAVEPOINT s");
  (void)connection_->exec("SELECT outbox.enqueue('a', 'b', 'c', '{}')");
  (void)connection_->exec("COMMIT");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event"), "1");
}

TEST_F(PostgresSql, the_payload_limit_is_a_setting) {
  (void)connection_->exec("SET outbox.payload_limit = '10'");
  EXPECT_THAT(complaint("enqueue('a', 'b', 'c', '12345678901')"),
              HasSubstr("at most 10 are allowed"));
  (void)connection_->exec("SET outbox.payload_limit = '3000000'");
  EXPECT_EQ(complaint("enqueue('a', 'b', 'c', to_json(repeat('x', 2000000)))"), "");
}

TEST_F(PostgresSql, many_keep_their_order) {
  const auto ids = connection_->exec(R"(SELECT outbox.enqueue_many('[
    {"aggregate_type": "order", "aggregate_id": "1", "event_type": "A", "payload": {"x": 1}},
    {"aggregate_type": "order", "event_type": "B", "payload": "text", "headers": {"k": "v"}, "content_type": "text/plain"},
    {"aggregate_type": "order", "aggregate_id": null, "event_type": "C", "payload_base64": "aMO8", "content_type": "text/plain"},
    {"aggregate_type": "order", "aggregate_id": "1", "event_type": "D", "payload": null,
     "id": "0190A1B2-C3D4-7E5F-8A6B-7C8D9EAFB0C1", "lock_key": true}]', true))");
  ASSERT_EQ(ids.size(), 4U);
  const auto rows = connection_->exec(
      "SELECT id, event_type, convert_from(payload, 'UTF8'), content_type, headers FROM outbox.event ORDER BY seq");
  EXPECT_THAT(rows[0], ElementsAre(ids[0][0], "A", R"({"x": 1})", "application/json", "{}"));
  EXPECT_THAT(rows[1], ElementsAre(ids[1][0], "B", "text", "text/plain", R"({"k": "v"})"));
  EXPECT_THAT(rows[2], ElementsAre(ids[2][0], "C", "h\xC3\xBC", "text/plain", "{}"));
  EXPECT_THAT(rows[3], ElementsAre("0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1", "D", "null",
                                   "application/json", "{}"));
}

TEST_F(PostgresSql, of_many_all_or_none) {
  const std::string good = R"({"aggregate_type": "a", "event_type": "E", "payload": 1})";
  const auto refused = [&](const std::string& bad) {
    return complaint("enqueue_many('[" + good + ", " + bad + "]')");
  };
  EXPECT_THAT(refused("1"), HasSubstr("event 1: is not a JSON object"));
  EXPECT_THAT(refused(R"({"aggregate_type": "a", "event_type": "E"})"),
              HasSubstr("event 1: payload: is missing"));
  EXPECT_THAT(refused(R"({"aggregate_type": "a", "payload": 1})"),
              HasSubstr("event 1: event_type: is null"));
  EXPECT_THAT(refused(R"({"aggregate_type": "a", "event_type": "E", "payload": 1, "typo": 1})"),
              HasSubstr("event 1: 'typo': unknown member"));
  EXPECT_THAT(refused(R"({"aggregate_type": 5, "event_type": "E", "payload": 1})"),
              HasSubstr("is not a string"));
  EXPECT_THAT(refused(R"({"aggregate_type": "a", "event_type": "E", "payload": 1, "id": "x"})"),
              HasSubstr("id: is not a UUID"));
  EXPECT_THAT(refused(R"({"aggregate_type": "a", "event_type": "E", "payload_base64": "!"})"),
              HasSubstr("is not base64"));
  EXPECT_THAT(complaint("enqueue_many('{}')"), HasSubstr("is not a JSON array"));
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event"), "0");
}

TEST_F(PostgresSql, what_is_nested_too_deeply_for_the_server_is_not_json) {
  for (const char* type : {"NULL", "'application/json'", "'a/x+json'"}) {
    EXPECT_THAT(
        complaint(std::string("enqueue('a', 'b', 'c', repeat('[', 100000), content_type => ") +
                  type + ")"),
        HasSubstr("payload: is not JSON"));
  }
}

// The rule is the same everywhere. The type jsonb refuses such text by itself, and the type json
// does not.
TEST_F(PostgresSql, half_of_a_surrogate_pair_is_not_json) {
  for (const char* half :
       {R"("\ud83d")", R"("\uDE00")", R"({"\uD83d": 1})", R"(["\ud83d\ud83d\ude00"])",
        R"("\\\ud83d")", R"("\ud83dx\ude00")", R"("\ud83d\\\ude00")", R"("\u0000\ude00")"}) {
    for (const char* type : {"", "::json"}) {
      EXPECT_THAT(complaint(std::string("enqueue('a', 'b', 'c', '") + half + "'" + type + ")"),
                  HasSubstr("payload: is not JSON"))
          << half << type;
    }
    EXPECT_THAT(
        complaint(std::string("enqueue('a', 'b', 'c', convert_to('") + half + "', 'UTF8'))"),
        HasSubstr("payload: is not JSON"));
    EXPECT_THAT(complaint(std::string("enqueue('a', 'b', 'c', convert_to('") + half +
                          "', 'UTF8'), content_type => 'a/x+json')"),
                HasSubstr("payload: is not JSON"));
    EXPECT_NE(complaint(std::string("enqueue('a', 'b', 'c', '") + half + "'::jsonb)"), "");
    EXPECT_EQ(complaint(std::string("enqueue('a', 'b', 'c', '") + half +
                        "', content_type => 'text/plain')"),
              "");
  }
  for (const char* whole : {R"("\ud83d\ude00")", R"("\\ud83d")", R"("\u005cud83d")",
                            R"(["\uD83D\uDE00\\", "\u00fc"])"}) {
    for (const char* type : {"", "::json"}) {
      EXPECT_EQ(complaint(std::string("enqueue('a', 'b', 'c', '") + whole + "'" + type + ")"), "");
      EXPECT_EQ(newest()[3], whole);
    }
  }
}

TEST_F(PostgresSql, base64_may_be_broken_into_lines_as_encode_does) {
  (void)connection_->exec(
      "SELECT outbox.enqueue_many(jsonb_build_array(jsonb_build_object('aggregate_type', 'a', 'event_type', 'E', "
      "'content_type', 'text/plain', "
      "'payload_base64', E' ' || encode(repeat('x', 200)::bytea, 'base64') || E'\\r\\n\\t')))");
  EXPECT_EQ(newest()[3], std::string(200, 'x'));
}

TEST_F(PostgresSql, the_view_takes_plain_inserts_and_returns_ids) {
  const auto rows = connection_->exec(
      "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) "
      R"(VALUES ('order', '1', 'A', '{"a": 1}'), ('order', '2', 'B', '[]') RETURNING id, content_type)");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(*rows[0][0], value("SELECT id FROM outbox.event WHERE aggregate_id = '1'"));
  EXPECT_THAT(newest(), ElementsAre("order", "2", "B", "[]", "application/json", "{}"));
  EXPECT_THAT(
      find_complaint(
          *connection_,
          "INSERT INTO outbox.new_event (aggregate_type, event_type, payload) VALUES (' ', 'A', '1')"),
      HasSubstr("aggregate_type: is blank"));
}

TEST_F(PostgresSql, from_psql_in_the_callers_transaction) {
  OUTBOX_NEEDS_PGBIN();
  const TempDir folder;
  const std::string script = folder.file("script.sql");
  std::ofstream(script)
      << "BEGIN;\nCREATE TABLE orders (id int);\nINSERT INTO orders VALUES (42);\n"
         "SELECT outbox.enqueue('order', '42', 'OrderPlaced', '{\"total\": 12.5}');\nCOMMIT;\n"
         "BEGIN;\nSELECT outbox.enqueue('order', '43', 'OrderPlaced', '{}');\nROLLBACK;\n"
         "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload)\n"
         "VALUES ('order', '44', 'OrderPlaced', '{\"total\": 1}') RETURNING id;\n";
  ChildProcess psql({.command = {*environment("OUTBOX_TEST_PGBIN") + "/psql", "-X", "-v",
                                 "ON_ERROR_STOP=1", "-f", script, database_->url()},
                     .output = folder.file("output")});
  ASSERT_EQ(psql.wait(), 0);
  EXPECT_EQ(value("SELECT string_agg(aggregate_id, ',' ORDER BY seq) FROM outbox.event"), "42,44");
}

TEST_F(PostgresSql, equal_keys_share_a_lane_and_events_without_key_spread) {
  (void)connection_->exec(
      "SELECT outbox.enqueue('order', i % 7, 'E', '1') FROM generate_series(1, 700) i");
  EXPECT_EQ(
      value(
          "SELECT max(n) FROM (SELECT count(DISTINCT lane) n FROM outbox.event GROUP BY aggregate_id) s"),
      "1");
  (void)connection_->exec("TRUNCATE outbox.event");
  (void)connection_->exec(
      "SELECT outbox.enqueue('order', '', 'E', '1') FROM generate_series(1, 2000) i");
  EXPECT_EQ(value("SELECT count(DISTINCT lane) FROM outbox.event"), "64");
  // The lane of a key must never change, because cursors are per lane.
  EXPECT_EQ(value("SELECT outbox.lane_of('order', '42', gen_random_uuid())"), "24");
  EXPECT_EQ(value("SELECT outbox.lane_of('order', '', '9563fa12-b3b5-4ab7-9b3c-1c64e1d2e1a5')"),
            "39");
}

TEST_F(PostgresSql, the_lane_does_not_depend_on_the_search_path) {
  (void)connection_->exec(
      "CREATE SCHEMA evil; CREATE FUNCTION evil.band(bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT 77::bigint';"
      "CREATE OPERATOR evil.& (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.band);"
      "CREATE FUNCTION evil.texteq(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
      "CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.texteq);"
      "SET search_path = evil, pg_catalog");
  EXPECT_EQ(connection_->value("SELECT outbox.lane_of('order', '42', gen_random_uuid())"), "24");
  (void)connection_->exec(
      "INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, headers) "
      "VALUES (gen_random_uuid(), 'order', '42', 'E', 'x', '{}')");
  EXPECT_EQ(value("SELECT lane FROM outbox.event"), "24");
}

TEST_F(PostgresSql, every_way_in_gives_the_lane) {
  const std::string id = "9563fa12-b3b5-4ab7-9b3c-1c64e1d2e1a5";
  (void)connection_->exec(
      "SELECT outbox.enqueue('order', key, 'E', '1', id => '" + id +
      "') FROM (VALUES ('42'), ('')) k(key);"
      "SELECT outbox.enqueue_many(jsonb_build_array("
      "  jsonb_build_object('aggregate_type', 'order', 'aggregate_id', '42', 'event_type', 'E', 'payload', 1),"
      "  jsonb_build_object('aggregate_type', 'order', 'event_type', 'E', 'payload', 1, 'id', '" +
      id +
      "')));"
      "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload, id) "
      "VALUES ('order', '42', 'E', '1', DEFAULT), ('order', '', 'E', '1', '" +
      id + "')");
  EXPECT_EQ(value("SELECT string_agg(lane::text, ',' ORDER BY seq) FROM outbox.event"),
            "24,39,24,39,24,39");
}

// The library and the functions check first, with readable errors; these limits hold for writers
// that bypass them.
TEST_F(PostgresSql, the_way_into_the_log_keeps_the_outermost_limits) {
  const auto refused = [&](const std::string& type, const std::string& key, const std::string& name,
                           const std::string& payload, const std::string& medium) {
    return find_sqlstate(
        *connection_,
        "INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, "
        "content_type, headers) VALUES (gen_random_uuid(), " +
            type + ", " + key + ", " + name + ", " + payload + ", " + medium + ", '{}')");
  };
  const std::string longest = "repeat('x', 255)";
  const std::string longer = "repeat('x', 256)";
  EXPECT_EQ(refused(longest, longest, longest, "'x'", longest), "");
  for (const std::string& bad : {longer, std::string("''"), std::string("NULL")}) {
    EXPECT_EQ(refused(bad, "'k'", "'E'", "'x'", "NULL"), "22023") << bad;
    EXPECT_EQ(refused("'a'", "'k'", bad, "'x'", "NULL"), "22023") << bad;
  }
  EXPECT_EQ(refused("'a'", longer, "'E'", "'x'", "NULL"), "22023");
  EXPECT_EQ(refused("'a'", "NULL", "'E'", "'x'", "NULL"), "22023");
  EXPECT_EQ(refused("'a'", "'k'", "'E'", "'x'", longer), "22023");
  EXPECT_EQ(refused("'a'", "'k'", "'E'", "NULL", "NULL"), "22023");
  EXPECT_EQ(refused("'a'", "'k'", "'E'", "convert_to(repeat('x', 67108865), 'UTF8')", "NULL"),
            "22023");
  const auto with_headers = [&](const std::string& headers) {
    return find_complaint(
        *connection_,
        "INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, headers) "
        "VALUES (gen_random_uuid(), 'a', 'k', 'E', 'x', " +
            headers + ")");
  };
  // The JSON text {"a": "..."} is 9 bytes longer than the value.
  EXPECT_THAT(with_headers("jsonb_build_object('a', repeat('x', 1048568))"),
              HasSubstr("headers: is 1048577 bytes, at most 1048576 are allowed"));
  EXPECT_THAT(with_headers("NULL"), HasSubstr("headers: is null"));
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event"), "1");
}

TEST_F(PostgresSql, the_way_into_the_log_computes_each_value_once) {
  (void)connection_->exec("CREATE SEQUENCE numbers");
  const std::string insert =
      "INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, headers) VALUES ";
  const std::string one =
      "(gen_random_uuid(), 'order', nextval('numbers')::text, 'E', nextval('numbers')::text::bytea, '{}')";
  (void)connection_->exec(insert + one);
  (void)connection_->exec(insert + one + ", " + one);
  EXPECT_EQ(
      value(
          "SELECT string_agg(aggregate_id || ':' || convert_from(payload, 'UTF8'), ' ' ORDER BY seq) "
          "FROM outbox.event"),
      "1:2 3:4 5:6");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event "
                  "WHERE lane <> outbox.lane_of(aggregate_type, aggregate_id, id)"),
            "0");
  // The value that is checked is the value that is written.
  EXPECT_EQ(
      find_sqlstate(
          *connection_,
          "INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, headers) "
          "VALUES (gen_random_uuid(), CASE nextval('numbers') % 2 WHEN 0 THEN '' ELSE 'a' END, "
          "'k', 'E', 'x', '{}')"),
      "");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event WHERE aggregate_type = ''"), "0");
}

// For every operator and every function that the outbox names, plants an object that fits better
// than the server's own and precedes it in the search path of the enqueueing user.
constexpr const char* kPlanted = R"(
CREATE DOMAIN public.text AS pg_catalog.int4;
CREATE DOMAIN public.json AS pg_catalog.int4;
CREATE DOMAIN public.bool AS pg_catalog.int4;
SET search_path = pg_catalog;
DO $$
DECLARE
  types  regtype[] := ARRAY['text', 'bytea', 'name', 'integer', 'bigint', 'smallint', 'boolean', 'json', 'jsonb', 'uuid',
                            'timestamptz', 'xid8', 'double precision', 'numeric', 'text[]'];
  ours   text := (SELECT string_agg(pg_get_functiondef(oid), ' ') FROM pg_proc WHERE pronamespace = 'outbox'::regnamespace);
  it     record;
BEGIN
  FOR it IN SELECT oid, oprname AS name, oprleft::regtype AS l, oprright::regtype AS r, oprresult::regtype AS result
            FROM pg_operator WHERE oprkind = 'b' AND oprleft = ANY (types) AND oprright = ANY (types) LOOP
    EXECUTE format('CREATE FUNCTION public.planted_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', it.oid, it.l, it.r,
                   it.result, format('BEGIN RAISE EXCEPTION USING MESSAGE = %L; END',
                                         format('planted operator %s (%s, %s)', it.name, it.l, it.r)));
    EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.planted_%s)', it.name, it.l,
                   it.r, it.oid);
  END LOOP;
  FOR it IN SELECT proname AS name, oidvectortypes(proargtypes) AS arguments, prorettype::regtype AS result FROM pg_proc
            WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND NOT proretset
              AND proargtypes::oid[] <@ types::oid[] AND prorettype = ANY (types)
              AND strpos(ours, proname || '(') > 0 LOOP
    EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', it.name, it.arguments, it.result,
                   format('BEGIN RAISE EXCEPTION USING MESSAGE = %L; END', format('planted function %s(%s)', it.name, it.arguments)));
  END LOOP;
END
$$;
SET search_path = public, pg_catalog;
)";

TEST_F(PostgresSql, nothing_planted_in_the_callers_search_path_is_called) {
  (void)connection_->exec(kPlanted);
  ASSERT_THAT(find_complaint(*connection_, "SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text"),
              HasSubstr("planted operator = (text, text)"));
  ASSERT_THAT(find_complaint(*connection_, "SELECT octet_length('a'::pg_catalog.text)"),
              HasSubstr("planted function octet_length(text)"));
  ASSERT_THAT(find_complaint(*connection_, "SELECT gen_random_uuid()"),
              HasSubstr("planted function"));
  const std::string rest = ", 'E', '{}'";
  int written = 0;
  for (const std::string key : {"'k'", "42"}) {
    for (const std::string payload : {"'\"s\"'", "'\"s\"'::pg_catalog.json",
                                      "'\"s\"'::pg_catalog.jsonb", "'\"s\"'::pg_catalog.bytea"}) {
      for (
          const std::string more :
          {"", ", '{\"tenant\": \"a\"}'", ", '{\"Tenant\": \"a\"}', lock_key => true",
           ", content_type => 'text/plain'",
           ", occurred_at => '2001-02-03 04:05:06+00', id => '0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1'"}) {
        ++written;
        const std::string sql =
            "SELECT outbox.enqueue('order', " + key + ", 'E', " + payload + more + ")";
        EXPECT_EQ(find_complaint(*connection_, sql), "") << sql;
      }
      const std::string bad = "SELECT outbox.enqueue('order', " + key + ", ' ', " + payload + ")";
      EXPECT_THAT(find_complaint(*connection_, bad), HasSubstr("event_type: is blank")) << bad;
    }
  }
  for (
      const char* sql :
      {R"(INSERT INTO outbox.new_event (aggregate_type, event_type, payload) VALUES ('a', 'E', '1') RETURNING id)",
       R"(INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload, headers, content_type)
           VALUES ('a', 'k', 'E', '"s"', '{"Tenant": "a"}', 'text/plain'))",
       R"(SELECT outbox.enqueue_many('[{"aggregate_type": "a", "aggregate_id": "1", "event_type": "E", "payload": "s",
           "occurred_at": "2001-02-03T04:05:06Z", "headers": {"a": "b"}}]', true))",
       R"(SELECT outbox.enqueue_many('[{"aggregate_type": "a", "event_type": "E", "payload_base64": "aMO8",
           "content_type": "text/plain"}]'))",
       R"(SELECT outbox.enqueue_many('[{"aggregate_type": "a", "event_type": "E", "payload": 1}]'::pg_catalog.json))",
       "SELECT outbox.enqueue_task('mail', 'send', '{}')",
       "SELECT outbox.enqueue_task('mail', 'send', '{}', 42, priority => 3, unique_key => 'u')",
       R"(INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, headers, occurred_at)
           VALUES ('0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1', 'a', 'k', 'E', 'x', '{}', '2001-02-03 04:05:06+00'))"}) {
    ++written;
    EXPECT_EQ(find_complaint(*connection_, sql), "") << sql;
  }
  EXPECT_THAT(
      find_complaint(
          *connection_,
          "INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, headers) "
          "VALUES ('0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1', '', 'k', 'E', 'x', '{}')"),
      HasSubstr("aggregate_type: is empty"));
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event"), std::to_string(written));
}

// With session_replication_role = replica neither rules nor triggers run. What is written must not
// vanish silently.
TEST_F(PostgresSql, a_session_that_plays_the_replica_is_refused_by_every_way_in) {
  (void)connection_->exec(
      "PREPARE before AS INSERT INTO outbox.new_event (aggregate_type, event_type, payload) VALUES ('a', 'b', '1')");
  (void)connection_->exec("EXECUTE before");
  (void)connection_->exec("SET session_replication_role = replica");
  for (
      const char* insert :
      {"EXECUTE before",
       "INSERT INTO outbox.new_event (aggregate_type, event_type, payload) VALUES ('a', 'b', '1')",
       "INSERT INTO outbox.new_event (aggregate_type, event_type, payload) SELECT 'a', 'b', '1' RETURNING id",
       "INSERT INTO outbox.new_event (aggregate_id, payload) VALUES ('a', '1')"}) {
    EXPECT_EQ(find_sqlstate(*connection_, insert), "23514") << insert;
  }
  EXPECT_EQ(find_sqlstate(*connection_, "SELECT outbox.enqueue('a', 'k', 'b', '1')"), "55000");
  EXPECT_EQ(find_sqlstate(*connection_,
                          "SELECT outbox.enqueue_many('[{\"aggregate_type\": \"a\", "
                          "\"event_type\": \"b\", \"payload\": 1}]')"),
            "55000");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event"), "1");
}

}  // namespace
}  // namespace outbox::test
