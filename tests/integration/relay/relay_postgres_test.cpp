// The relay on PostgreSQL, without the storm: cost, idling, rejection, pause, change, large events.
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <future>
#include <outbox/postgres.hpp>

#include "integration/relay/harness.hpp"
#include "store/store.hpp"
#include "support/ledger_check.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/testkit.hpp"

namespace outbox::test {
namespace {

/// A subscription that a rejected event stops.
SubscriptionSpec stopping(const std::string& name) {
  SubscriptionSpec spec = custom(name);
  spec.on_reject = "stop";
  return spec;
}

class RelayOnPostgres : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    options_.store_url = database_->url();
  }

  [[nodiscard]] const PostgresDatabase& database() const { return *database_; }
  [[nodiscard]] std::unique_ptr<store::Catalog> catalog() const {
    auto store = store::open_store(
        {.url = database_->url(), .schema = "outbox", .application = "outbox test"});
    return std::move((*store)->catalog().value());
  }
  [[nodiscard]] store::SubscriptionRow row(const std::string& name) const {
    const auto rows = catalog()->subscriptions();
    for (const auto& row : *rows) {
      if (row.spec.name == name) return row;
    }
    return {};
  }
  /// Compares one report: the sink may have an event before it is reported.
  static bool is_at_rest(const Relay& relay, const std::string& name, std::uint64_t delivered) {
    const SubscriptionReport report = report_of(relay, name);
    return report.delivered == delivered && report.in_window == 0;
  }
  /// Enqueues `count` small events, in one statement.
  void write(int count, const std::string& key = "k",
             const std::string& type = "OrderPlaced") const {
    database_->connect().exec(
        "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) "
        "SELECT 'Order', $1, $2, ('{\"n\": ' || n || '}')::jsonb FROM generate_series(1, $3::int) n",
        {key, type, std::to_string(count)});
  }

  /// From now on for longer than the lease, which must be 10 s.
  void renews_past_the_lease() const {
    Pg connection(database_->url());
    const std::string begun = connection.value("SELECT clock_timestamp()");
    EXPECT_TRUE(eventually([&] {
      return connection.value(
                 "SELECT count(*) FROM outbox.relay WHERE heartbeat_at > $1::timestamptz + '12 s'",
                 begun) == "1";
    }));
  }

  /// Until the trigger is dropped, a statement on the subscriptions fails as one does that met a deadlock.
  static void break_subscriptions(Pg& person, const std::string& statement) {
    person.exec(
        "CREATE FUNCTION public.deadlock() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'a deadlock' USING ERRCODE = '40P01'; END $$");
    person.exec("CREATE TRIGGER broken BEFORE " + statement +
                " ON outbox.subscription FOR EACH ROW EXECUTE FUNCTION public.deadlock()");
  }

  RelayOptions options_;

 private:
  std::unique_ptr<PostgresDatabase> database_;
};

TEST_F(RelayOnPostgres, a_backlog_costs_a_few_statements_per_thousand_events) {
  constexpr int kThousands = 50;
  options_.subscriptions = {custom("all")};
  // Counts work only, not what a slow machine settles and polls because of the time it takes.
  options_.settle_interval = std::chrono::minutes(10);
  options_.idle_poll = std::chrono::minutes(10);
  write(kThousands * 1000);
  const auto relay = relay_of(options_);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return report_of(*relay, "all").delivered >= kThousands * 1000; }));
  const std::uint64_t statements = relay->report().statements;
  RecordProperty("statements_per_1000_events",
                 std::to_string(static_cast<double>(statements) / kThousands));
  // A page: one statement, or four where the plan settings are not in force. A settlement of about 1000: four.
  EXPECT_LE(statements, 12U * kThousands + 100U);
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(all->events().size(), kThousands * 1000U);
}

