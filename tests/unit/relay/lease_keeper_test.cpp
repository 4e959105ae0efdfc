// Until when a lease is trusted.
#include "relay/lease_keeper.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLease{300};

/// Becomes the owner; the first call is slow.
class SlowToTakeOver final : public store::Membership {
 public:
  explicit SlowToTakeOver(milliseconds first) : first_(first) {}
  [[nodiscard]] Result<Standing> keep(milliseconds /*lease*/) override {
    if (calls++ == 0) std::this_thread::sleep_for(first_);
    return Standing{.lanes = owner ? store::kAllLanes : 0, .generation = 1, .other = {}};
  }
  [[nodiscard]] Result<bool> vacant() override { return false; }
  [[nodiscard]] Status leave() override { return {}; }

  int calls{0};
  bool owner{true};

 private:
  const milliseconds first_;
};

// A takeover writes its heartbeat first and then waits for locks.
TEST(Lease, one_that_is_nearly_over_when_it_was_got_is_renewed_at_once) {
  SlowToTakeOver membership(kLease);
  relay::TrustDeadline trust;
  const auto before = Clock::now();
  ASSERT_TRUE(relay::renew(membership, kLease, trust)->owns());
  EXPECT_EQ(membership.calls, 2);
  EXPECT_TRUE(trust.holds(before + kLease)) << "counted from the second heartbeat";
}

TEST(Lease, it_is_counted_from_before_the_heartbeat) {
  SlowToTakeOver membership(milliseconds(0));
  relay::TrustDeadline trust;
  ASSERT_TRUE(relay::renew(membership, kLease, trust)->owns());
  EXPECT_FALSE(trust.holds(Clock::now() + kLease - kLease / 5));
}

TEST(Lease, of_somebody_else_is_not_trusted) {
  SlowToTakeOver membership(kLease);
  membership.owner = false;
  relay::TrustDeadline trust;
  ASSERT_FALSE(relay::renew(membership, kLease, trust)->owns());
  EXPECT_EQ(membership.calls, 1);
  EXPECT_FALSE(trust.holds(Clock::now()));
}

}  // namespace
}  // namespace outbox::test
