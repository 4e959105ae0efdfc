// Tests what a row is: tables, columns, types, and events that a table does not take.
#include "event/time_text.hpp"
#include "integration/postgres_sink/fixture.hpp"

namespace outbox::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

TEST_F(PostgresSinkTest, the_sink_makes_its_tables_and_fills_the_columns) {
  const std::string name = PostgresDestination::new_name("made_");
  open({{"table", "public." + name}});
  Load load;
  load.add("42", R"({"total": 12.5})");
  load.item(0).event.occurred_at = event::timestamp(1'714'566'896'123'456);
  load.item(0).headers = {{.name = "tenant", .value = "a \"quote\"\n"},
                          {.name = "none", .value = "", .absent = true}};
  load.add(std::nullopt, "{}");
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked);
  EXPECT_EQ(find_outcome(load, 1).kind, Outcome::Kind::acked);
  const auto rows = server().admin().exec(
      "SELECT id, seq, key, type, payload->>'total', headers->>'tenant', headers ? 'none', "
      "extract(epoch FROM occurred_at)::text FROM " +
      name + " ORDER BY seq");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0], ElementsAre(load.item(0).id_text, "1", "42", "OrderPlaced", "12.5",
                                   "a \"quote\"\n", "f", "1714566896.123456"));
  EXPECT_EQ(rows[1][2], std::nullopt);
  EXPECT_EQ(server().admin().value(
                "SELECT string_agg(format_type(atttypid, NULL), ' ' ORDER BY attname) FROM "
                "pg_attribute WHERE attnum > 0 AND attrelid = '" +
                name + "'::regclass"),
            "jsonb uuid text timestamp with time zone jsonb bigint text");
}

TEST_F(PostgresSinkTest, columns_get_what_their_templates_say_in_the_type_of_the_column) {
  server().admin().exec("CREATE TYPE mood_" + table_ + " AS ENUM ('sad', 'glad')");
  server().admin().exec("CREATE DOMAIN short_" + table_ + " AS text CHECK (length(VALUE) < 6)");
  const std::string name = PostgresDestination::new_name("\"Typed \"\"rows\"\" ");
  Pg admin = server().admin();
  admin.exec("CREATE TABLE " + name + "\" (\"Total €\" numeric(10,2), placed date, mood mood_" +
             table_ +
             ", sku varchar(5), code char(3), tags text[], raw bytea, verbatim json, note short_" +
             table_ + ", sync text DEFAULT current_setting('synchronous_commit'), empty text)");
  admin.exec("GRANT INSERT ON " + name + "\" TO app");
  admin.exec("ALTER ROLE app SET synchronous_commit = off");
  const std::string plain = name.substr(1, 5) + " \"rows\" " + name.substr(name.rfind(' ') + 1);
  open({{"table", plain},
        {"columns.Total €", "{json:total}"},
        {"columns.placed", "{json:placed}"},
        {"columns.mood", "{json:mood}"},
        {"columns.sku", "{json:sku}"},
        {"columns.code", "{json:sku}"},
        {"columns.tags", "{json:tags}"},
        {"columns.raw", "{body}"},
        {"columns.verbatim", "{body}"},
        {"columns.note", "{event_type|lower|default:x}"},
        {"columns.empty", "{json:nothing}"}});
  Load load;
  const std::string good =
      R"({"total": 12.345, "placed": "2024-05-01", "mood": "glad", "sku": "AB", "tags": "{a,b}"})";
  const std::string bad[] = {R"({"total": "12,5"})",           R"({"total": 123456789012})",
                             R"({"placed": "yesterday-ish"})", R"({"mood": "so so"})",
                             R"({"sku": "ABCDEF"})",           "no json"};
  load.add("good", good);
  load.add("nothing", "{}");
  for (const std::string& body : bad) load.add("bad" + std::to_string(load.size()), body);
  for (std::size_t place = 0; place < load.size(); ++place) {
    load.item(place).event.payload = load.item(place).body;
    load.item(place).event.event_type = "Note";
  }
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_THAT(relay.rejected(), ElementsAre(2, 3, 4, 5, 6, 7));
  for (const auto& failure : relay.failures()) {
    if (failure.outcome.kind != Outcome::Kind::rejected) continue;
    const std::string text = failure.outcome.error.text();
    EXPECT_THAT(text, HasSubstr("\"Typed \"\"rows\"\" ")) << "names the table";
    EXPECT_THAT(text, HasSubstr("hint: "));
    for (const char* value :
         {"12,5", "123456789012", "yesterday-ish", "so so", "ABCDEF", "no json"})
      EXPECT_THAT(text, Not(HasSubstr(value))) << "payloads are not for logs";
  }
  admin.exec("ALTER ROLE app RESET synchronous_commit");
  const auto rows = admin.exec(
      "SELECT \"Total €\", placed, mood, sku, code, tags[2], encode(raw, 'escape'), verbatim, "
      "note, sync, empty FROM " +
      name + "\" ORDER BY sku DESC");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0], ElementsAre("12.35", "2024-05-01", "glad", "AB", "AB ", "b", good, good,
                                   "note", "on", ""));
  EXPECT_EQ(rows[1][0], std::nullopt) << "nothing is no number";
  EXPECT_THAT(rows[1][3], Optional(std::string())) << "an empty text is one";
  EXPECT_EQ(rows[1][5], std::nullopt);
}