TEST_F(RelayOnPostgres, at_rest_it_reads_and_writes_nothing) {
  options_.subscriptions = {custom("all")};
  options_.idle_poll = std::chrono::milliseconds(5);
  options_.wake_up = false;
  const auto relay = relay_of(options_);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  write(10);
  Pg connection(database().url());
  const auto settled = [&connection] {
    return std::stoi(connection.value("SELECT count(*) FROM outbox.settlement"));
  };
  ASSERT_TRUE(eventually([&] { return is_at_rest(*relay, "all", 10); }));
  // A cursor far behind the cluster's xids is moved once after the start; then nothing is written any more.
  const auto rests = [&] {
    const int rows = settled();
    const std::uint64_t fetches = relay->report().fetches;
    return eventually([&] { return relay->report().fetches >= fetches + 200; }) &&
           settled() == rows;
  };
  EXPECT_TRUE(rests() || rests());
  EXPECT_EQ(all->events().size(), 10U);
}

TEST_F(RelayOnPostgres, a_quiet_cursor_follows_the_head) {
  options_.subscriptions = {custom("all")};
  const auto relay = relay_of(options_);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  write(1);
  ASSERT_TRUE(eventually([&] { return is_at_rest(*relay, "all", 1); }));
  EXPECT_EQ(all->events().size(), 1U);
  Pg connection(database().url());
  const std::string newest = "SELECT max(id) FROM outbox.settlement WHERE kind = 'settle'";
  const std::string before = connection.value(newest);
  // Others use up the sequence: a cursor that did not follow would give the next reader too low a floor.
  connection.exec("SELECT nextval('outbox.event_seq') FROM generate_series(1, 10001)");
  EXPECT_TRUE(eventually([&] { return connection.value(newest) != before; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(ledger_fault(connection, "all"), "");
}

TEST_F(RelayOnPostgres, it_wakes_for_every_way_of_writing) {
  options_.subscriptions = {custom("all")};
  options_.idle_poll = std::chrono::minutes(10);  // too long to wait for
  const auto relay = relay_of(options_);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  Pg connection(database().url());
  const postgres::Outbox box;
  std::size_t written = 0;
  const std::vector<std::function<void()>> ways = {
      [&] { connection.exec("SELECT outbox.enqueue('Order', '1', 'OrderPlaced', '{}'::jsonb)"); },
      [&] {
        connection.exec(
            "SELECT outbox.enqueue_many('[{\"aggregate_type\": \"Order\", \"aggregate_id\": \"1\", "
            "\"event_type\": \"OrderPlaced\", \"payload\": {}}]')");
      },
      [&] { write(1); },
      [&] {
        postgres::Transaction tx(connection.native());
        box.enqueue(tx, {.aggregate_type = "Order",
                         .aggregate_id = "1",
                         .event_type = "OrderPlaced",
                         .payload = "{}"});
        tx.commit();
      },
  };
  const auto sleeps = [&] {
    return connection.value(
               "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted "
               "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") !=
           "0";
  };
  for (int round = 0; round < 5; ++round) {
    for (const auto& way : ways) {
      ASSERT_TRUE(eventually(sleeps)) << "it does not arm";
      way();
      ++written;
      ASSERT_TRUE(eventually([&] { return all->events().size() == written; }))
          << "not woken by way " << written;
    }
  }
}

TEST_F(RelayOnPostgres, a_rejected_event_stops_its_subscription_only_and_nothing_is_skipped) {
  options_.subscriptions = {stopping("strict"), custom("lenient")};
  const auto relay = relay_of(options_);
  const auto lenient = record(*relay, "lenient");
  const auto forgiving = std::make_shared<std::atomic<bool>>(false);
  auto strict_sink = std::make_unique<testing::FailingSink>([forgiving](const EventView& event) {
    return event.event_type == "Poison" && !*forgiving ? Outcome::Kind::rejected
                                                       : Outcome::Kind::acked;
  });
  const auto strict = strict_sink->recording();
  ASSERT_TRUE(relay->use("strict", std::move(strict_sink)));
  write(5);
  write(1, "k", "Poison");
  write(5);
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return row("strict").state == store::SubscriptionState::stopped; }));
  ASSERT_TRUE(eventually([&] { return lenient->events().size() == 11; }));
  const auto stopped = row("strict");
  EXPECT_EQ(stopped.stopped_seq, lenient->events()[5].seq);
  EXPECT_EQ(stopped.stopped_event, lenient->events()[5].id.str());
  EXPECT_FALSE(stopped.reason.empty());
  EXPECT_EQ(strict->events().size(), 5U);
  EXPECT_EQ(row("lenient").state, store::SubscriptionState::active);

  // Resumed, it stops at the same event again.
  ASSERT_TRUE(catalog()->resume("strict"));
  ASSERT_TRUE(eventually([&] { return row("strict").state == store::SubscriptionState::stopped; }));
  EXPECT_EQ(strict->events().size(), 5U);
  EXPECT_EQ(row("strict").stopped_seq, stopped.stopped_seq);

  // The cause is fixed.
  *forgiving = true;
  ASSERT_TRUE(catalog()->resume("strict"));
  ASSERT_TRUE(eventually([&] { return strict->events().size() == 11; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(strict->events()[i].seq, lenient->events()[i].seq);
  EXPECT_EQ(row("strict").state, store::SubscriptionState::active);
  Pg connection(database().url());
  EXPECT_EQ(ledger_fault(connection, "strict"), "");
}

TEST_F(RelayOnPostgres, a_rejection_that_cannot_be_written_down_yet_stops_nobody_else) {
  options_.subscriptions = {stopping("strict"), custom("lenient")};
  const auto relay = relay_of(options_);
  const auto lenient = record(*relay, "lenient");
  auto strict_sink = std::make_unique<testing::FailingSink>(
      [](const EventView&) { return Outcome::Kind::rejected; });
  ASSERT_TRUE(relay->use("strict", std::move(strict_sink)));
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return relay->report().owner; }));
  const std::int64_t generation = relay->report().generation;
  Pg person(database().url());
  person.exec("BEGIN");
  person.exec("UPDATE outbox.subscription SET changed_at = now() WHERE name = 'strict'");
  write(1);
  ASSERT_TRUE(eventually([&] { return report_of(*relay, "strict").state == "stopped"; }));
  // A relay that waited for the row would notice this only after half a minute, and start again.
  ASSERT_TRUE(catalog()->pause("lenient", "to see that it is noticed"));
  ASSERT_TRUE(eventually([&] { return report_of(*relay, "lenient").state == "paused"; }));
  EXPECT_EQ(row("strict").state, store::SubscriptionState::active);
  person.exec("COMMIT");
  EXPECT_TRUE(eventually([&] { return row("strict").state == store::SubscriptionState::stopped; }));
  EXPECT_EQ(relay->report().generation, generation);
}

