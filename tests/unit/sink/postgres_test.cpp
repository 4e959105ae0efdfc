// The parts of the PostgreSQL sink that need no server: settings, names, columns, SQLSTATEs, and
// how a batch finds the events at fault.
#include <gmock/gmock.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "sink/kind.hpp"
#include "sink/postgres/batch.hpp"
#include "sink/postgres/columns.hpp"
#include "sink/postgres/config.hpp"
#include "sink/postgres/error_map.hpp"
#include "sink/postgres/pruner.hpp"
#include "sink/postgres/statements.hpp"
#include "sink/postgres/table_name.hpp"
#include "support/random.hpp"

namespace outbox::test {
namespace {

using namespace sink::postgres;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Given = std::map<std::string, std::string>;

// ---- settings

std::string complaint(Given settings) {
  return find_complaint(make_spec("postgres", std::move(settings)));
}

std::string complaint_about(const std::string& name, const std::string& value) {
  Given settings{{"url", "postgresql://h/d"}, {"table", "inbox"}};
  settings[name] = value;
  return complaint(std::move(settings));
}

TEST(PostgresSettings, an_address_and_a_table_are_all_that_is_needed) {
  for (const char* url :
       {"postgresql://h/d", "postgres://u:p%40@h:5432/d?sslmode=verify-full", "host=h dbname=d",
        "postgresql://a:1,b:2/d?target_session_attrs=read-write"})
    EXPECT_EQ(complaint_about("url", url), "") << url;
  EXPECT_THAT(complaint({{"table", "t"}}), HasSubstr("postgres.url: is missing"));
  EXPECT_THAT(complaint({{"url", "postgresql://h/d"}}), HasSubstr("postgres.table: is missing"));
}

TEST(PostgresSettings, an_address_that_is_none_is_refused_and_not_quoted) {
  for (const char* url : {"postgresql://u:hush@ab@h/d", "postgresql://u:hush@h:x/d", "hush",
                          "postgresql://u:hush@h/d?connect_timeout=3",
                          "postgresql://u:hush@h/d?target_session_attrs=any",
                          "postgresql://u:hush@h/d?tcp_user_timeout=3"}) {
    const std::string text = complaint_about("url", url);
    EXPECT_THAT(text, HasSubstr("postgres.url: ")) << url;
    EXPECT_THAT(text, HasSubstr("hint: ")) << url;
    EXPECT_THAT(text, Not(HasSubstr("hush"))) << url;
  }
}

TEST(PostgresSettings, tables_and_columns_are_checked) {
  for (const char* table : {"inbox", "shop.inbox", "shop.{aggregate_type|lower}", "{json:a.b}"})
    EXPECT_EQ(complaint_about("table", table), "") << table;
  for (const char* table : {".inbox", "shop.", "shop.{nonsense}", "{aggregate_type"})
    EXPECT_THAT(complaint_about("table", table), HasSubstr("postgres.table: ")) << table;
  EXPECT_THAT(complaint_about("table", std::string(64, 't')), HasSubstr("more than 63 bytes"));
  EXPECT_THAT(complaint_about("delivered_table", "x{id}"), HasSubstr("postgres.delivered_table: "));
  EXPECT_EQ(complaint_about("columns.a.b", "{id}"), "");
  EXPECT_THAT(complaint_about("columns.a", "{payload}"), HasSubstr("{body}"));
  EXPECT_THAT(complaint_about("columns.", "{id}"), HasSubstr("postgres.columns."));
  EXPECT_THAT(complaint_about("colums.a", "{id}"), HasSubstr("no such setting"));
  EXPECT_THAT(complaint_about("tabel", "x"), HasSubstr("table"));
}

TEST(PostgresSettings, without_a_window_a_column_must_have_the_id) {
  EXPECT_EQ(complaint_about("dedup_window", "0"), "");
  Given settings{{"url", "postgresql://h/d"},
                 {"table", "t"},
                 {"dedup_window", "0"},
                 {"columns.body", "{body}"}};
  EXPECT_THAT(complaint(settings), HasSubstr("postgres.dedup_window: "));
  settings["columns.event"] = "{id}";
  EXPECT_EQ(complaint(settings), "");
}

// ---- names

std::string choose_table(std::string_view text, const EventView& event = {}) {
  event::Arena arena;
  const auto compiled = TableTemplate::compile("table", text);
  return compiled ? compiled->render(event, arena).quoted() : compiled.error().text();
}

TEST(PostgresTable, an_event_cannot_choose_the_schema_unless_the_template_says_so) {
  EventView event;
  event.aggregate_type = "pg_catalog.secret";
  EXPECT_EQ(choose_table("{aggregate_type}", event), R"("pg_catalog.secret")");
  EXPECT_EQ(choose_table("inbox.{aggregate_type}", event), R"("inbox"."pg_catalog.secret")");
  EXPECT_EQ(choose_table("{aggregate_type}.x", event), R"("pg_catalog.secret"."x")");
  EXPECT_EQ(choose_table("a{{.b}}.c"), R"("a{"."b}.c")");
  EXPECT_EQ(choose_table(R"(In"box)"), R"("In""box")");
  EXPECT_EQ(choose_table("{header:tenant}.x"), "\"\"") << "no schema must not become any schema";
}

TEST(PostgresTable, what_the_server_would_change_or_refuse_is_refused) {
  EXPECT_TRUE(check_name({.schema = "", .table = std::string(63, 't')}));
  EXPECT_FALSE(check_name({.schema = "", .table = std::string(64, 't')}));
  EXPECT_FALSE(check_name({.schema = std::string(64, 's'), .table = "t"}));
  EXPECT_FALSE(check_name({.schema = "s", .table = ""}));
  EXPECT_FALSE(check_name({.schema = "", .table = std::string("a\0b", 3)}));
  EXPECT_FALSE(check_name({.schema = "", .table = "\xff"}));
}

// ---- columns

TEST(PostgresColumns, have_defaults_and_take_what_they_say) {
  FieldErrors errors;
  const auto defaults = read_columns({}, errors);
  std::vector<std::string> names;
  for (const Column& column : defaults) names.push_back(column.name);
  EXPECT_THAT(names, ElementsAre("headers", "id", "key", "occurred_at", "payload", "seq", "type"));
  ASSERT_NE(find_id(defaults), nullptr);
  EXPECT_EQ(find_id(defaults)->name, "id");

  Load load;
  load.add(std::nullopt, "B");
  load.item(0).headers = {{.name = "a\"", .value = "\n\xff"},
                          {.name = "b", .value = "", .absent = true},
                          {.name = "c", .value = "d"}};
  Message message = load.message(0, 1);
  event::Arena arena;
  EXPECT_EQ(defaults[0].value(message, arena), "{\"a\\\"\":\"\\n\xef\xbf\xbd\",\"c\":\"d\"}");
  EXPECT_EQ(defaults[1].value(message, arena), load.item(0).id_text);
  EXPECT_EQ(defaults[2].value(message, arena), std::nullopt);
  EXPECT_EQ(defaults[4].value(message, arena), "B");
  message.tombstone = true;
  EXPECT_EQ(defaults[4].value(message, arena), std::nullopt);
  EXPECT_TRUE(errors.empty());
}

// ---- SQLSTATEs

TEST(PostgresErrors, say_whose_fault_it_is) {
  const std::pair<const char*, Verdict> cases[] = {
      {"22P02", Verdict::event},   {"22001", Verdict::event},   {"23505", Verdict::event},
      {"23514", Verdict::event},   {"44000", Verdict::event},   {"54000", Verdict::event},
      {"P0001", Verdict::event},   {"X0001", Verdict::event},   {"21000", Verdict::event},
      {"40001", Verdict::retry},   {"40P01", Verdict::retry},   {"55P03", Verdict::retry},
      {"57014", Verdict::retry},   {"25006", Verdict::blocked}, {"42P01", Verdict::blocked},
      {"42501", Verdict::blocked}, {"42P10", Verdict::blocked}, {"3D000", Verdict::blocked},
      {"28P01", Verdict::blocked}, {"53100", Verdict::blocked}, {"53300", Verdict::blocked},
      {"0A000", Verdict::blocked}, {"25P02", Verdict::blocked}, {"XX000", Verdict::blocked},
      {"58030", Verdict::blocked}, {"F0000", Verdict::blocked}, {"HV000", Verdict::blocked},
      {"08006", Verdict::lost},    {"08P01", Verdict::lost},    {"57P01", Verdict::lost},
      {"57P02", Verdict::lost},    {"57P03", Verdict::lost},    {"25P03", Verdict::lost},
      {"25P04", Verdict::lost},    {"40003", Verdict::lost},
  };
  for (const auto& [sqlstate, verdict] : cases)
    EXPECT_EQ(find_verdict(sqlstate), verdict) << sqlstate;
}

TEST(PostgresErrors, do_not_repeat_values_of_events) {
  const Failure failure{.sqlstate = "22P02",
                        .said = "invalid input syntax for type integer: \"secret\"",
                        .hint = "secret"};
  const Error error = describe(failure, "table \"t\"");
  EXPECT_THAT(error.text(), Not(HasSubstr("secret")));
  EXPECT_EQ(error.message,
            "postgres: table \"t\": a text is not valid for the type of its column (22P02)");
  EXPECT_EQ(error.origin, "pg:22P02");
  EXPECT_FALSE(error.hint.empty());
  for (const char* state : {"22999", "23505", "40P01", "53100", "X0001", "57P01"})
    EXPECT_FALSE(describe({.sqlstate = state, .said = "said", .hint = {}}, "t").message.empty());
}

// ---- batches

/// A server with transactions, savepoints and pipelines. "INSERT 3 5" inserts rows at these places.
class FakeServer {
 public:
  std::set<std::size_t> bad;  ///< Places that are refused when they are inserted.
  /// Places that are refused at COMMIT unless constraints are checked at once.
  std::set<std::size_t> late_bad;
  std::string fails_with{"23514"};
  std::vector<std::size_t> committed;
  int round_trips{0};

  Answer ask(const std::vector<Statement>& statements) {
    ++round_trips;
    Answer answer;
    for (const Statement& statement : statements) {
      const std::string failure = run(statement.sql, answer.command);
      if (failure.empty()) continue;
      answer.failure = Failure{.sqlstate = failure, .said = "no", .hint = {}};
      break;
    }
    answer.in_transaction = open_;
    return answer;
  }
  [[nodiscard]] bool open() const { return open_; }

 private:
  std::string run(const std::string& sql, std::string& command) {
    const std::string word = sql.substr(0, sql.find(' '));
    if (aborted_ && word != "ROLLBACK") return "25P02";
    if (word == "BEGIN") return begin();
    if (word == "SET") return at_once_ = true, "";
    if (word == "SAVEPOINT") return saved_ = rows_, "";
    if (sql == "ROLLBACK TO SAVEPOINT outbox") return rows_ = saved_, aborted_ = false, "";
    if (word == "ROLLBACK") return open_ = aborted_ = false, "";
    if (word == "INSERT") return insert(sql);
    if (word == "COMMIT") return commit(command);
    return "";  // The word is SELECT or RELEASE.
  }
  std::string begin() {
    EXPECT_FALSE(open_) << "a transaction within a transaction";
    open_ = true;
    at_once_ = false;
    rows_.clear();
    return "";
  }
  std::string insert(const std::string& sql) {
    EXPECT_TRUE(open_);
    std::size_t at = sql.find(' ');
    while (at != std::string::npos) {
      std::size_t place = 0;
      std::from_chars(sql.data() + at + 1, sql.data() + sql.size(), place);
      if (bad.contains(place) || (at_once_ && late_bad.contains(place))) {
        aborted_ = true;
        return fails_with;
      }
      rows_.push_back(place);
      at = sql.find(' ', at + 1);
    }
    return "";
  }
  std::string commit(std::string& command) {
    open_ = false;
    const bool late = !at_once_ && std::any_of(rows_.begin(), rows_.end(), [this](std::size_t row) {
      return late_bad.contains(row);
    });
    if (late) return "23503";
    committed.insert(committed.end(), rows_.begin(), rows_.end());
    command = "COMMIT";
    return "";
  }

  bool open_{false};
  bool aborted_{false};
  bool at_once_{false};
  std::vector<std::size_t> rows_;
  std::vector<std::size_t> saved_;
};

/// Row n has token n and key n % keys.
std::vector<Row> make_rows(std::size_t count, std::size_t keys) {
  std::vector<Row> rows;
  for (std::size_t place = 0; place < count; ++place)
    rows.push_back({.token = place,
                    .id = {},
                    .seq = static_cast<std::int64_t>(place),
                    .replay = {},
                    .table = {.schema = {}, .table = "t"},
                    .values = {},
                    .keys = {std::to_string(place % keys)}});
  return rows;
}

std::vector<Statement> insert_places(std::span<const Row* const> rows) {
  std::string sql = "INSERT";
  for (const Row* const row : rows) sql += " " + std::to_string(row->token);
  return {{sql}};
}

std::vector<Outcome> deliver(FakeServer& server, std::size_t count, std::size_t keys) {
  Batch batch(make_rows(count, keys), std::chrono::seconds(10), insert_places);
  for (auto round = batch.next(); !round.empty(); round = batch.next())
    batch.answered(server.ask(round));
  EXPECT_FALSE(server.open()) << "a transaction is left open";
  std::vector<Outcome> outcomes;
  batch.append_outcomes(outcomes);
  return outcomes;
}

TEST(PostgresBatch, is_one_round_trip_when_all_is_well) {
  FakeServer server;
  for (const Outcome& outcome : deliver(server, 1000, 7))
    EXPECT_EQ(outcome.kind, Outcome::Kind::acked);
  EXPECT_EQ(server.committed.size(), 1000U);
  EXPECT_EQ(server.round_trips, 1);
}

TEST(PostgresBatch, one_event_at_fault_is_found_in_few_round_trips) {
  FakeServer server;
  server.bad = {501};
  const auto outcomes = deliver(server, 1000, 1000);
  for (const Outcome& outcome : outcomes)
    EXPECT_EQ(outcome.kind, outcome.token == 501 ? Outcome::Kind::rejected : Outcome::Kind::acked);
  EXPECT_EQ(server.committed.size(), 999U);
  EXPECT_LE(server.round_trips, 24);
}

TEST(PostgresBatch, of_whatever_is_at_fault_nothing_of_its_key_follows) {
  Random random(20'260'101);
  for (int run = 0; run < 400; ++run) {
    FakeServer server;
    const std::size_t count = 1 + random.below(60);
    const std::size_t keys = 1 + random.below(12);
    auto& bad = random.chance(30) ? server.late_bad : server.bad;
    for (std::size_t i = random.below(6); i > 0; --i) bad.insert(random.below(count));
    const auto outcomes = deliver(server, count, keys);
    ASSERT_EQ(outcomes.size(), count);
    std::set<std::size_t> blocked;
    std::vector<std::size_t> expected;
    for (std::size_t place = 0; place < count; ++place) {
      const bool behind = blocked.contains(place % keys);
      const bool refused = !behind && bad.contains(place);
      if (refused) blocked.insert(place % keys);
      if (!refused && !behind) expected.push_back(place);
      ASSERT_EQ(outcomes[place].token, place);
      EXPECT_EQ(outcomes[place].kind, behind    ? Outcome::Kind::retry
                                      : refused ? Outcome::Kind::rejected
                                                : Outcome::Kind::acked)
          << "run " << run << " place " << place;
    }
    EXPECT_EQ(server.committed, expected) << "run " << run;
  }
}

TEST(PostgresBatch, that_is_refused_as_a_whole_stops_looking) {
  FakeServer server;
  for (std::size_t place = 0; place < 1000; ++place) server.bad.insert(place);
  const auto outcomes = deliver(server, 1000, 1000);
  const auto rejected = std::count_if(outcomes.begin(), outcomes.end(), [](const Outcome& one) {
    return one.kind == Outcome::Kind::rejected;
  });
  EXPECT_GE(rejected, 16) << "enough for the relay to suspect the destination";
  EXPECT_LE(server.round_trips, 100);
  EXPECT_TRUE(server.committed.empty());
}

TEST(PostgresBatch, other_failures_leave_nothing_and_blame_nobody) {
  for (const auto& [state, kind] :
       {std::pair("40P01", Outcome::Kind::retry), std::pair("57014", Outcome::Kind::retry),
        std::pair("42P01", Outcome::Kind::blocked), std::pair("53100", Outcome::Kind::blocked)}) {
    FakeServer server;
    server.bad = {5};
    server.fails_with = state;
    for (const Outcome& outcome : deliver(server, 20, 20)) {
      EXPECT_EQ(outcome.kind, kind) << state;
      EXPECT_EQ(outcome.error.origin, std::string("pg:") + state);
    }
    EXPECT_TRUE(server.committed.empty());
  }
}

// ---- old ids

TEST(PostgresPruner, goes_on_at_once_while_there_are_more_and_then_rests) {
  using std::chrono::minutes;
  Pruner pruner(std::chrono::hours(1), 1000);
  const Pruner::TimePoint start{minutes(100)};
  EXPECT_TRUE(pruner.due(start));
  pruner.removed(1000, "then", start);
  EXPECT_TRUE(pruner.due(start));
  EXPECT_EQ(pruner.from(), "then");
  pruner.removed(999, "later", start);
  EXPECT_FALSE(pruner.due(start));
  EXPECT_TRUE(pruner.due(start + minutes(1)));
  pruner.stop();
  EXPECT_FALSE(pruner.due(start + minutes(9)));
  EXPECT_FALSE(Pruner(std::chrono::milliseconds(0), 1000).due(start));
}

}  // namespace
}  // namespace outbox::test
