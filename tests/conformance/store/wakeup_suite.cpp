// An armed reader sleeps until an event is committed.
#include <chrono>
#include <future>

#include "conformance/store/fixture.hpp"

namespace outbox::conformance {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Wake = store::Wakeup::Wake;

class WakeupSuite : public StoreTest {
 protected:
  std::unique_ptr<store::Wakeup> make(bool armed = true) {
    auto wakeup = store_->wakeup(armed);
    EXPECT_TRUE(ok(wakeup));
    return wakeup ? std::move(*wakeup) : nullptr;
  }
  /// Arming may be refused while a writer is in flight.
  static bool arm(store::Wakeup& wakeup) {
    return eventually([&] { return wakeup.arm().value_or(false); });
  }
  static Wake wait(store::Wakeup& wakeup, milliseconds longest) {
    auto wake = wakeup.wait(longest);
    EXPECT_TRUE(ok(wake));
    return wake.value_or(Wake::timeout);
  }
};
INSTANTIATE_TEST_SUITE_P(Store, WakeupSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(WakeupSuite, a_quiet_log_times_out) {
  auto wakeup = make();
  ASSERT_TRUE(arm(*wakeup));
  EXPECT_EQ(wait(*wakeup, milliseconds(30)), Wake::timeout);
  EXPECT_TRUE(ok(wakeup->disarm()));
}

TEST_P(WakeupSuite, a_commit_before_the_wait_wakes) {
  auto wakeup = make();
  ASSERT_TRUE(arm(*wakeup));
  write(make_events(1));
  EXPECT_EQ(wait(*wakeup, seconds(20)), Wake::notified);
}

TEST_P(WakeupSuite, a_commit_during_the_wait_wakes) {
  auto wakeup = make();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(arm(*wakeup));
    auto writing = std::async(std::launch::async, [this] { write(make_events(1)); });
    EXPECT_EQ(wait(*wakeup, seconds(20)), Wake::notified);
    writing.get();
    ASSERT_TRUE(ok(wakeup->disarm()));
  }
}

TEST_P(WakeupSuite, it_works_again_after_a_timeout) {
  auto wakeup = make();
  ASSERT_TRUE(arm(*wakeup));
  EXPECT_EQ(wait(*wakeup, milliseconds(10)), Wake::timeout);
  ASSERT_TRUE(ok(wakeup->disarm()));
  ASSERT_TRUE(arm(*wakeup));
  write(make_events(1));
  EXPECT_EQ(wait(*wakeup, seconds(20)), Wake::notified);
}

TEST_P(WakeupSuite, it_can_be_interrupted) {
  auto wakeup = make();
  ASSERT_TRUE(arm(*wakeup));
  auto interrupting = std::async(std::launch::async, [&] { wakeup->interrupt(); });
  EXPECT_EQ(wait(*wakeup, seconds(20)), Wake::interrupted);
  interrupting.get();
}

TEST_P(WakeupSuite, not_wanted_means_never_armed) {
  auto wakeup = make(false);
  auto armed = wakeup->arm();
  ASSERT_TRUE(ok(armed));
  EXPECT_FALSE(*armed);
}

}  // namespace outbox::conformance