TEST_F(RelayOnPostgres, a_write_about_a_subscription_that_fails_for_a_while_ends_no_delivery) {
  options_.subscriptions = {stopping("strict"), custom("lenient")};
  const auto relay = relay_of(options_);
  const auto lenient = record(*relay, "lenient");
  auto strict_sink = std::make_unique<testing::FailingSink>(
      [](const EventView&) { return Outcome::Kind::rejected; });
  ASSERT_TRUE(relay->use("strict", std::move(strict_sink)));
  ASSERT_TRUE(relay->start());
  Pg person(database().url());
  const auto oldest_session = [&] {
    return person.value(
        "SELECT min(backend_start) FROM pg_stat_activity WHERE application_name LIKE 'outbox relay%'");
  };
  const std::string before = oldest_session();
  break_subscriptions(person, "UPDATE");
  write(1);
  ASSERT_TRUE(eventually([&] { return !relay->report().last_error.empty(); }));
  write(10);
  EXPECT_TRUE(eventually([&] { return lenient->events().size() == 11; }));
  person.exec("DROP TRIGGER broken ON outbox.subscription");
  EXPECT_TRUE(eventually([&] { return row("strict").state == store::SubscriptionState::stopped; }));
  EXPECT_EQ(oldest_session(), before) << "it connected again";
}

