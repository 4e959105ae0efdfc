// Tests when a lease is renewed, and what the answers mean. tests/sim steps the same core.
#include "relay/lease_core.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace outbox::relay {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLease{300};

class LeaseCoreTest : public ::testing::Test {
 protected:
  LeaseCoreTest() { core_.answered(true, now_, now_); }

  void fails_with(Remedy remedy) {
    core_.answered(fail(Errc::unavailable, remedy, "by the test"), now_, now_);
  }

  TimePoint now_{std::chrono::seconds(100)};
  TrustDeadline trust_;
  LeaseCore core_{kLease, trust_, now_};
};

TEST_F(LeaseCoreTest, a_heartbeat_follows_a_third_of_the_lease_after_the_answer) {
  EXPECT_EQ(LeaseCore(kLease, trust_, now_).next_at(), now_ + milliseconds(100));
  core_.answered(true, now_ + milliseconds(100), now_ + milliseconds(120));
  EXPECT_EQ(core_.next_at(), now_ + milliseconds(220));
}

TEST_F(LeaseCoreTest, trust_counts_from_before_the_heartbeat_less_a_margin) {
  core_.answered(true, now_ + milliseconds(100), now_ + milliseconds(200));
  EXPECT_TRUE(trust_.holds(now_ + milliseconds(339)));
  EXPECT_FALSE(trust_.holds(now_ + milliseconds(340)));
}

TEST_F(LeaseCoreTest, a_failure_that_may_pass_is_tried_again_soon_while_the_trust_holds) {
  now_ += milliseconds(100);
  fails_with(Remedy::retry_transaction);
  EXPECT_FALSE(core_.failure());
  EXPECT_EQ(core_.next_at(), now_ + milliseconds(15));
  now_ += milliseconds(140);
  fails_with(Remedy::retry_call);
  EXPECT_TRUE(core_.failure());
}

TEST_F(LeaseCoreTest, a_lost_connection_ends_it_and_the_trust_holds_on) {
  fails_with(Remedy::reconnect);
  EXPECT_EQ(core_.failure()->code, Errc::unavailable);
  EXPECT_TRUE(trust_.holds(now_));
}

TEST_F(LeaseCoreTest, a_relay_that_was_taken_for_dead_trusts_nothing_any_more) {
  core_.answered(false, now_, now_);
  EXPECT_EQ(core_.failure()->code, Errc::lease_lost);
  EXPECT_FALSE(trust_.holds(now_));
}

}  // namespace
}  // namespace outbox::relay