TEST_F(PostgresSinkTest, a_rejected_event_in_the_middle_takes_only_its_key_along) {
  open();
  server().admin().exec("ALTER TABLE " + table_ + " ADD CHECK (seq <> 151)");
  Load load;
  load.add_many(400, 7);
  constexpr std::size_t spoiled = 150;
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(sink_->open().has_value());
  ASSERT_EQ(relay.offer(400), 400U);
  ASSERT_TRUE(relay.drain());
  EXPECT_THAT(relay.rejected(), ElementsAre(spoiled));
  for (std::size_t place = 0; place < load.size(); ++place) {
    const bool behind = place >= spoiled && place % 7 == spoiled % 7;
    EXPECT_EQ(relay.is_acked(place), !behind) << place;
  }
  const std::size_t acked = relay.acked();
  relay.offer(20);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), acked) << "delivers more before it was opened again";
  for (const std::size_t place : places(server().arrived(table_), load))
    EXPECT_FALSE(place > spoiled && place % 7 == spoiled % 7) << place << " is behind the gap";
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load, {spoiled});
}

/// A sink that says it is gapless must show it on the real destination.
TEST_F(PostgresSinkTest, nothing_of_a_key_overtakes_an_event_that_failed_while_more_is_sent) {
  open({{"batch", "25"}});
  server().admin().exec("ALTER TABLE " + table_ + " ADD CHECK (seq <> 151)");
  Load load;
  load.add_many(400, 7);
  constexpr std::size_t spoiled = 150;
  MiniRelay relay(*sink_, load);
  relay.press_on(20);  // like a relay that has not received the failure yet
  ASSERT_TRUE(relay.drain());
  ASSERT_THAT(relay.rejected(), ElementsAre(spoiled));
  for (const std::size_t place : places(server().arrived(table_), load))
    EXPECT_FALSE(place >= spoiled && place % 7 == spoiled % 7) << place << " is behind the gap";
  server().admin().exec("ALTER TABLE " + table_ + " DROP CONSTRAINT " + table_ + "_seq_check");
  MiniRelay again(*sink_, load);
  ASSERT_TRUE(again.deliver());
  expect_each_once(load);
}

TEST_F(PostgresSinkTest, many_rejected_events_are_all_found) {
  open();
  server().admin().exec("ALTER TABLE " + table_ + " ADD CHECK (seq % 10 <> 3)");
  Load load;
  load.add_many(1200, 1200);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  std::vector<std::size_t> bad;
  for (std::size_t place = 2; place < load.size(); place += 10) bad.push_back(place);
  EXPECT_EQ(relay.rejected(), bad);
  expect_each_once(load, bad);
}