TEST_F(RelayOnPostgres, start_returns_although_its_configuration_cannot_be_applied_yet) {
  options_.subscriptions = {custom("a")};
  const auto relay = relay_of(options_);
  const auto delivered = record(*relay, "a");
  write(1);
  Pg person(database().url());
  break_subscriptions(person, "INSERT");
  ASSERT_TRUE(relay->start());
  EXPECT_FALSE(relay->report().last_error.empty());
  person.exec("DROP TRIGGER broken ON outbox.subscription");
  EXPECT_TRUE(eventually([&] { return delivered->events().size() == 1; }));
}

TEST_F(RelayOnPostgres,
       a_destination_that_is_down_pauses_its_subscription_and_it_goes_on_by_itself) {
  options_.subscriptions = {custom("weak"), custom("strong")};
  const auto relay = relay_of(options_);
  const auto strong = record(*relay, "strong");
  const auto down = std::make_shared<std::atomic<bool>>(true);
  auto weak_sink = std::make_unique<testing::FailingSink>(
      [down](const EventView&) { return *down ? Outcome::Kind::blocked : Outcome::Kind::acked; });
  const auto weak = weak_sink->recording();
  ASSERT_TRUE(relay->use("weak", std::move(weak_sink)));
  ASSERT_TRUE(relay->start());
  write(20);
  ASSERT_TRUE(eventually([&] { return strong->events().size() == 20; }));
  ASSERT_TRUE(eventually([&] { return report_of(*relay, "weak").state == "backing-off"; }));
  EXPECT_EQ(row("weak").state, store::SubscriptionState::active) << "an outage is not a decision";
  EXPECT_TRUE(weak->events().empty());
  *down = false;
  ASSERT_TRUE(eventually([&] { return weak->events().size() == 20; }));
  write(5);
  ASSERT_TRUE(eventually([&] { return weak->events().size() == 25; }));
}

TEST_F(RelayOnPostgres, a_pause_and_a_change_take_effect_while_others_deliver) {
  options_.subscriptions = {custom("one"), custom("other")};
  const auto relay = relay_of(options_);
  const auto one = record(*relay, "one");
  const auto other = record(*relay, "other");
  ASSERT_TRUE(relay->start());
  Shop shop(database().url(), {.writers = 4, .transactions = 0});
  shop.start();
  ASSERT_TRUE(eventually([&] { return one->events().size() > 50; }));

  ASSERT_TRUE(catalog()->pause("one", "by a person"));
  ASSERT_TRUE(eventually([&] { return report_of(*relay, "one").state == "paused"; }));
  EXPECT_EQ(report_of(*relay, "one").reason, "by a person");
  const std::size_t paused_at = one->events().size();
  const std::size_t other_at = other->events().size();
  ASSERT_TRUE(eventually([&] { return other->events().size() > other_at + 100; }));
  EXPECT_EQ(one->events().size(), paused_at);

  ASSERT_TRUE(catalog()->resume("one"));
  ASSERT_TRUE(eventually([&] { return one->events().size() > paused_at + 100; }));

  // A changed topic counts from the cursor on.
  SubscriptionSpec changed = custom("one");
  changed.topic = "renamed";
  ASSERT_TRUE(catalog()->apply(changed).value());
  ASSERT_TRUE(eventually([&] {
    const auto events = one->events();
    return !events.empty() && events.back().topic == "renamed";
  }));
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] {
    return one->events().size() >= committed(attempts) &&
           other->events().size() >= committed(attempts);
  }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  expect_exactly_once(attempts, deliveries_of(*one), "one");
  expect_exactly_once(attempts, deliveries_of(*other), "other");
  bool renamed = false;
  for (const auto& event : one->events()) {
    EXPECT_FALSE(renamed && event.topic != "renamed");
    renamed = renamed || event.topic == "renamed";
  }
}

