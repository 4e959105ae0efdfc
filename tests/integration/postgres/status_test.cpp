// Tests what SQL says about events with event_status(), recent_status and pending(), and compares
// the filter in SQL with the one of the program.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "harness.hpp"
#include "subscription/filter.hpp"
#include "subscription/spec.hpp"
#include "support/random.hpp"

namespace outbox::test {
namespace {

using ::testing::HasSubstr;

class PostgresStatus : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (!IsSkipped()) sql_ = std::make_unique<Pg>(connect());
  }
  std::string value(const std::string& sql) { return sql_->value(sql); }
  /// Creates a subscription and returns its id.
  std::string subscribe(const std::string& name, const std::string& config = "{}") {
    std::string id = sql_->value(
        "INSERT INTO outbox.subscription (name, config, lane_group) VALUES ($1, $2, 'default') RETURNING id",
        name, config);
    run("INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1) SELECT " + id +
        ", 'reset', -1, 0, '3:3:'");
    return id;
  }
  /// Writes an event and returns its seq.
  std::string enqueue(const std::string& key = "a", const std::string& type = "Placed") {
    run("SELECT outbox.enqueue('order', '" + key + "', '" + type + "', '{}'::jsonb)");
    return value("SELECT max(seq) FROM outbox.event");
  }
  void run(const std::string& sql) { (void)sql_->exec(sql); }
  /// Appends a settlement of these lanes that passes everything that is there now, or everything up
  /// to `position`.
  void settle(const std::string& subscription, const std::string& lanes, int generation,
              const std::string& kind = "settle", const std::string& position = "NULL") {
    run("INSERT INTO outbox.settlement (subscription, kind, lanes, generation, config_version, s1, s2, position, l) SELECT " +
        subscription + ", '" + kind + "', " + lanes + ", " + std::to_string(generation) +
        ", 1, '3:3:', pg_current_snapshot(), " + position +
        ", (SELECT max(seq) FROM outbox.event)");
  }
  /// The states of events by seq, such as "1:pending 2:published".
  std::string states(const std::string& name) {
    return value(
        "SELECT string_agg(seq || ':' || state, ' ' ORDER BY seq) FROM outbox.recent_status WHERE subscription = '" +
        name + "'");
  }
  /// The id of the settlement whose time is the event's `published_at`.
  std::string passed_by(const std::string& name, const std::string& seq) {
    return value(
        "SELECT t.id FROM outbox.recent_status r JOIN outbox.subscription s ON s.name = r.subscription "
        "JOIN outbox.settlement t ON t.subscription = s.id AND t.at = r.published_at WHERE r.subscription = '" +
        name + "' AND r.seq = " + seq);
  }
  std::string newest_settlement() { return value("SELECT max(id) FROM outbox.settlement"); }
  /// The mask of the lane of the event.
  std::string find_lane(const std::string& seq) {
    return value("SELECT 1::bigint << lane FROM outbox.event WHERE seq = " + seq);
  }

  std::unique_ptr<Pg> sql_;
};

// ---- the filter

std::string random_text(Random& random, bool glob) {
  static const std::vector<std::string> pieces{"a", "b", "Ab", "_", "%", "\\", "ä",
                                               "€", "😀", "/",  ".", "[", "\n", "'"};
  static const std::vector<std::string> wild{"*", "?", "**", "*?"};
  std::string text;
  const std::uint64_t length = random.below(5);
  for (std::uint64_t i = 0; i < length; ++i) {
    const auto& from = glob && random.chance(40) ? wild : pieces;
    text += from[random.below(from.size())];
  }
  return text;
}

std::string quoted_json(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (c == '\n') {
      json += "\\n";
    } else {
      json += c;
    }
  }
  return json + "\"";
}

