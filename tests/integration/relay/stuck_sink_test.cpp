// Tests that a sink that does not return from a call delays its own subscription and nothing else,
// and what a stop reports.
#include <condition_variable>

#include "integration/relay/harness.hpp"
#include "store/store.hpp"
#include "support/eventually.hpp"
#include "support/sqlite_shop.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A gate that opens for all waiting threads at once.
class Gate {
 public:
  void open() {
    {
      const std::scoped_lock lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void wait_for_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_{false};
  int waiting_{0};
};

/// A sink whose every delivery waits at the gate.
class GatedSink final : public BatchSink {
 public:
  GatedSink(std::shared_ptr<Gate> gate, std::shared_ptr<Arrivals> destination)
      : gate_(std::move(gate)), destination_(std::move(destination)) {}
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "gated", .gapless = true};
  }
  [[nodiscard]] Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& /*failure*/) override {
    gate_->pass();
    for (const Message& message : batch) destination_->arrive(to_delivery(message));
    return batch.size();
  }

 private:
  std::shared_ptr<Gate> gate_;
  std::shared_ptr<Arrivals> destination_;
};

class StuckSink : public ::testing::Test {
 protected:
  StuckSink() {
    migrate_sqlite(path_);
    options_.store_url = "sqlite:" + path_;
    options_.subscriptions = {custom("stuck"), custom("well")};
    relay_ = make_relay(options_);
    (void)relay_->use("stuck", std::make_unique<GatedSink>(gate_, arrived_));
    well_ = record(*relay_, "well");
  }
  ~StuckSink() override { gate_->open(); }

  void write(int events) {
    SqliteFile file(path_);
    for (int i = 0; i < events; ++i) {
      (void)file.exec(
          "INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload) "
          "VALUES ('order', '1', 'OrderPaid', '{}')");
    }
  }
  void start_and_get_stuck() {
    write(3);
    ASSERT_TRUE(relay_->start());
    gate_->wait_for_somebody();
    // The test waits for the settlement, too: a loop that has something to settle gets no more time
    // than one that is stuck.
    ASSERT_TRUE(eventually([&] {
      const SubscriptionReport well = read_report(*relay_, "well");
      return well.delivered == 3 && well.in_window == 0;
    }));
  }
  std::unique_ptr<store::Catalog> catalog() {
    store_ = store::open_store({.url = options_.store_url}).value();
    return store_->catalog().value();
  }
  [[nodiscard]] std::string read_state(const std::string& name) const {
    for (const auto& one : relay_->report().subscriptions) {
      if (one.name == name) return one.state;
    }
    return "";
  }

  const TempDir folder_;
  const std::string path_ = folder_.file("shop.db");
  RelayOptions options_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  const std::shared_ptr<Arrivals> arrived_ = std::make_shared<Arrivals>();
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Relay> relay_;
  std::shared_ptr<const testing::Recording> well_;
};

TEST_F(StuckSink, does_not_keep_the_relay_from_stopping) {
  start_and_get_stuck();
  const StopReport report = relay_->stop(milliseconds(100));
  EXPECT_FALSE(report.drained);
  EXPECT_EQ(report.abandoned, 3U);
  // Another relay gets the lanes at once, and delivers what was in doubt.
  const auto next = make_relay(options_);
  const auto again = record(*next, "stuck");
  const auto well = record(*next, "well");
  (void)delivered_once(*next);
  EXPECT_EQ(again->events().size(), 3U);
  EXPECT_TRUE(well->events().empty());
}

TEST_F(StuckSink, can_be_paused_and_the_others_follow_their_changes) {
  options_.lease = seconds(4);
  relay_ = make_relay(options_);
  ASSERT_TRUE(relay_->use("stuck", std::make_unique<GatedSink>(gate_, arrived_)));
  well_ = record(*relay_, "well");
  start_and_get_stuck();
  const auto subscriptions = catalog();
  ASSERT_TRUE(subscriptions->pause("stuck", "by the test"));
  ASSERT_TRUE(eventually([&] { return read_state("stuck") == "paused"; }));
  ASSERT_TRUE(subscriptions->pause("well", "by the test"));
  ASSERT_TRUE(eventually([&] { return read_state("well") == "paused"; }));
  ASSERT_TRUE(subscriptions->resume("well"));
  write(1);
  EXPECT_TRUE(well_->wait_for(4, seconds(30)));
  // After the resume the subscription cannot start before the call has ended. Then it continues by
  // itself.
  ASSERT_TRUE(subscriptions->resume("stuck"));
  ASSERT_TRUE(eventually([&] { return read_state("stuck") == "broken"; }));
  gate_->open();
  EXPECT_TRUE(eventually([&] { return read_state("stuck") == "delivering"; }));
  EXPECT_TRUE(eventually([&] { return arrived_->count() >= 4; }));
  EXPECT_TRUE(relay_->stop(seconds(30)).drained);
  EXPECT_EQ(arrived_->count(), 4U) << "what the call delivered in the end was known";
}

TEST_F(StuckSink, that_never_returns_is_left_behind) {
  start_and_get_stuck();
  (void)relay_->stop(milliseconds(0));
  relay_.reset();
  gate_->open();
  EXPECT_TRUE(eventually([&] { return arrived_->count() == 3; }));
}

TEST_F(StuckSink, once_it_returns_the_relay_can_start_again) {
  start_and_get_stuck();
  EXPECT_FALSE(relay_->stop(milliseconds(0)).drained);
  gate_->open();
  write(2);
  ASSERT_TRUE(eventually([&] { return arrived_->count() == 3; }));
  for (int round = 0; round < 2; ++round) (void)delivered_once(*relay_);
  EXPECT_EQ(arrived_->count(), 5U);
  EXPECT_EQ(well_->events().size(), 5U);
}

TEST_F(StuckSink, what_was_acked_and_could_not_be_settled_is_said_at_the_stop) {
  gate_->open();
  options_.settle_interval = std::chrono::hours(1);
  options_.subscriptions = {custom("well")};
  relay_ = make_relay(options_);
  well_ = record(*relay_, "well");
  ASSERT_TRUE(relay_->start());
  write(1);
  ASSERT_TRUE(well_->wait_for(1, seconds(30)));
  SqliteFile application(path_);
  (void)application.exec("BEGIN IMMEDIATE");
  EXPECT_FALSE(relay_->stop(milliseconds(100)).drained);
  (void)application.exec("COMMIT");
}

}  // namespace
}  // namespace outbox::test
