// Tests the loop of a subscription over a log in memory. The test can block the writes of progress.
#include "relay/subscription_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <outbox/testing.hpp>
#include <set>

#include "event/key.hpp"
#include "support/eventually.hpp"
#include "unit/feed/memory_log.hpp"

namespace outbox::relay {
namespace {

using std::chrono::seconds;
using test::eventually;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Outcome::Kind;

constexpr seconds kLimit{30};

/// The progress that was written, and the parked events. Writes block while the ledger is held.
struct Ledger {
  Mutex mutex;
  std::condition_variable_any changed;
  bool held OUTBOX_GUARDED_BY(mutex){false};
  std::vector<store::Settlement> rows OUTBOX_GUARDED_BY(mutex);
  /// The keys of the parked events, by seq. All of them are due.
  std::map<std::int64_t, std::string> parked OUTBOX_GUARDED_BY(mutex);
  std::set<std::int64_t> delivered OUTBOX_GUARDED_BY(mutex);  ///< Parked events that have ended.

  void hold(bool hold) {
    {
      const MutexLock lock(mutex);
      held = hold;
    }
    changed.notify_all();
  }
  void park(std::map<std::int64_t, std::string> events) {
    const MutexLock lock(mutex);
    parked = std::move(events);
    delivered.clear();
  }
  std::set<std::int64_t> left() {
    const MutexLock lock(mutex);
    return delivered;
  }
  std::int64_t acked() {
    const MutexLock lock(mutex);
    std::int64_t sum = 0;
    for (const auto& row : rows) sum += row.acked.count;
    return sum;
  }
};

class LedgerProgress final : public store::Progress {
 public:
  explicit LedgerProgress(Ledger& ledger) : ledger_(ledger) {}
  [[nodiscard]] Result<std::vector<store::Strand>> load(std::int32_t /*subscription*/,
                                                        store::LaneMask /*lanes*/) override {
    return std::vector<store::Strand>{};
  }
  [[nodiscard]] Status claim(std::int32_t /*subscription*/, store::LaneMask /*lanes*/,
                             std::int64_t /*generation*/) override {
    return {};
  }
  [[nodiscard]] Status begin_beside(std::int32_t /*base*/, std::int32_t /*subscription*/,
                                    store::LaneMask /*lanes*/,
                                    std::int64_t /*generation*/) override {
    return {};
  }
  [[nodiscard]] Result<store::ParkedKeys> parked_keys(std::int32_t /*subscription*/,
                                                      store::LaneMask /*lanes*/,
                                                      bool /*dead_block*/) override {
    return store::ParkedKeys{};
  }
  [[nodiscard]] Result<store::DueEvents> due(std::int32_t /*subscription*/,
                                             const store::Holding& /*holding*/,
                                             const store::DueLimits& /*limits*/,
                                             std::span<const store::AskedRow> /*asked*/) override {
    const MutexLock lock(ledger_.mutex);
    auto keys = std::make_shared<std::map<std::int64_t, std::string>>(ledger_.parked);
    store::DueEvents due{.rows = {}, .storage = keys, .next_in = {}};
    for (const auto& [seq, key] : *keys) {
      due.rows.emplace_back();
      due.rows.back().event.seq = seq;
      due.rows.back().event.aggregate_type = "order";
      due.rows.back().event.aggregate_id = key;
      due.rows.back().key = event::key_hash("order", key);
    }
    return due;
  }
  [[nodiscard]] Result<std::vector<store::ReleasedKey>> append(
      const store::ProgressBatch& batch, store::Durability /*durability*/) override {
    Ledger& ledger = ledger_;
    const MutexLock lock(ledger.mutex);
    ledger.changed.wait(ledger.mutex,
                        [&ledger]() OUTBOX_REQUIRES(ledger.mutex) { return !ledger.held; });
    ledger.rows.insert(ledger.rows.end(), batch.settlements.begin(), batch.settlements.end());
    for (const store::RetryResult& result : batch.results) {
      if (ledger.parked.erase(result.seq) != 0) ledger.delivered.insert(result.seq);
    }
    return std::vector<store::ReleasedKey>{};
  }
  [[nodiscard]] std::uint64_t statements() const override { return 0; }

 private:
  Ledger& ledger_;
};

store::SubscriptionRow row() {
  store::SubscriptionRow row;
  row.id = 3;
  row.config_version = 2;
  row.spec.name = "orders";
  row.spec.sink = "custom";
  row.spec.on_reject = OnReject::stop;
  return row;
}

class LoopTest : public ::testing::Test {
 protected:
  LoopTest() {
    trust_.extend_to(std::chrono::steady_clock::now() + std::chrono::hours(1));
    settler_->start();
    EXPECT_TRUE(pump_.start());
  }
  ~LoopTest() override {
    ledger_.hold(false);
    pump_.stop();
    loop_.reset();
  }