TEST_F(RelayOnPostgres, a_new_subscription_starts_at_the_beginning_or_now) {
  write(30);
  options_.subscriptions = {custom("early")};
  const auto relay = relay_of(options_);
  const auto early = record(*relay, "early");
  const auto fresh = record(*relay, "fresh");
  const auto complete = record(*relay, "complete");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return early->events().size() == 30; }));
  SubscriptionSpec now = custom("fresh");
  now.start = "now";
  ASSERT_TRUE(catalog()->apply(now).value());
  ASSERT_TRUE(catalog()->apply(custom("complete")).value());
  ASSERT_TRUE(eventually([&] { return complete->events().size() == 30; }));
  write(7);
  ASSERT_TRUE(
      eventually([&] { return early->events().size() == 37 && complete->events().size() == 37; }));
  ASSERT_TRUE(eventually([&] { return fresh->events().size() == 7; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(fresh->events().size(), 7U);
  EXPECT_EQ(fresh->events().front().seq, early->events()[30].seq);
}

TEST_F(RelayOnPostgres, start_now_does_not_lose_what_was_in_flight) {
  // The writer has taken its seq before the subscription exists and commits after: it is not "before now".
  OpenSale open(database().url(), "late");
  write(3);
  SubscriptionSpec now = custom("fresh");
  now.start = "now";
  options_.subscriptions = {now};
  const auto relay = relay_of(options_);
  const auto fresh = record(*relay, "fresh");
  ASSERT_TRUE(relay->start());
  open.commit();
  write(2, "after");
  ASSERT_TRUE(eventually([&] { return fresh->events().size() >= 3; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(fresh->events().size(), 3U);
}

TEST_F(RelayOnPostgres, a_sink_that_hangs_while_its_subscription_is_paused_costs_nobody_the_lease) {
  options_.subscriptions = {custom("hanging"), custom("fine")};
  options_.lease =
      std::chrono::seconds(10);  // a machine that is suspended for a while must not end it
  const auto relay = relay_of(options_);
  const auto fine = record(*relay, "fine");
  const auto arrived = std::make_shared<Destination>();
  const auto released = std::make_shared<std::atomic<bool>>(false);
  ASSERT_TRUE(relay->use("hanging", std::make_unique<HoldingSink>(arrived, released)));
  write(3);
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually(
      [&] { return fine->events().size() == 3 && report_of(*relay, "hanging").in_window == 3; }));
  const std::int64_t generation = relay->report().generation;
  ASSERT_TRUE(catalog()->pause("hanging", "it hangs"));
  ASSERT_TRUE(eventually([&] { return report_of(*relay, "hanging").state == "paused"; }));
  write(2);
  ASSERT_TRUE(eventually([&] { return fine->events().size() == 5; }));
  renews_past_the_lease();
  EXPECT_EQ(relay->report().generation, generation);
  *released = true;
  ASSERT_TRUE(catalog()->resume("hanging"));
  EXPECT_TRUE(eventually([&] { return arrived->count() == 5; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(arrived->count(), 5U);
}

TEST_F(RelayOnPostgres,
       what_only_a_person_can_mend_is_in_the_status_and_a_stop_gives_the_lanes_back) {
  options_.subscriptions = {custom("all")};
  const auto relay = relay_of(options_);
  const auto all = record(*relay, "all");
  write(20);
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return is_at_rest(*relay, "all", 20); }));
  ASSERT_TRUE(eventually_settled(database().url(), "all"));
  Pg connection(database().url());
  connection.exec("SELECT setval('outbox.event_seq', 1)");
  ASSERT_TRUE(eventually([&] { return row("all").trouble.find("event_seq") != std::string::npos; }))
      << row("all").trouble;
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(connection.value("SELECT count(*) FROM outbox.relay"), "0");
  EXPECT_EQ(connection.value("SELECT count(*) FROM outbox.lane WHERE owner IS NOT NULL"), "0");
  // Repaired: the trouble is cleared.
  connection.exec("SELECT setval('outbox.event_seq', 20)");
  const auto next = relay_of(options_);
  const auto more = record(*next, "all");
  ASSERT_TRUE(next->start());
  write(1);
  EXPECT_TRUE(eventually([&] { return more->events().size() == 1; }));
  EXPECT_TRUE(eventually([&] { return row("all").trouble.empty(); }));
}

TEST_F(RelayOnPostgres, a_stop_that_takes_longer_than_the_lease_is_still_in_order) {
  options_.subscriptions = {custom("hanging")};
  options_.lease =
      std::chrono::seconds(10);  // a machine that is suspended for a while must not end it
  const auto arrived = std::make_shared<Destination>();
  const auto released = std::make_shared<std::atomic<bool>>(false);
  const auto relay = relay_of(options_);
  ASSERT_TRUE(relay->use("hanging", std::make_unique<HoldingSink>(arrived, released)));
  write(3);
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return report_of(*relay, "hanging").in_window == 3; }));
  auto stopped =
      std::async(std::launch::async, [&] { return relay->stop(std::chrono::minutes(5)); });
  renews_past_the_lease();
  *released = true;
  const StopReport report = stopped.get();
  EXPECT_TRUE(report.drained);
  EXPECT_EQ(report.abandoned, 0U);
  EXPECT_EQ(arrived->count(), 3U);
  const auto next = relay_of(options_);
  ASSERT_TRUE(next->use("hanging", std::make_unique<HoldingSink>(arrived, released)));
  EXPECT_TRUE(next->run_once(std::chrono::seconds(60)));
  EXPECT_EQ(arrived->count(), 3U) << "nothing is left to repeat";
}

TEST_F(RelayOnPostgres, a_file_goes_on_when_its_subscription_is_changed) {
  const TempDir folder;
  SubscriptionSpec spec;
  spec.name = "lines";
  spec.sink = "file";
  spec.sink_settings["path"] = folder.file("lines.jsonl");
  options_.subscriptions = {spec};
  const auto relay = relay_of(options_);
  ASSERT_TRUE(relay->start());
  write(3);
  ASSERT_TRUE(eventually([&] { return lines_in(folder.file("lines.jsonl")) == 3; }));
  spec.topic = "changed";
  ASSERT_TRUE(catalog()->apply(spec).value());
  ASSERT_TRUE(eventually([&] { return row("lines").config_version == 2; }));
  write(3);
  EXPECT_TRUE(eventually([&] { return lines_in(folder.file("lines.jsonl")) == 6; }))
      << report_of(*relay, "lines").reason;
}

/// The most memory this process has had. Unit: bytes.
std::size_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

/// Its error is what a broken proxy might answer: not UTF-8, with a zero byte.
class GarbledSink final : public BatchSink {
 public:
  explicit GarbledSink(Outcome::Kind kind) : kind_(kind) {}
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "garbled", .gapless = true};
  }
  [[nodiscard]] Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> /*batch*/, Outcome& failure) override {
    failure.kind = kind_;
    failure.error.message = std::string("answer \xff\xfe, caf\xc3\xa9, end") + '\0' + "of it";
    return 0;
  }

 private:
  Outcome::Kind kind_;
};

