// Tests that after a dump and restore into another cluster everything that was pending arrives,
// once and in order, and that after pg_upgrade nothing has to be done.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>

#include "event/key.hpp"
#include "integration/postgres/lineage_fixture.hpp"
#include "integration/relay/harness.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const std::vector<std::string> kSubscriptions{"all", "nothing", "parking", "parts"};

/// An outbox in a cluster of its own, and what each subscription received from it, there and later
/// in its copies.
class LineageRepairTest : public ::testing::Test {
 protected:
  void SetUp() override { OUTBOX_NEEDS_PGBIN(); }

  static SubscriptionSpec make_spec(const std::string& name) {
    SubscriptionSpec spec = custom(name);
    spec.retry_base = std::chrono::milliseconds(20);
    return spec;
  }
  static RelayOptions options_at(const std::string& url, const std::vector<std::string>& names) {
    RelayOptions options;
    options.store_url = url;
    for (const std::string& name : names) options.subscriptions.push_back(make_spec(name));
    return options;
  }
  static void make_outbox(const std::string& url) {
    const auto store = open_at(url);
    ASSERT_TRUE(ok(store->migrate()));
    for (const std::string& name : kSubscriptions)
      ASSERT_TRUE(ok((*store->catalog())->apply(make_spec(name))));
  }

  /// Writes an event of the key. Each event of a key has a version, which is one more than the
  /// last.
  void enqueue(Pg& connection, const std::string& key) {
    const std::string version = std::to_string(++versions_[key]);
    const std::string id = connection.value(
        "SELECT outbox.enqueue('order', $1, 'Changed', $2::jsonb)", key, "{\"v\":" + version + "}");
    key_of_[id] = key;
    version_of_[id] = versions_[key];
  }
  void enqueue_some(const std::string& url, int count) {
    Pg connection(url);
    for (int i = 0; i < count; ++i) enqueue(connection, std::to_string(i * i % 11));
  }
  void arrived(const std::string& subscription, const std::string& id) {
    arrivals_[subscription].push_back(id);
  }

  /// Delivers one page of these lanes and settles it, as a relay does.
  void deliver_page(store::Store& store, const std::string& subscription, store::LaneMask lanes,
                    std::size_t rows) {
    const auto subscriptions = store.catalog().value()->subscriptions();
    ASSERT_TRUE(ok(subscriptions));
    std::int32_t sub = 0;
    for (const auto& row : *subscriptions) {
      if (row.spec.name == subscription) sub = row.id;
    }
    const auto progress = store.progress().value();
    const auto reader = store.reader().value();
    const auto strands = progress->load(sub, lanes);
    ASSERT_TRUE(ok(strands));
    for (const store::Strand& strand : *strands) {
      ASSERT_TRUE(ok(reader->begin(std::span(&strand.cursor, 1))));
      ASSERT_TRUE(
          ok(reader->start({.lanes = strand.lanes, .cursor = strand.cursor, .rows = rows})));
      const auto page = reader->finish();
      ASSERT_TRUE(ok(page));
      ASSERT_TRUE(ok(reader->wait_durable()));
      store::Settlement row{.subscription = sub,
                            .lanes = strand.lanes,
                            .generation = strand.generation,
                            .s1 = page->pair->s1,
                            .s2 = page->pair->s2,
                            .from_position = page->from,
                            .bound = page->pair->bound};
      if (!page->drained) row.position = page->position;
      for (const EventView& event : page->events) {
        row.acked.add(event::id_hash(event.id));
        arrived(subscription, event.id.str());
      }
      ASSERT_TRUE(
          ok(progress->append({.settlements = std::span(&row, 1)}, store::Durability::flushed)));
    }
  }