TEST_F(PostgresSinkTest, constraints_that_wait_for_the_commit_find_their_event_too) {
  open();
  Pg admin = server().admin();
  admin.exec("CREATE TABLE parent_" + table_ + " (seq bigint PRIMARY KEY)");
  admin.exec("INSERT INTO parent_" + table_ + " SELECT generate_series(1, 30)");
  admin.exec("DELETE FROM parent_" + table_ + " WHERE seq = 11");
  admin.exec("ALTER TABLE " + table_ + " ADD FOREIGN KEY (seq) REFERENCES parent_" + table_ +
             " DEFERRABLE INITIALLY DEFERRED");
  Load load;
  load.add_many(30, 30);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_THAT(relay.rejected(), ElementsAre(10));
  ASSERT_FALSE(relay.failures().empty());
  EXPECT_EQ(relay.failures().front().outcome.error.origin, "pg:23503");
  expect_each_once(load, {10});
  load.add("alone", "B");
  EXPECT_EQ(find_outcome(load, 30).kind, Outcome::Kind::rejected);
}

TEST_F(PostgresSinkTest, what_a_trigger_raises_is_the_fault_of_the_event) {
  open();
  Pg admin = server().admin();
  admin.exec(
      "CREATE FUNCTION refuse_" + table_ +
      "() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.seq = 4 THEN RAISE EXCEPTION 'not four'; "
      "ELSIF NEW.seq = 6 THEN RAISE EXCEPTION 'not six' USING ERRCODE = 'X0001'; END IF; RETURN NEW; END $$");
  admin.exec("CREATE TRIGGER refuse BEFORE INSERT ON " + table_ +
             " FOR EACH ROW EXECUTE FUNCTION refuse_" + table_ + "()");
  Load load;
  load.add_many(10, 10);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_THAT(relay.rejected(), ElementsAre(3, 5));
  expect_each_once(load, {3, 5});
}

TEST_F(PostgresSinkTest, events_can_be_routed_to_several_tables_in_one_transaction) {
  const std::string prefix = PostgresDestination::new_name("routed_");
  open({{"table", "public." + prefix + "_{event_type|snake}"}});
  Load load;
  load.add_many(90, 9);
  for (std::size_t place = 0; place < load.size(); ++place)
    load.item(place).event.event_type = place % 3 == 0   ? "OrderPlaced"
                                        : place % 3 == 1 ? "OrderPaid"
                                                         : "a\"b; DROP TABLE x--";
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  EXPECT_EQ(count(prefix + "_order_placed"), 30);
  EXPECT_EQ(count(prefix + "_order_paid"), 30);
  EXPECT_EQ(count("\"" + prefix + "_a\"\"b;_drop_table_x__\""), 30);
}

/// Sets the search_path of the login until the end of the test.
class LoginsPath {
 public:
  explicit LoginsPath(const std::string& path) {
    Pg admin = shared_destination()->admin();
    admin.exec("ALTER ROLE app SET search_path = " + path);
  }
  LoginsPath(const LoginsPath&) = delete;
  LoginsPath& operator=(const LoginsPath&) = delete;
  ~LoginsPath() { PQclear(PQexec(admin_.native(), "ALTER ROLE app RESET search_path")); }

 private:
  Pg admin_{shared_destination()->admin()};
};

TEST_F(PostgresSinkTest, names_without_a_schema_are_found_as_the_login_finds_them) {
  Pg admin = server().admin();
  const std::string first = table_ + "_first";
  const std::string second = table_ + "_second";
  for (const std::string& schema : {first, second})
    admin.exec("CREATE SCHEMA " + schema + "; GRANT USAGE, CREATE ON SCHEMA " + schema + " TO app");
  server().make_table(second + "." + table_);
  admin.exec("CREATE TYPE " + second + ".mood AS ENUM ('glad')");
  admin.exec("ALTER TABLE " + second + "." + table_ + " ADD COLUMN mood " + second + ".mood");
  const LoginsPath path("nowhere, " + first + ", " + second + ", public");
  open({{"columns.id", "{id}"}, {"columns.mood", "glad"}, {"columns.payload", "{body}"}});
  Load load;
  load.add("k", "{}");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_EQ(count(second + "." + table_), 1);
  EXPECT_EQ(count(table_), 0) << "the one in public comes later";
  EXPECT_EQ(count(first + "." + delivered_), 1) << "what is made is made in the first schema";

  const LoginsPath none("nowhere");
  EXPECT_THAT(error_of_open({{"table", "some"}, {"delivered_table", "none"}}),
              HasSubstr("no schema of the login's search_path exists"));
}