  void begin(std::unique_ptr<Sink> sink, std::vector<EventRef> acks = {}) {
    begin(RetainedSink{.sink = std::move(sink), .unsettled_acks = std::move(acks)});
  }
  void begin(RetainedSink retained, const store::ParkedKeys& blocked = {}, const Rate& rate = {}) {
    LoopOptions options{.settle_interval = std::chrono::milliseconds(0),
                        .holding = {.lanes = 0xFF, .generation = 7}};
    store::SubscriptionRow row = relay::row();
    row.spec.rate = rate;
    loop_ = std::make_unique<SubscriptionLoop>(
        row, format::Renderer::create(row.spec).value(),
        std::vector{store::Strand{.lanes = 0xFF, .cursor = {.s1 = "0"}}}, blocked, options,
        std::move(retained), *settler_, trust_,
        SubscriptionLoop::Listener{.room = [this] { pump_.room(); },
                                   .rejected = [this] { ++rejected_; },
                                   .distrusted = [this] { ++distrusted_; }});
    loop_->start();
    loop_->read_from(pump_);
  }
  std::shared_ptr<const outbox::testing::Recording> begin_recording(
      std::vector<EventRef> acks = {}) {
    auto sink = std::make_unique<outbox::testing::RecordingSink>();
    auto recording = sink->recording();
    begin(std::move(sink), std::move(acks));
    return recording;
  }