std::string random_headers(Random& random) {
  if (random.chance(5)) return random.chance(50) ? "[1]" : "\"text\"";  // by plain SQL
  static const std::array<const char*, 6> names{"t", "T", "tenant", "Tenant", "x-y", "Ä"};
  std::string json = "{";
  for (const char* name : names) {
    if (random.chance(60)) continue;
    if (json.size() > 1) json += ", ";
    json += quoted_json(name) + ": ";
    switch (random.below(6)) {
      case 0: json += "7"; break;
      case 1: json += "null"; break;
      case 2: json += R"({"a": [1, true]})"; break;
      default: json += quoted_json(random_text(random, false));
    }
  }
  return json + "}";
}

SubscriptionSpec random_filter(Random& random) {
  SubscriptionSpec spec;
  spec.sink = "null";
  for (auto* globs : {&spec.event_types, &spec.aggregate_types}) {
    const std::uint64_t count = random.below(3);
    for (std::uint64_t i = 0; i < count; ++i) globs->push_back(random_text(random, true));
  }
  static const std::array<const char*, 5> names{"t", "TENANT", "X-Y", "ä", "none"};
  static const std::array<const char*, 4> values{"7", "null", "a", R"({"a": [1, true]})"};
  if (random.chance(60)) return spec;
  for (const char* name : names) {
    if (random.chance(30))
      spec.match_headers[name] =
          random.chance(50) ? values[random.below(values.size())] : random_text(random, false);
  }
  return spec;
}

TEST_F(PostgresStatus, the_filter_in_sql_is_that_of_the_program) {
  const std::uint64_t seed = 20260105;
  Random random(seed);
  int matched = 0;
  for (int i = 0; i < 6000; ++i) {
    const SubscriptionSpec spec = random_filter(random);
    const std::string config = subscription::to_json(spec);
    const std::string type = random_text(random, false);
    const std::string aggregate = random_text(random, false);
    const std::string headers = random_headers(random);
    // The program reads the headers as jsonb prints them.
    const auto rows =
        sql_->exec("SELECT outbox.filter_matches($1::jsonb, $2, $3, $4::jsonb), ($4::jsonb)::text",
                   {config, type, aggregate, headers});
    const std::string& stored = *rows.at(0).at(1);
    EventView view;
    view.event_type = type;
    view.aggregate_type = aggregate;
    view.headers = stored;
    const bool expected = subscription::Filter(spec).matches(view);
    ASSERT_EQ(*rows[0][0], expected ? "t" : "f")
        << "case " << i << " of seed " << seed << ": " << config << " | " << type << " | "
        << aggregate << " | " << stored;
    matched += expected ? 1 : 0;
  }
  EXPECT_GT(matched, 600);
  EXPECT_LT(matched, 5400);
}

// ---- progress

TEST_F(PostgresStatus, a_settlement_counts_for_its_lanes) {
  const std::string id = subscribe("mails");
  std::string first = enqueue("a");
  std::string other = enqueue("b");
  const std::string lane = find_lane(first);
  ASSERT_NE(lane, find_lane(other)) << "the lanes of keys never change";
  EXPECT_EQ(value("SELECT outbox.pending('mails')"), "2");
  settle(id, lane, 1);
  EXPECT_EQ(value("SELECT outbox.pending('mails')"), "1");
  EXPECT_EQ(states("mails"), first + ":published " + other + ":pending");
  settle(id, "~" + lane + "::bigint", 2);
  EXPECT_EQ(value("SELECT outbox.pending('mails')"), "0");
  EXPECT_EQ(states("mails"), first + ":published " + other + ":published");
  EXPECT_NE(passed_by("mails", first), passed_by("mails", other));
}

TEST_F(PostgresStatus, the_highest_lane_is_the_sign_bit) {
  const std::string id = subscribe("mails");
  const std::string key = value(
      "SELECT i FROM generate_series(1, 10000) i WHERE outbox.lane_of('order', i::text, '00000000-0000-0000-0000-000000000000') "
      "= 63 LIMIT 1");
  const std::string seq = enqueue(key);
  settle(id, "9223372036854775807", 1);  // all but lane 63
  EXPECT_EQ(states("mails"), seq + ":pending");
  EXPECT_EQ(value("SELECT outbox.pending('mails')"), "1");
  settle(id, "1::bigint << 63", 1);
  EXPECT_EQ(states("mails"), seq + ":published");
  EXPECT_EQ(value("SELECT outbox.pending('mails')"), "0");
}