  /// Runs a relay that delivers everything. The sink of `parking` rejects key 3.
  void deliver_all(const std::string& url, const std::vector<std::string>& names) {
    const auto relay = make_relay(options_at(url, names));
    std::map<std::string, std::shared_ptr<const testing::Recording>> recordings;
    for (const std::string& name : names) {
      auto sink = std::make_unique<testing::FailingSink>([](const EventView& event) {
        return event.aggregate_id == "3" ? Outcome::Kind::rejected : Outcome::Kind::acked;
      });
      if (name != "parking") {
        recordings[name] = record(*relay, name);
      } else {
        recordings[name] = sink->recording();
        ASSERT_TRUE(ok(relay->use(name, std::move(sink))));
      }
    }
    const auto report = relay->run_once(seconds(60));
    ASSERT_TRUE(report) << report.error().text();
    ASSERT_TRUE(report->settled) << report->reason;
    for (const auto& [name, recording] : recordings)
      for (const auto& event : recording->events()) arrived(name, event.id.str());
  }

  /// Makes subscriptions at different places: one has everything, one has nothing, one has some
  /// events parked, and one has lanes at five places, in the middle of pairs.
  void make_history(const std::string& url) {
    make_outbox(url);
    if (in_default_) {
      Pg(url).run(
          "DO $$ DECLARE p text; BEGIN FOR p IN SELECT name FROM outbox.partitions() WHERE first_xid IS NOT NULL LOOP "
          "EXECUTE 'DROP TABLE outbox.' || p; END LOOP; END $$");
    }
    const auto store = open_at(url);
    enqueue_some(url, 60);
    Pg late(url);
    late.run("BEGIN");
    enqueue(late, "late");
    deliver_all(url, {"all", "parking"});
    constexpr store::LaneMask low = 0xffff'ffff;
    deliver_page(*store, "parts", low, 7);
    enqueue_some(url, 30);
    late.run("COMMIT");
    deliver_page(*store, "parts", low, 5);
    deliver_page(*store, "parts", ~low, 11);
    deliver_page(*store, "parts", 0xff, 100);
    deliver_all(url, {"parking"});
    ASSERT_GT(std::stoi(Pg(url).value("SELECT count(*) FROM outbox.parked")), 3);
  }

  [[nodiscard]] std::int64_t missing(const std::string& subscription) {
    const auto& got = arrivals_[subscription];
    return static_cast<std::int64_t>(key_of_.size() - std::set(got.begin(), got.end()).size());
  }

  void expect_plan(const std::string& url, std::int64_t fresh, std::int64_t parked) {
    const auto plan = open_at(url)->plan_lineage_repair();
    ASSERT_TRUE(ok(plan));
    EXPECT_TRUE(plan->needed);
    EXPECT_EQ(plan->fresh, fresh);
    EXPECT_EQ(plan->restored + plan->fresh, static_cast<std::int64_t>(key_of_.size()));
    ASSERT_EQ(plan->pending.size(), kSubscriptions.size());
    for (const auto& [name, events] : plan->pending)
      EXPECT_EQ(events, missing(name) - fresh - (name == "parking" ? parked : 0)) << name;
  }

  /// Expects that everything arrives once, parked events too, and the versions of a key in their
  /// order.
  void expect_the_rest(const std::string& url) {
    const auto relay = make_relay(options_at(url, kSubscriptions));
    std::map<std::string, std::shared_ptr<const testing::Recording>> recordings;
    for (const std::string& name : kSubscriptions) recordings[name] = record(*relay, name);
    ASSERT_TRUE(ok(relay->start()));
    for (const std::string& name : kSubscriptions) {
      EXPECT_TRUE(recordings[name]->wait_for(static_cast<std::size_t>(missing(name)), seconds(60)))
          << name;
      EXPECT_TRUE(eventually_settled(url, name));
    }
    (void)relay->stop(seconds(60));
    for (const std::string& name : kSubscriptions) {
      for (const auto& event : recordings[name]->events()) arrived(name, event.id.str());
      EXPECT_EQ(missing(name), 0) << name;
      EXPECT_EQ(arrivals_[name].size(), key_of_.size()) << name << ": duplicates";
      std::map<std::string, int> last;
      for (const std::string& id : arrivals_[name]) {
        EXPECT_EQ(version_of_[id], last[key_of_[id]] + 1) << name << ", key " << key_of_[id];
        last[key_of_[id]] = version_of_[id];
      }
      EXPECT_EQ(Verifier::verify(url, name), "") << name;
    }
  }