  feed::MemoryLog log_;
  Ledger ledger_;
  TrustDeadline trust_;
  std::atomic<int> rejected_{0};
  std::atomic<int> distrusted_{0};
  Totals counts_;
  std::unique_ptr<Settler> settler_ = std::make_unique<Settler>(
      std::make_unique<LedgerProgress>(ledger_), counts_, [](const Error&) {});
  feed::Pump pump_{std::make_unique<feed::MemoryReader>(log_),
                   std::make_unique<feed::NoWakeup>(),
                   {.page_rows = 3},
                   [](const Error& error) { FAIL() << error.message; }};
  std::unique_ptr<SubscriptionLoop> loop_;
};

TEST_F(LoopTest, delivers_what_is_committed_and_settles_it_under_its_name) {
  const auto recording = begin_recording();
  log_.commit(8);
  ASSERT_TRUE(recording->wait_for(8, kLimit));
  ASSERT_TRUE(eventually([this] { return ledger_.acked() == 8; }));
  EXPECT_TRUE(loop_->stop(kLimit, true));
  EXPECT_TRUE(loop_->drained());
  EXPECT_FALSE(loop_->has_unwritten_rows());
  EXPECT_EQ(loop_->window_events(), 0U);
  const MutexLock lock(ledger_.mutex);
  store::Cursor at{.s1 = "0"};
  for (const auto& row : ledger_.rows) {
    EXPECT_EQ(row.subscription, 3);
    EXPECT_EQ(row.generation, 7);
    EXPECT_EQ(row.config_version, 2);
    EXPECT_EQ(row.lanes, 0xFFU);
    EXPECT_EQ(row.s1, at.s1);
    at = row.end();
  }
  EXPECT_EQ(at, store::Cursor{.s1 = "8"});
}

TEST_F(LoopTest, what_could_not_be_settled_is_retained_with_the_sink) {
  ledger_.hold(true);
  const auto recording = begin_recording();
  log_.commit(2);
  ASSERT_TRUE(recording->wait_for(2, kLimit));
  ASSERT_TRUE(eventually([this] { return loop_->has_unwritten_rows(); }));
  loop_->stop_reading(pump_);
  EXPECT_TRUE(loop_->stop(std::chrono::milliseconds(0), true));
  EXPECT_TRUE(loop_->has_unwritten_rows());
  EXPECT_FALSE(loop_->drained());
  EXPECT_EQ(loop_->abandoned(), 2U);
  RetainedSink retained = loop_->take_sink();
  EXPECT_EQ(retained.unsettled_acks.size(), 2U);
  loop_.reset();
  ledger_.hold(false);
  // The next loop does not send the two events again.
  begin(std::move(retained.sink), std::move(retained.unsettled_acks));
  log_.commit(1);
  ASSERT_TRUE(recording->wait_for(3, kLimit));
  EXPECT_EQ(recording->events().back().seq, 3);
}

TEST_F(LoopTest, retries_that_may_not_have_been_written_are_retained_with_the_sink) {
  ledger_.hold(true);
  ledger_.park({{4, "a"}, {6, "b"}});
  auto sink = std::make_unique<outbox::testing::RecordingSink>();
  const auto recording = sink->recording();
  begin(RetainedSink{.sink = std::move(sink), .unsettled_acks = {}},
        {.keys = {{.key = event::key_hash("order", "a")}, {.key = event::key_hash("order", "b")}},
         .live = 2});
  ASSERT_TRUE(recording->wait_for(2, kLimit));
  ASSERT_TRUE(eventually([this] { return loop_->has_unwritten_rows(); }));
  loop_->stop_reading(pump_);
  EXPECT_TRUE(loop_->stop(std::chrono::milliseconds(0), true));
  EXPECT_EQ(loop_->abandoned(), 2U);
  RetainedSink retained = loop_->take_sink();
  EXPECT_THAT(retained.unsettled_acks, IsEmpty());
  EXPECT_EQ(retained.retry_acks.size(), 2U);
  loop_.reset();
  ledger_.hold(false);
  ASSERT_TRUE(eventually([this] { return ledger_.left() == std::set<std::int64_t>{4, 6}; }));
  // The rows are there again, as if the results had not been written. The next loop does not send
  // the two events again, but writes their results.
  ledger_.park({{4, "a"}, {6, "b"}, {7, "b"}});
  begin(std::move(retained),
        {.keys = {{.key = event::key_hash("order", "a")}, {.key = event::key_hash("order", "b")}},
         .live = 3});
  ASSERT_TRUE(eventually([this] { return ledger_.left() == std::set<std::int64_t>{4, 6, 7}; }));
  ASSERT_EQ(recording->events().size(), 3U);
  EXPECT_EQ(recording->events().back().seq, 7);
}

TEST_F(LoopTest, past_the_trust_deadline_nothing_is_sent) {
  const auto recording = begin_recording();
  log_.commit(1);
  ASSERT_TRUE(recording->wait_for(1, kLimit));
  trust_.end();
  log_.commit(1);
  ASSERT_TRUE(eventually([this] { return distrusted_ == 1; }));
  EXPECT_TRUE(loop_->stop(kLimit, false));
  EXPECT_EQ(recording->events().size(), 1U);
}

TEST_F(LoopTest, a_rejected_event_stops_it_and_is_named) {
  auto sink = std::make_unique<outbox::testing::FailingSink>(
      [](const EventView& event) { return event.seq == 2 ? Kind::rejected : Kind::acked; });
  const auto recording = sink->recording();
  begin(std::move(sink));
  log_.commit(3);
  ASSERT_TRUE(eventually([this] { return rejected_ == 1; }));
  ASSERT_TRUE(loop_->rejection());
  EXPECT_EQ(loop_->rejection()->seq, 2);
  EXPECT_EQ(loop_->report().state, "stopped");
  ASSERT_TRUE(eventually([this] { return ledger_.acked() == 1; }));
  EXPECT_EQ(recording->events().size(), 1U) << "nothing is skipped";
}

TEST_F(LoopTest, sends_no_more_than_its_rate_and_everything_in_the_end) {
  auto sink = std::make_unique<outbox::testing::RecordingSink>();
  const auto recording = sink->recording();
  const auto begun = std::chrono::steady_clock::now();
  // With 8 of the 64 lanes the loop may send 40 of the 320 events a second, and 4 at once.
  begin(RetainedSink{.sink = std::move(sink), .unsettled_acks = {}}, {}, {320});
  log_.commit(20);
  ASSERT_TRUE(recording->wait_for(20, kLimit));
  EXPECT_GE(std::chrono::steady_clock::now() - begun,
            std::chrono::milliseconds(1000 * 16 / 40 - 1));
  ASSERT_TRUE(eventually([this] { return ledger_.acked() == 20; }));
}

TEST_F(LoopTest, goes_on_by_itself_after_the_destination_was_down) {
  std::atomic<int> refusals{2};
  auto sink = std::make_unique<outbox::testing::FailingSink>(
      [&refusals](const EventView&) { return refusals-- > 0 ? Kind::retry : Kind::acked; });
  const auto recording = sink->recording();
  begin(std::move(sink));
  log_.commit(4);
  ASSERT_TRUE(recording->wait_for(4, kLimit));
  ASSERT_TRUE(eventually([this] { return ledger_.acked() == 4; }));
  EXPECT_TRUE(eventually([this] { return loop_->report().reason.empty(); }));
}

}  // namespace
}  // namespace outbox::relay