TEST_F(PostgresSinkTest, what_others_planted_in_the_search_path_is_never_called) {
  Pg admin = server().admin();
  const std::string trap = table_ + "_trap";
  admin.exec("CREATE SCHEMA " + trap + "; GRANT USAGE ON SCHEMA " + trap + " TO PUBLIC");
  const std::string body = " LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'planted'; END$$";
  for (const char* type : {"uuid", "text", "name", "integer", "bigint", "smallint", "oid",
                           "\"char\"", "boolean", "timestamptz"}) {
    const std::string pair = std::string("(") + type + ", " + type + ")";
    admin.exec("CREATE FUNCTION " + trap + ".equal" + pair + " RETURNS boolean" + body);
    for (const char* sign : {"=", "<", ">", "+"})
      admin.exec("CREATE OPERATOR " + trap + "." + sign + " (LEFTARG = " + type +
                 ", RIGHTARG = " + type + ", FUNCTION = " + trap + ".equal)");
  }
  for (const char* function :
       {"set_config(text, text, boolean) RETURNS text", "now() RETURNS timestamptz",
        "format_type(oid, integer) RETURNS text", "current_setting(text) RETURNS text",
        "unnest(text[]) RETURNS SETOF text", "count() RETURNS bigint"})
    admin.exec("CREATE FUNCTION " + trap + "." + function + body);
  admin.exec("CREATE DOMAIN " + trap + ".text AS integer");
  const LoginsPath path(trap + ", pg_catalog, public");
  admin.exec("SET search_path = " + trap + ", pg_catalog");
  EXPECT_THROW(admin.exec("SELECT 1::oid = 2::oid"), PgError);
  // The window is short, so that old ids are removed, too.
  open({{"dedup_window", "1ms"}, {"delivered_table", "public." + delivered_}});
  Load load;
  load.add_many(10, 3);
  {
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver());
    EXPECT_TRUE(relay.failures().empty());
  }
  load.add("late", "{}");
  EXPECT_EQ(find_outcome(load, 10).kind, Outcome::Kind::acked);
  sink_->close();
  make_id_unique();
  open({{"dedup_window", "0"}});
  load.add("k", "{}");
  EXPECT_EQ(find_outcome(load, 11).kind, Outcome::Kind::acked);
  EXPECT_EQ(count(), 12);
}

TEST_F(PostgresSinkTest, a_table_that_is_missing_for_some_events_blocks_and_is_named) {
  open({{"table", table_ + "{header:tenant}"}, {"create", "false"}, {"dedup_window", "0"}});
  make_id_unique();
  Load load;
  load.add_many(3, 3);
  load.item(1).event.headers = R"({"tenant":"_other"})";
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked);
  const Outcome outcome = find_outcome(load, 1);
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked);
  EXPECT_THAT(outcome.error.text(), HasSubstr(table_ + "_other"));
  EXPECT_EQ(find_outcome(load, 2).kind, Outcome::Kind::acked);
}

TEST_F(PostgresSinkTest, a_name_that_no_table_can_have_is_the_fault_of_its_event) {
  open({{"table", "public." + table_ + "{header:tenant}"}});
  Load load;
  load.add_many(20, 20);
  const std::string headers = R"({"tenant":")" + std::string(60, 'x') + "\"}";
  load.item(7).event.headers = headers;
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_THAT(relay.rejected(), ElementsAre(7));
  EXPECT_EQ(relay.acked(), 19U);
  EXPECT_FALSE(relay.failures().front().outcome.error.hint.empty());
  expect_each_once(load, {7});
}

}  // namespace
}  // namespace outbox::test