TEST_F(RelayOnPostgres, a_reason_that_is_no_text_harms_nobody) {
  options_.subscriptions = {stopping("rejecting"), custom("down"), custom("well")};
  const auto relay = relay_of(options_);
  const auto well = record(*relay, "well");
  ASSERT_TRUE(relay->use("rejecting", std::make_unique<GarbledSink>(Outcome::Kind::rejected)));
  ASSERT_TRUE(relay->use("down", std::make_unique<GarbledSink>(Outcome::Kind::blocked)));
  ASSERT_TRUE(relay->start());
  const std::int64_t generation = relay->report().generation;
  write(5);
  ASSERT_TRUE(
      eventually([&] { return row("rejecting").state == store::SubscriptionState::stopped; }));
  ASSERT_TRUE(eventually([&] { return !row("down").trouble.empty(); }));
  EXPECT_EQ(row("rejecting").reason, "answer ??, caf\xc3\xa9, end?of it");
  EXPECT_EQ(row("down").trouble, row("rejecting").reason);
  write(5);
  ASSERT_TRUE(eventually([&] { return well->events().size() == 10; }));
  EXPECT_EQ(relay->report().generation, generation) << "the lanes were given up for it";
}

/// Acks everything and keeps only sizes.
class SizeSink final : public BatchSink {
 public:
  explicit SizeSink(std::shared_ptr<std::vector<std::size_t>> sizes,
                    std::shared_ptr<std::atomic<std::size_t>> count)
      : sizes_(std::move(sizes)), count_(std::move(count)) {}
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "size", .gapless = true};
  }
  [[nodiscard]] Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& /*failure*/) override {
    for (const Message& message : batch) sizes_->push_back(message.body.size());
    count_->fetch_add(batch.size());
    return batch.size();
  }

 private:
  std::shared_ptr<std::vector<std::size_t>> sizes_;
  std::shared_ptr<std::atomic<std::size_t>> count_;
};