  void expect_restored_and_repaired(const OwnPostgres& original, const OwnPostgres& other,
                                    bool sequence_too = true) {
    make_history(original.url());
    make_roles(other);
    dump_to(folder_.file("dump"), original.url());
    restore_from(folder_.file("dump"), other.url());
    Pg here(other.url());
    const std::string parked = here.value("SELECT count(*) FROM outbox.parked");
    if (!sequence_too) here.run("SELECT setval('outbox.event_seq', 3)");
    // Applications may write before the outbox is repaired.
    enqueue_some(other.url(), 10);
    here.run("BEGIN; SAVEPOINT s");
    enqueue(here, "1");
    here.run("COMMIT");
    ASSERT_FALSE(open_at(other.url())->check());
    expect_plan(other.url(), 11, std::stoll(parked));
    const auto repaired = open_at(other.url())->repair_lineage();
    ASSERT_TRUE(ok(repaired));
    EXPECT_TRUE(repaired->needed);
    EXPECT_TRUE(ok(open_at(other.url())->check()));
    const auto again = open_at(other.url())->repair_lineage();
    ASSERT_TRUE(ok(again));
    EXPECT_FALSE(again->needed);
    EXPECT_EQ(here.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'lineage%'"), "0");
    enqueue_some(other.url(), 10);
    expect_the_rest(other.url());
  }

  bool in_default_{false};  ///< At first the default partition is the only one.
  const TempDir folder_;
  std::map<std::string, int> versions_;
  std::map<std::string, std::string> key_of_;
  std::map<std::string, int> version_of_;
  std::map<std::string, std::vector<std::string>> arrivals_;
};

TEST_F(LineageRepairTest, into_a_cluster_with_fewer_transactions) {
  const OwnPostgres original;
  Pg there(original.url());
  advance(there, next_xid(there) + 3000);
  expect_restored_and_repaired(original, OwnPostgres());
}

TEST_F(LineageRepairTest, into_a_cluster_with_more_transactions) {
  const OwnPostgres other;
  Pg here(other.url());
  advance(here, next_xid(here) + 20'000);
  expect_restored_and_repaired(OwnPostgres(), other);
}

TEST_F(LineageRepairTest, where_the_sequence_was_not_restored_and_the_default_partition_is_used) {
  in_default_ = true;
  expect_restored_and_repaired(OwnPostgres(), OwnPostgres(), false);
}

TEST_F(LineageRepairTest,
       an_attempt_that_was_interrupted_is_made_again_and_a_copy_of_the_copy_is_repaired) {
  const OwnPostgres original;
  make_history(original.url());
  std::string url = original.url();
  std::vector<std::unique_ptr<OwnPostgres>> copies;
  for (int i = 0; i < 2; ++i) {
    copies.push_back(std::make_unique<OwnPostgres>());
    make_roles(*copies.back());
    dump_to(folder_.file("dump"), url);
    url = copies.back()->url();
    restore_from(folder_.file("dump"), url);
    Pg(url).run("INSERT INTO outbox.witness VALUES (pg_current_xact_id())");
    EXPECT_FALSE(open_at(url)->check()) << "one row is not enough";
    ASSERT_TRUE(ok(open_at(url)->repair_lineage()));
  }
  enqueue_some(url, 10);
  expect_the_rest(url);
}

/// The transaction of another database in the cluster writes no events, but verify would take the
/// first settlement after the repair for a wrong one.
class LineageRepairWhileOpenTest : public LineageRepairTest,
                                   public ::testing::WithParamInterface<bool> {};

TEST_P(LineageRepairWhileOpenTest, what_a_transaction_writes_that_began_before_is_delivered) {
  const OwnPostgres original;
  make_history(original.url());
  const OwnPostgres other;
  make_roles(other);
  Pg late(other.url());
  late.run("BEGIN; SELECT pg_current_xact_id()");
  dump_to(folder_.file("dump"), original.url());
  restore_from(folder_.file("dump"), other.url(), GetParam());
  ASSERT_TRUE(ok(open_at(other.url())->repair_lineage()));
  enqueue_some(other.url(), 10);
  deliver_all(other.url(), {"all"});
  enqueue(late, "late");
  late.run("COMMIT");
  expect_the_rest(other.url());
}

// A restore in one transaction has the id after that of the transaction that is open.
INSTANTIATE_TEST_SUITE_P(restored, LineageRepairWhileOpenTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "at_once" : "in_parts"; });

TEST_F(LineageRepairTest, what_is_no_restore_is_refused_and_nothing_changes) {
  const OwnPostgres original;
  make_history(original.url());
  const OwnPostgres other;
  make_roles(other);
  dump_to(folder_.file("dump"), original.url());
  restore_from(folder_.file("dump"), other.url());
  Pg here(other.url());
  const auto refused = [&](const std::string& why) {
    const auto repaired = open_at(other.url())->repair_lineage();
    ASSERT_FALSE(repaired) << why;
    EXPECT_THAT(repaired.error().message, HasSubstr(why));
    EXPECT_FALSE(open_at(other.url())->check());
  };
  here.run("CREATE TABLE kept AS SELECT * FROM outbox.settlement; DELETE FROM outbox.settlement");
  refused("has no cursor");
  here.run("INSERT INTO outbox.settlement OVERRIDING SYSTEM VALUE SELECT * FROM kept");
  here.run("CREATE TABLE kept_witness AS SELECT * FROM outbox.witness; DELETE FROM outbox.witness");
  refused("does not say of which database");
  here.run("INSERT INTO outbox.witness SELECT * FROM kept_witness");
  ASSERT_TRUE(ok(open_at(other.url())->repair_lineage()));
  expect_the_rest(other.url());
}

/// The repair must know a migration's new columns that hold transaction ids or snapshots.
TEST_F(LineageRepairTest, it_knows_every_column_that_holds_transaction_ids) {
  const PostgresDatabase database;
  EXPECT_EQ(
      database.connect().value(
          "SELECT string_agg(c.relname || '.' || a.attname, ' ' ORDER BY c.relname, a.attname) FROM pg_attribute a "
          "JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p') AND NOT c.relispartition "
          "WHERE c.relnamespace = 'outbox'::regnamespace AND a.attnum > 0 "
          "AND a.atttypid IN ('xid8'::regtype, 'xid'::regtype, 'pg_snapshot'::regtype)"),
      "event.xid pruned.end_xid pruned.first_xid settlement.s1 settlement.s2 settlement.w witness.x");
}

TEST_F(LineageRepairTest, pg_upgrade_keeps_the_lineage) {
  const std::string programs = *environment("OUTBOX_TEST_PGBIN");
  if (access((programs + "/pg_upgrade").c_str(), X_OK) != 0)
    GTEST_SKIP() << "needs pg_upgrade in " << programs;
  OwnPostgres old;
  make_history(old.url());
  OwnPostgres upgraded;
  old.stop();
  upgraded.stop();
  ChildProcess upgrade(
      {.command = {"/bin/sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh", upgraded.folder(),
                   programs + "/pg_upgrade", "-b", programs, "-B", programs, "-d", old.data(), "-D",
                   upgraded.data(), "-U", "postgres"},
       .output = folder_.file("pg_upgrade.log"),
       .user = "postgres"});
  ASSERT_EQ(upgrade.wait(seconds(120)), 0);
  upgraded.start();
  EXPECT_TRUE(ok(open_at(upgraded.url())->check()));
  const auto plan = open_at(upgraded.url())->plan_lineage_repair();
  ASSERT_TRUE(ok(plan));
  EXPECT_FALSE(plan->needed);
  enqueue_some(upgraded.url(), 10);
  expect_the_rest(upgraded.url());
}

}  // namespace
}  // namespace outbox::test
