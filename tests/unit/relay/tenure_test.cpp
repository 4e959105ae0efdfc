// Tests tenures over a SQLite file, one after another, as the tenure loop runs them.
#include "relay/tenure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <outbox/testing.hpp>

#include "support/eventually.hpp"
#include "support/sqlite.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// While the gate is closed, writes of progress hang, so that nothing is settled.
class Gate {
 public:
  void close() {
    const MutexLock lock(mutex_);
    open_ = false;
  }
  void open() {
    {
      const MutexLock lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void pass() {
    const MutexLock lock(mutex_);
    ++waiting_;
    changed_.wait(mutex_, [this]() OUTBOX_REQUIRES(mutex_) { return open_; });
    --waiting_;
  }
  bool is_waited_at() {
    const MutexLock lock(mutex_);
    return waiting_ > 0;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool open_ OUTBOX_GUARDED_BY(mutex_){true};
  int waiting_ OUTBOX_GUARDED_BY(mutex_){0};
};

class GatedProgress final : public store::Progress {
 public:
  GatedProgress(std::unique_ptr<store::Progress> inner, Gate& gate)
      : inner_(std::move(inner)), gate_(gate) {}
  [[nodiscard]] Result<std::vector<store::Strand>> load(std::int32_t subscription,
                                                        store::LaneMask lanes) override {
    return inner_->load(subscription, lanes);
  }
  [[nodiscard]] Status claim(std::int32_t subscription, store::LaneMask lanes,
                             std::int64_t generation) override {
    return inner_->claim(subscription, lanes, generation);
  }
  [[nodiscard]] Status begin_beside(std::int32_t base, std::int32_t subscription,
                                    store::LaneMask lanes, std::int64_t generation) override {
    return inner_->begin_beside(base, subscription, lanes, generation);
  }
  [[nodiscard]] Result<store::ParkedKeys> parked_keys(std::int32_t subscription,
                                                      store::LaneMask lanes,
                                                      bool dead_block) override {
    return inner_->parked_keys(subscription, lanes, dead_block);
  }
  [[nodiscard]] Result<store::DueEvents> due(std::int32_t subscription,
                                             const store::Holding& holding,
                                             const store::DueLimits& limits,
                                             std::span<const store::AskedRow> asked) override {
    return inner_->due(subscription, holding, limits, asked);
  }
  [[nodiscard]] Result<std::vector<store::ReleasedKey>> append(
      const store::ProgressBatch& batch, store::Durability durability) override {
    gate_.pass();
    return inner_->append(batch, durability);
  }
  [[nodiscard]] std::uint64_t statements() const override { return inner_->statements(); }

 private:
  std::unique_ptr<store::Progress> inner_;
  Gate& gate_;
};

class GatedStore final : public store::Store {
 public:
  GatedStore(std::unique_ptr<store::Store> inner, Gate& gate)
      : inner_(std::move(inner)), gate_(gate) {}
  Result<std::vector<std::string>> migrate() override { return inner_->migrate(); }
  Result<std::vector<std::string>> make_lookup_indexes() override {
    return inner_->make_lookup_indexes();
  }
  Result<std::string> make_wal_publication() override { return inner_->make_wal_publication(); }
  Result<store::SchemaState> schema_state() override { return inner_->schema_state(); }
  Status check() override { return inner_->check(); }
  Result<store::LineageRepair> plan_lineage_repair() override {
    return inner_->plan_lineage_repair();
  }
  Result<store::LineageRepair> repair_lineage() override { return inner_->repair_lineage(); }
  Result<std::unique_ptr<store::LogReader>> reader() override { return inner_->reader(); }
  Result<std::unique_ptr<store::Replays>> replays() override { return inner_->replays(); }
  Result<std::unique_ptr<store::ParkedEvents>> parked_events() override {
    return inner_->parked_events();
  }
  Result<std::unique_ptr<store::Events>> events() override { return inner_->events(); }
  Result<std::unique_ptr<store::LedgerReader>> ledger_reader() override {
    return inner_->ledger_reader();
  }
  Result<std::unique_ptr<store::Retention>> retention() override { return inner_->retention(); }
  Result<std::unique_ptr<store::Verified>> verified() override { return inner_->verified(); }
  Result<std::unique_ptr<store::WorkHistory>> work_history() override {
    return inner_->work_history();
  }
  Result<std::unique_ptr<store::Trials>> trials() override { return inner_->trials(); }
  Result<std::unique_ptr<store::TaskRuns>> task_runs() override { return inner_->task_runs(); }
  Result<std::unique_ptr<store::TaskQueues>> task_queues() override {
    return inner_->task_queues();
  }
  Result<std::unique_ptr<store::Schedules>> schedules() override { return inner_->schedules(); }
  Result<std::unique_ptr<store::Audit>> audit() override { return inner_->audit(); }
  Result<std::unique_ptr<store::ConsoleTokens>> console_tokens() override {
    return inner_->console_tokens();
  }
  Result<std::unique_ptr<store::Inbox>> inbox() override { return inner_->inbox(); }
  Result<std::unique_ptr<store::Progress>> progress() override {
    return std::make_unique<GatedProgress>(inner_->progress().value(), gate_);
  }
  Result<std::unique_ptr<store::Membership>> membership(store::RelayIdentity relay) override {
    return inner_->membership(std::move(relay));
  }
  Result<std::unique_ptr<store::LaneOwners>> lane_owners(const EventId& relay) override {
    return inner_->lane_owners(relay);
  }
  Result<std::unique_ptr<store::Catalog>> catalog() override { return inner_->catalog(); }
  Result<std::unique_ptr<store::Wakeup>> wakeup(const store::WakeupOptions& options) override {
    return inner_->wakeup(options);
  }
  Result<std::unique_ptr<store::Maintenance>> maintenance() override {
    return inner_->maintenance();
  }
  Result<std::unique_ptr<store::Writer>> writer() override { return inner_->writer(); }

 private:
  std::unique_ptr<store::Store> inner_;
  Gate& gate_;
};

class TenureTest : public ::testing::Test {
 protected:
  TenureTest() {
    EXPECT_TRUE(store_.migrate());
    options_.lease = milliseconds(1000);  // A subscription has a quarter of it to end.
    options_.settle_interval = milliseconds(0);
    people_ = store_.catalog().value();
    trust_.extend_to(std::chrono::steady_clock::now() + std::chrono::hours(1));
  }
  ~TenureTest() override { gate_.open(); }

  std::shared_ptr<const testing::Recording> subscribe(const std::string& name) {
    SubscriptionSpec spec;
    spec.name = name;
    spec.sink = "custom";
    spec.on_reject = OnReject::stop;
    EXPECT_TRUE(people_->apply(spec));
    auto sink = std::make_unique<testing::RecordingSink>();
    auto recording = sink->recording();
    sinks_.put_custom(name, std::move(sink));
    return recording;
  }
  void write(int events) {
    const Event event{
        .aggregate_type = "order", .aggregate_id = "1", .event_type = "OrderPaid", .payload = "{}"};
    EXPECT_TRUE(store_.writer().value()->write(
        std::vector<Event>(static_cast<std::size_t>(events), event)));
  }
  /// Begins a tenure as the tenure loop does at the start and after a failure.
  void begin() {
    if (tenure_) (void)tenure_->end(milliseconds(0), false);
    tenure_.reset();
    membership_ = store_.membership({.id = relay_, .name = "relay"}).value();
    ASSERT_TRUE(membership_->keep(options_.lease));
    owners_ = store_.lane_owners(relay_).value();
    holdings_.clear();
    for (const char* group : {"default", "custom:orders", "custom:mails", "custom:orphan"})
      holdings_[group] = owners_->change(group, store::kAllLanes).value().value();
    auto catalog = store_.catalog().value();
    tenure_ = std::make_unique<relay::Tenure>(store_, options_, configuration_, sinks_, settled_,
                                              trust_, [this] { ++rings_; });
    Status status = tenure_->begin(relay_, std::move(catalog));
    if (status) status = update();
    ASSERT_TRUE(status) << status.error().text();
  }
  Status update() { return tenure_->update(holdings_); }
  store::SubscriptionRow row(const std::string& name) {
    const auto rows = people_->subscriptions().value();
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [&](const auto& row) { return row.spec.name == name; });
    return found == rows.end() ? store::SubscriptionRow{} : *found;
  }
  store::SubscriptionProgress totals(const std::string& name) {
    store::SubscriptionProgress totals;
    totals.id = row(name).id;
    EXPECT_TRUE(people_->add_totals(totals));
    return totals;
  }
  SubscriptionReport report(const std::string& name) {
    RelayReport report;
    tenure_->report(report);
    for (const auto& one : report.subscriptions) {
      if (one.name == name) return one;
    }
    return {};
  }

  const TempDir folder_;
  const std::string path_ = folder_.file("shop.db");
  Gate gate_;
  GatedStore store_{store::open_store({.url = "sqlite:" + path_}).value(), gate_};
  RelayOptions options_;
  relay::Configuration configuration_{options_.subscriptions};
  relay::SinkCache sinks_;
  relay::TrustDeadline trust_;
  const EventId relay_ = EventId::generate();
  std::unique_ptr<store::Catalog> people_;
  std::unique_ptr<store::Membership> membership_;
  std::unique_ptr<store::LaneOwners> owners_;
  relay::Holdings holdings_;
  std::atomic<int> rings_{0};
  relay::Totals settled_;
  std::unique_ptr<relay::Tenure> tenure_;
};

TEST_F(TenureTest, what_is_retired_before_its_last_settlement_is_written_is_counted_once) {
  const auto orders = subscribe("orders");
  begin();
  gate_.close();
  write(3);
  ASSERT_TRUE(orders->wait_for(3, seconds(30)));
  ASSERT_TRUE(eventually([this] { return gate_.is_waited_at(); }));
  ASSERT_TRUE(people_->pause("orders", "by the test"));
  const Status retired = update();
  ASSERT_TRUE(people_->resume("orders"));
  if (retired) {
    ASSERT_TRUE(update());
    gate_.open();
  } else {
    EXPECT_EQ(retired.error().remedy, Remedy::reconnect) << retired.error().text();
    gate_.open();
    begin();
  }
  write(1);
  ASSERT_TRUE(orders->wait_for(4, seconds(30)));
  ASSERT_TRUE(eventually([this] { return totals("orders").acked >= 4; }));
  EXPECT_EQ(totals("orders").acked, 4);
  const auto counted = SqliteFile(path_).exec(
      "SELECT sum(acked), max(position) FROM outbox_settlement WHERE kind = 'settle'");
  EXPECT_EQ(counted.front().front(), "4") << "rows overlap";
  EXPECT_EQ(orders->events().size(), 4U);
}

TEST_F(TenureTest, follows_what_people_change_and_leaves_the_others_alone) {
  const auto orders = subscribe("orders");
  const auto mails = subscribe("mails");
  begin();
  write(1);
  ASSERT_TRUE(orders->wait_for(1, seconds(30)));
  ASSERT_TRUE(people_->pause("orders", "by the test"));
  ASSERT_TRUE(update());
  EXPECT_EQ(report("orders").state, "paused");
  EXPECT_EQ(report("orders").reason, "by the test");
  write(1);
  ASSERT_TRUE(mails->wait_for(2, seconds(30)));
  EXPECT_EQ(orders->events().size(), 1U);
  ASSERT_TRUE(people_->resume("orders"));
  ASSERT_TRUE(update());
  ASSERT_TRUE(orders->wait_for(2, seconds(30)));
  EXPECT_TRUE(tenure_->end(seconds(30), true).drained);
}

TEST_F(TenureTest, one_that_cannot_start_is_reported_and_the_others_deliver) {
  SubscriptionSpec spec;
  spec.name = "orphan";
  spec.sink = "custom";
  ASSERT_TRUE(people_->apply(spec));
  const auto orders = subscribe("orders");
  begin();
  write(1);
  ASSERT_TRUE(orders->wait_for(1, seconds(30)));
  EXPECT_EQ(report("orphan").state, "broken");
  EXPECT_NE(report("orphan").reason.find("no sink was given"), std::string::npos);
  EXPECT_EQ(row("orphan").trouble, report("orphan").reason);
}

TEST_F(TenureTest, a_subscription_that_cannot_start_does_not_look_like_a_death) {
  EXPECT_TRUE(people_->apply({.name = "orphan", .sink = "custom"}));
  begin();
  EXPECT_EQ(row("orphan").trouble, report("orphan").reason);
  EXPECT_EQ(SqliteFile(path_).value("SELECT count(*) FROM outbox_run"), "0");
}

TEST_F(TenureTest, a_rejected_event_rings_and_stops_its_subscription_in_the_store) {
  (void)subscribe("orders");
  sinks_.put_custom("orders", std::make_unique<testing::FailingSink>(
                                  [](const EventView&) { return Outcome::Kind::rejected; }));
  begin();
  write(1);
  ASSERT_TRUE(eventually([this] { return rings_ > 0; }));
  ASSERT_TRUE(update());
  EXPECT_EQ(row("orders").state, store::SubscriptionState::stopped);
  EXPECT_EQ(row("orders").stopped_seq, 1);
  EXPECT_EQ(report("orders").state, "stopped");
}

TEST_F(TenureTest, what_was_acked_and_not_settled_is_not_sent_again_in_the_next_one) {
  const auto orders = subscribe("orders");
  options_.settle_interval = std::chrono::hours(1);
  begin();
  write(2);
  ASSERT_TRUE(orders->wait_for(2, seconds(30)));
  begin();
  write(1);
  ASSERT_TRUE(orders->wait_for(3, seconds(30)));
  EXPECT_TRUE(tenure_->end(seconds(30), true).drained);
  EXPECT_EQ(orders->events().size(), 3U);
  EXPECT_EQ(totals("orders").acked, 3);
}

}  // namespace
}  // namespace outbox::test
