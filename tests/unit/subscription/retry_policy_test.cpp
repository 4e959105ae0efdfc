// When a parked event is tried again.
#include "subscription/retry_policy.hpp"

#include <gtest/gtest.h>

#include "subscription/spec.hpp"

namespace outbox::subscription {
namespace {

using std::chrono::milliseconds;

SubscriptionSpec without_jitter() {
  SubscriptionSpec spec{.name = "orders", .sink = "null"};
  spec.retry_jitter = 0;
  return spec;
}

TEST(RetryPolicy, the_pauses_double_up_to_the_cap_and_then_the_event_is_dead) {
  SubscriptionSpec spec = without_jitter();
  spec.max_attempts = 5;
  spec.retry_cap = milliseconds(3000);
  const RetryPolicy policy(spec);
  EXPECT_EQ(policy.pause_after(1, 7), milliseconds(1000));
  EXPECT_EQ(policy.pause_after(2, 7), milliseconds(2000));
  EXPECT_EQ(policy.pause_after(3, 7), milliseconds(3000));
  EXPECT_EQ(policy.pause_after(4, 7), milliseconds(3000));
  EXPECT_EQ(policy.pause_after(5, 7), std::nullopt);
  EXPECT_EQ(policy.pause_after(1'000'000'000, 7), std::nullopt);
}

TEST(RetryPolicy, one_attempt_means_dead_at_once) {
  SubscriptionSpec spec = without_jitter();
  spec.max_attempts = 1;
  EXPECT_EQ(RetryPolicy(spec).pause_after(1, 7), std::nullopt);
}

TEST(RetryPolicy, a_list_gives_the_pauses_and_their_number_the_attempts) {
  SubscriptionSpec spec = without_jitter();
  spec.delays = {std::chrono::seconds(5), std::chrono::minutes(1)};
  spec.max_attempts = 100;
  const RetryPolicy policy(spec);
  EXPECT_EQ(policy.pause_after(1, 7), milliseconds(5000));
  EXPECT_EQ(policy.pause_after(2, 7), milliseconds(60'000));
  EXPECT_EQ(policy.pause_after(3, 7), std::nullopt);
}

TEST(RetryPolicy, jitter_keeps_within_its_range_and_differs_between_events) {
  SubscriptionSpec spec = without_jitter();
  spec.retry_jitter = 20;
  const RetryPolicy policy(spec);
  milliseconds least = milliseconds::max();
  milliseconds most{0};
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const milliseconds pause = policy.pause_after(1, seed).value();
    least = std::min(least, pause);
    most = std::max(most, pause);
  }
  EXPECT_GE(least, milliseconds(800));
  EXPECT_LE(most, milliseconds(1200));
  EXPECT_LT(least, milliseconds(820));
  EXPECT_GT(most, milliseconds(1180));
}

TEST(RetryPolicy, a_huge_factor_and_a_huge_cap_do_not_overflow) {
  SubscriptionSpec spec = without_jitter();
  spec.max_attempts = 1000;
  spec.retry_factor = 10;
  spec.retry_cap = std::chrono::hours(24 * 30);
  const RetryPolicy policy(spec);
  for (std::size_t attempts = 1; attempts < 1000; ++attempts) {
    const milliseconds pause = policy.pause_after(attempts, 7).value();
    EXPECT_GT(pause.count(), 0);
    EXPECT_LE(pause, milliseconds(spec.retry_cap));
  }
}

TEST(RetryPolicy, wrong_settings_are_refused_all_at_once) {
  SubscriptionSpec spec = without_jitter();
  spec.delays = {std::chrono::seconds(5), std::chrono::hours(24 * 31)};
  spec.retry_cap = milliseconds(10);
  spec.retry_jitter = 90;
  FieldErrors errors;
  check(spec, errors);
  for (const char* field : {"delays", "retry_cap", "retry_jitter"})
    EXPECT_TRUE(errors.of(field)) << field;
}

TEST(RetryPolicy, its_settings_are_stored_and_read_back) {
  SubscriptionSpec spec = without_jitter();
  spec.on_reject = OnReject::stop;
  spec.on_dead = OnDead::block;
  spec.delays = {std::chrono::seconds(5), std::chrono::hours(2)};
  spec.retry_base = milliseconds(1500);
  spec.retry_cap = std::chrono::hours(1);
  spec.max_waiting = 17;
  EXPECT_EQ(from_json(spec.name, to_json(spec)).value(), spec);
}

}  // namespace
}  // namespace outbox::subscription
