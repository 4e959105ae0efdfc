// Tests what Relay::run_once() says that it did, on both stores.
#include <atomic>

#include "integration/relay/both_stores.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RunOnceTest : public OnBothStores {
 protected:
  /// A relay whose sink rejects "Poison" until `forgiving_` is true. A rejected event is dead at
  /// once. "Ignored" does not match.
  [[nodiscard]] std::unique_ptr<Relay> relay() const {
    SubscriptionSpec mails = custom("mails");
    mails.event_types = {"Made", "Poison"};
    mails.max_attempts = 1;
    auto relay = make_relay({.store_url = url_, .subscriptions = {mails}});
    EXPECT_TRUE(relay->use("mails", std::make_unique<testing::FailingSink>(
                                        [forgiving = forgiving_](const EventView& event) {
                                          return event.event_type == "Poison" && !*forgiving
                                                     ? Outcome::Kind::rejected
                                                     : Outcome::Kind::acked;
                                        })));
    return relay;
  }

  std::shared_ptr<std::atomic<bool>> forgiving_{std::make_shared<std::atomic<bool>>(false)};
};

INSTANTIATE_TEST_SUITE_P(Store, RunOnceTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(RunOnceTest, it_says_what_was_delivered_filtered_and_parked) {
  write("a", {"Made", "Made", "Poison"});
  write("b", {"Made", "Ignored", "Ignored"});
  const auto once = relay();
  const RunReport report = delivered_once(*once);
  EXPECT_EQ(report.reason, "");
  EXPECT_EQ(report.delivered, 3U);
  EXPECT_EQ(report.filtered, 2U);
  EXPECT_EQ(report.parked, 1U);
  EXPECT_EQ(report.dead, 1U);
  EXPECT_EQ(report.abandoned, 0U);

  write("b", {"Made"});
  const RunReport second = delivered_once(*once);
  EXPECT_EQ(second.delivered, 1U) << "what the call before did does not count again";
  EXPECT_EQ(second.filtered + second.parked + second.dead, 0U);
}

TEST_P(RunOnceTest, an_event_counts_for_each_subscription) {
  write("a", {"Made", "Ignored"});
  const auto once =
      make_relay({.store_url = url_, .subscriptions = {custom("all"), custom("some", {"Made"})}});
  const auto all = record(*once, "all");
  const auto some = record(*once, "some");
  const RunReport report = delivered_once(*once);
  EXPECT_EQ(report.delivered, 3U);
  EXPECT_EQ(report.filtered, 1U);
}

TEST_P(RunOnceTest, a_parked_event_that_is_sent_again_counts_as_delivered) {
  write("a", {"Made", "Poison"});
  const auto once = relay();
  ASSERT_EQ(delivered_once(*once).dead, 1U);
  *forgiving_ = true;
  const auto parked = store_->parked_events().value();
  const auto dead = parked->list({.state = store::ParkedState::dead}, 100, false).value();
  ASSERT_EQ(dead.size(), 1U);
  const std::vector<std::int64_t> seqs{dead.front().seq};
  ASSERT_EQ(parked->retry(row().id, seqs, false).value(), 1U);
  // No call of run_once() waits for parked events, so that a new event gives each call something to
  // do.
  std::uint64_t written = 0;
  std::uint64_t delivered = 0;
  ASSERT_TRUE(eventually([&] {
    write("b", {"Made"});
    ++written;
    delivered += delivered_once(*once).delivered;
    return parked->counts(row().id).value().retrying == 0;
  }));
  EXPECT_EQ(delivered, written + 1);
}

TEST_P(RunOnceTest, a_limit_that_comes_first_is_no_error_and_nothing_is_lost) {
  write("a", {"Made", "Made", "Made"});
  const auto released = std::make_shared<std::atomic<bool>>(false);
  const auto arrived = std::make_shared<Arrivals>();
  const auto once = make_relay({.store_url = url_, .subscriptions = {custom("mails")}});
  ASSERT_TRUE(once->use("mails", std::make_unique<HoldingSink>(arrived, released)));
  const auto first = once->run_once(milliseconds(200));
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_FALSE(first->settled);
  EXPECT_NE(first->reason.find("subscription mails are still pending"), std::string::npos)
      << first->reason;
  EXPECT_EQ(first->delivered, 0U);
  *released = true;
  EXPECT_EQ(delivered_once(*once).delivered, 3U);
  EXPECT_EQ(arrived->count(), 3U);
}

TEST_P(RunOnceTest, a_stopped_subscription_is_an_error) {
  write("a", {"Poison"});
  SubscriptionSpec mails = custom("mails");
  mails.on_reject = OnReject::stop;
  const auto once = make_relay({.store_url = url_, .subscriptions = {mails}});
  ASSERT_TRUE(once->use("mails", std::make_unique<testing::FailingSink>(
                                     [](const EventView&) { return Outcome::Kind::rejected; })));
  const auto report = once->run_once(seconds(60));
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().text().find("subscription mails is stopped"), std::string::npos)
      << report.error().text();
}

}  // namespace
}  // namespace outbox::test
