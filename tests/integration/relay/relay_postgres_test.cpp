// Tests what a relay on PostgreSQL costs in statements and memory, also at rest, and that a stop
// repeats nothing.
#include <sys/resource.h>

#include <atomic>
#include <outbox/postgres.hpp>

#include "integration/relay/relay_on_postgres.hpp"
#include "support/ledger_check.hpp"
#include "support/sanitized.hpp"
#include "support/shop.hpp"

namespace outbox::test {
namespace {

TEST_F(RelayOnPostgres, a_backlog_costs_a_few_statements_per_thousand_events) {
  constexpr int kThousands = 50;
  options_.subscriptions = {custom("all")};
  // Only work is counted, and not what a slow machine settles and polls because of the time that it
  // takes.
  options_.settle_interval = std::chrono::minutes(10);
  options_.idle_poll = std::chrono::minutes(10);
  write(kThousands * 1000);
  const auto relay = make_relay(options_);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(
      eventually([&] { return read_report(*relay, "all").delivered >= kThousands * 1000; }));
  const std::uint64_t statements = relay->report().statements;
  RecordProperty("statements_per_1000_events",
                 std::to_string(static_cast<double>(statements) / kThousands));
  // A page takes one statement, or four where the plan settings are not in force. A settlement of
  // about 1000 events takes four.
  EXPECT_LE(statements, 12U * kThousands + 100U);
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(all->events().size(), kThousands * 1000U);
}

TEST_F(RelayOnPostgres, at_rest_it_reads_and_writes_nothing) {
  options_.subscriptions = {custom("all")};
  options_.idle_poll = std::chrono::milliseconds(5);
  options_.wake_up = false;
  const auto relay = make_relay(options_);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  write(10);
  Pg connection(database().url());
  const auto settled = [&connection] {
    return std::stoi(connection.value("SELECT count(*) FROM outbox.settlement"));
  };
  ASSERT_TRUE(eventually([&] { return is_at_rest(*relay, "all", 10); }));
  // A cursor far behind the cluster's xids is moved once after the start; then nothing is written
  // any more.
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
  const auto relay = make_relay(options_);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  write(1);
  ASSERT_TRUE(eventually([&] { return is_at_rest(*relay, "all", 1); }));
  EXPECT_EQ(all->events().size(), 1U);
  Pg connection(database().url());
  const std::string newest = "SELECT max(id) FROM outbox.settlement WHERE kind = 'settle'";
  const std::string before = connection.value(newest);
  // Others use up the sequence. A cursor that did not follow would give the next reader too low a
  // floor.
  connection.exec("SELECT nextval('outbox.event_seq') FROM generate_series(1, 10001)");
  EXPECT_TRUE(eventually([&] { return connection.value(newest) != before; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(ledger_fault(connection, "all"), "");
}

TEST_F(RelayOnPostgres, it_wakes_for_every_way_of_writing) {
  options_.subscriptions = {custom("all")};
  options_.idle_poll = std::chrono::minutes(10);  // too long to wait for
  const auto relay = make_relay(options_);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  Pg connection(database().url());
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
        tx.enqueue({.aggregate_type = "Order",
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

/// The most memory that this process has had, in bytes.
std::size_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

/// A sink that acks everything and keeps only sizes.
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
  const auto relay = make_relay(options_);
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
  // The relay has delivered 60 MiB. The window, and what libpq and the renderer hold of one page,
  // are far less.
  RecordProperty("grown_bytes", std::to_string(grown));
  if (!kSanitized) {
    EXPECT_LT(grown, std::size_t{32} << 20U);
  }
}

TEST_F(RelayOnPostgres, stopping_in_the_middle_loses_and_repeats_nothing) {
  options_.subscriptions = {custom("scattered")};
  Shop shop(database().url(), {.writers = 6, .transactions = 0});
  shop.start();
  const auto destination = std::make_shared<Arrivals>();
  for (int round = 0; round < 8; ++round) {
    const auto relay = make_relay(options_);
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
  const auto relay = make_relay(options_);
  ASSERT_TRUE(
      relay->use("scattered", std::make_unique<ScatterSink>(destination, ScatterOptions{})));
  (void)delivered_once(*relay);
  expect_exactly_once(shop.attempts(), destination->all(), "scattered");
  Pg connection(database().url());
  EXPECT_EQ(ledger_fault(connection, "scattered"), "");
}

}  // namespace
}  // namespace outbox::test
