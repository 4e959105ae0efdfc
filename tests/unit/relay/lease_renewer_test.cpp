// Tests until when a lease is trusted.
#include "relay/lease_renewer.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "support/eventually.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLease{300};

class Member final : public store::Membership {
 public:
  [[nodiscard]] Result<bool> keep(milliseconds /*lease*/) override { return known.load(); }
  [[nodiscard]] Status leave() override { return {}; }

  std::atomic<bool> known{true};
};

TEST(Lease, it_is_counted_from_before_the_heartbeat) {
  Member membership;
  relay::TrustDeadline trust;
  ASSERT_TRUE(relay::renew(membership, kLease, trust).value());
  EXPECT_FALSE(trust.holds(Clock::now() + kLease - kLease / 5));
}

TEST(Lease, of_a_relay_that_was_removed_is_not_trusted) {
  Member membership;
  membership.known = false;
  relay::TrustDeadline trust;
  ASSERT_FALSE(relay::renew(membership, kLease, trust).value());
  EXPECT_FALSE(trust.holds(Clock::now()));
}

TEST(Lease, a_relay_that_is_removed_hears_of_it_and_trusts_it_no_more) {
  Member membership;
  relay::TrustDeadline trust;
  ASSERT_TRUE(relay::renew(membership, std::chrono::hours(1), trust).value());
  std::atomic<bool> lost{false};
  const relay::LeaseRenewer renewer(membership, kLease, trust, [&lost] { lost = true; });
  membership.known = false;
  ASSERT_TRUE(eventually([&lost] { return lost.load(); }));
  EXPECT_FALSE(trust.holds(Clock::now()));
  EXPECT_EQ(renewer.failure()->code, Errc::lease_lost);
}

}  // namespace
}  // namespace outbox::test