TEST_F(PostgresStatus, a_position_in_a_pair_divides_its_events) {
  const std::string id = subscribe("mails");
  const std::string first = enqueue("a");
  const std::string second = enqueue("a");
  settle(id, "-1", 1, "settle", first);
  EXPECT_EQ(states("mails"), first + ":published " + second + ":pending");
  EXPECT_EQ(value("SELECT outbox.pending('mails')"), "1");
  settle(id, "-1", 1);
  EXPECT_EQ(states("mails"), first + ":published " + second + ":published");
}

TEST_F(PostgresStatus, a_late_row_of_a_former_owner_is_void) {
  const std::string id = subscribe("mails");
  const std::string seq = enqueue("a");
  run("INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1) SELECT " + id +
      ", 'claim', -1, 1, '3:3:'::pg_snapshot UNION ALL SELECT " + id +
      ", 'claim', -1, 2, '3:3:'::pg_snapshot");
  settle(id, "-1", 1);  // by the former owner
  EXPECT_EQ(states("mails"), seq + ":pending");
  EXPECT_EQ(value("SELECT outbox.pending('mails')"), "1");
  settle(id, "-1", 2);
  EXPECT_EQ(passed_by("mails", seq), newest_settlement());
  settle(id, "-1", 2);
  EXPECT_NE(passed_by("mails", seq), newest_settlement()) << "the first that passed it counts";
}

TEST_F(PostgresStatus, a_claim_that_did_not_see_a_row_makes_it_void) {
  const std::string id = subscribe("mails");
  run("INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1) SELECT " + id +
      ", 'claim', -1, 1, '3:3:'");
  const std::string seq = enqueue("a");
  settle(id, "-1", 1);  // committed after the claim below had read the cursor, under a lower id
  run("INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1) SELECT " + id +
      ", 'claim', -1, 2, '3:3:'");
  EXPECT_EQ(states("mails"), seq + ":pending");
  settle(id, "-1", 2);
  EXPECT_EQ(passed_by("mails", seq), newest_settlement());
}

TEST_F(PostgresStatus, relays_side_by_side_each_pass_their_own_lanes) {
  const std::string id = subscribe("mails");
  std::vector<std::string> seqs;
  std::vector<std::string> rows;
  // Two relays take turns; each has half of the lanes under a generation of its own, and gives them
  // up twice.
  const std::array<std::string, 2> halves{"4294967295", "~4294967295::bigint"};
  std::array<int, 2> generations{1, 2};
  for (int i = 0; i < 120; ++i) {
    const std::string seq = enqueue("k" + std::to_string(i % 17));
    const bool upper =
        value("SELECT (lane >= 32)::int FROM outbox.event WHERE seq = " + seq) == "1";
    if (i % 50 == 49) {
      for (std::size_t half : {0U, 1U}) {
        generations.at(half) += 2;
        run("INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, s2, position, l) "
            "SELECT subscription, 'claim', " +
            halves.at(half) + ", " + std::to_string(generations.at(half)) +
            ", s1, s2, position, l FROM outbox.settlement WHERE lanes & " + halves.at(half) +
            " <> 0 ORDER BY generation DESC, id DESC LIMIT 1");
      }
    }
    const std::size_t half = upper ? 1 : 0;
    settle(id, halves.at(half), generations.at(half));
    seqs.push_back(seq);
    rows.push_back(newest_settlement());
    settle(id, halves.at(1 - half), generations.at(1 - half));
  }
  for (std::size_t i = 0; i < seqs.size(); ++i) {
    ASSERT_EQ(value("SELECT (outbox.settled_by(" + id +
                    ", lane, xid, seq, NULL)).id FROM outbox.event WHERE seq = " + seqs[i]),
              rows[i])
        << i;
  }
  EXPECT_EQ(value("SELECT count(*) FROM outbox.recent_status WHERE state = 'published'"), "120");
  for (const std::size_t i : {0U, 60U, 119U}) EXPECT_EQ(passed_by("mails", seqs[i]), rows[i]);
}