TEST_F(RelayOnPostgres, large_events_among_small_ones_stay_within_a_small_window) {
  constexpr std::size_t kLarge = (std::size_t{1} << 20U) - 2;
  constexpr int kRounds = 60;
  Pg connection(database().url());
  for (int round = 0; round < kRounds; ++round) {
    connection.exec(
        "SELECT outbox.enqueue('Doc', $1, 'Scanned', to_json(repeat('x', $2::int))::text)",
        {std::to_string(round), std::to_string(kLarge)});
    write(20, std::to_string(round));
  }
  options_.subscriptions = {custom("sizes")};
  options_.window_bytes = std::size_t{4} << 20U;
  const auto relay = relay_of(options_);
  const auto sizes = std::make_shared<std::vector<std::size_t>>();
  const auto count = std::make_shared<std::atomic<std::size_t>>(0);
  ASSERT_TRUE(relay->use("sizes", std::make_unique<SizeSink>(sizes, count)));
  const std::size_t before = peak_memory();
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return *count == kRounds * 21U; })) << relay->report().last_error;
  const std::size_t grown = peak_memory() - before;
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(std::count(sizes->begin(), sizes->end(), kLarge + 2), kRounds);
  EXPECT_EQ(sizes->front(), kLarge + 2);
  // 60 MiB went through. The window and what libpq and the renderer hold of one page is far less.
  RecordProperty("grown_bytes", std::to_string(grown));
  EXPECT_LT(grown, std::size_t{32} << 20U);
}

TEST_F(RelayOnPostgres, stopping_in_the_middle_loses_and_repeats_nothing) {
  options_.subscriptions = {custom("scattered")};
  Shop shop(database().url(), {.writers = 6, .transactions = 0});
  shop.start();
  const auto destination = std::make_shared<Destination>();
  for (int round = 0; round < 8; ++round) {
    const auto relay = relay_of(options_);
    ASSERT_TRUE(
        relay->use("scattered", std::make_unique<ScatterSink>(destination, ScatterOptions{})));
    const std::size_t seen = destination->count();
    ASSERT_TRUE(relay->start());
    ASSERT_TRUE(eventually([&] { return destination->count() > seen + 60; }))
        << relay->report().last_error;
    EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  }
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto relay = relay_of(options_);
  ASSERT_TRUE(
      relay->use("scattered", std::make_unique<ScatterSink>(destination, ScatterOptions{})));
  const Status status = relay->run_once(std::chrono::seconds(60));
  EXPECT_TRUE(status) << status.error().text();
  expect_exactly_once(shop.attempts(), destination->all(), "scattered");
  Pg connection(database().url());
  EXPECT_EQ(ledger_fault(connection, "scattered"), "");
}

}  // namespace
}  // namespace outbox::test