// ---- what programs ask

TEST_F(PostgresStatus, event_status_has_a_row_for_each_subscription) {
  const std::string mails = subscribe("mails", R"({"event_types": ["Placed"]})");
  const std::string audit = subscribe("audit", R"({"event_types": ["Paid"]})");
  (void)subscribe("slow");
  const std::string seq = enqueue("a");
  settle(mails, "-1", 1);
  settle(audit, "-1", 1);
  const std::string id = value("SELECT id FROM outbox.event WHERE seq = " + seq);
  EXPECT_EQ(
      value(
          "SELECT string_agg(subscription || ':' || state, ' ' ORDER BY subscription) FROM outbox.event_status('" +
          id + "')"),
      "audit:filtered mails:published slow:pending");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event_status('" + id +
                  "') WHERE published_at >= created_at"),
            "1");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event_status(gen_random_uuid())"), "0");
}

TEST_F(PostgresStatus, pending_names_the_subscription_that_does_not_exist) {
  EXPECT_THAT(find_complaint(*sql_, "SELECT outbox.pending('mials')"),
              HasSubstr("no such subscription: mials"));
}

TEST_F(PostgresStatus, transactions_that_commit_late_are_pending_and_then_published) {
  const std::string id = subscribe("mails");
  Pg late = connect();
  (void)late.exec("BEGIN");
  (void)late.exec("SELECT outbox.enqueue('order', 'late', 'Placed', '{}'::jsonb)");
  const std::string seq = enqueue("a");
  settle(id, "-1", 1);
  (void)late.exec("COMMIT");
  EXPECT_EQ(value("SELECT outbox.pending('mails')"), "1")
      << "its seq is below that of a passed one";
  EXPECT_THAT(states("mails"), HasSubstr(seq + ":published"));
  EXPECT_THAT(states("mails"), HasSubstr(":pending"));
  settle(id, "-1", 1);
  EXPECT_EQ(value("SELECT outbox.pending('mails')"), "0");
}

TEST_F(PostgresStatus, a_reader_may_ask_and_an_application_may_not) {
  (void)subscribe("mails");
  (void)enqueue("a");
  const std::string id = value("SELECT id FROM outbox.event");
  Pg reader = connect();
  (void)reader.exec("SET ROLE outbox_reader");
  EXPECT_EQ(reader.value("SELECT count(*) FROM outbox.recent_status"), "1");
  EXPECT_EQ(reader.value("SELECT count(*) FROM outbox.event_status($1::uuid)", id), "1");
  EXPECT_EQ(reader.value("SELECT outbox.pending('mails')"), "1");
  Pg application = connect();
  (void)application.exec("SET ROLE outbox_app");
  EXPECT_EQ(find_sqlstate(application, "SELECT outbox.pending('mails')"), "42501");
}

// ---- look-up indexes

TEST_F(PostgresStatus, look_up_indexes_are_finished_where_a_run_was_interrupted) {
  (void)enqueue("a");
  run("CREATE INDEX event_by_id ON ONLY outbox.event (id)");
  EXPECT_EQ(value("SELECT outbox.has_lookup_index('event_by_id')"), "f");
  EXPECT_EQ(store_->make_lookup_indexes().value().size(), 2U);
  EXPECT_EQ(value("SELECT outbox.has_lookup_index('event_by_id')"), "t");
  EXPECT_EQ(value("SELECT outbox.has_lookup_index('event_by_key')"), "t");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.lookup_gaps('event_by_id')"), "0");
  const std::string top = value("SELECT outbox.partitions_end()");
  run("CREATE TABLE outbox.event_more (LIKE outbox.event INCLUDING ALL)");
  run("ALTER TABLE outbox.event ATTACH PARTITION outbox.event_more FOR VALUES FROM ('" + top +
      "') TO ('" + std::to_string(std::stoll(top) + 1000) + "')");
  EXPECT_EQ(value("SELECT outbox.has_lookup_index('event_by_id')"), "t")
      << "new partitions have it too";
}

}  // namespace
}  // namespace outbox::test
