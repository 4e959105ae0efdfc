// Tests that an armed reader sleeps until an event is committed.
#include <chrono>
#include <future>

#include "base/error.hpp"
#include "conformance/store/fixture.hpp"
#include "support/eventually.hpp"

namespace outbox::conformance {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Wake = store::Wakeup::Wake;

class WakeupSuite : public StoreTest {
 protected:
  std::unique_ptr<store::Wakeup> make(bool armed = true) {
    auto wakeup = store_->wakeup({.armed = armed});
    EXPECT_TRUE(ok(wakeup));
    return wakeup ? std::move(*wakeup) : nullptr;
  }
  /// Arms again and again, since that may be refused while a writer is in flight.
  static Status arm(store::Wakeup& wakeup) {
    Status status;
    EXPECT_TRUE(eventually([&] {
      const auto armed = wakeup.arm();
      if (!armed) status = fail(armed.error());
      return !armed || *armed;
    }));
    return status;
  }

  /// Plays the scene and returns how the reader was woken. If the machine stalls, the session may
  /// be silent for 3 s, so that PostgreSQL ends it. Then the scene is played again.
  template <class Scene>
  Wake play(Scene scene) {
    for (int attempt = 1;; ++attempt) {
      const auto wakeup = make();
      const Result<Wake> wake = scene(*wakeup);
      const bool again = !wake && wake.error().remedy == Remedy::reconnect && attempt < 10;
      if (again) continue;
      EXPECT_TRUE(ok(wake));
      return wake.value_or(Wake::timeout);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Store, WakeupSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(WakeupSuite, a_quiet_log_times_out) {
  EXPECT_EQ(play([](store::Wakeup& wakeup) -> Result<Wake> {
              if (Status armed = arm(wakeup); !armed) return pass(armed);
              auto wake = wakeup.wait(milliseconds(30));
              if (Status disarmed = wakeup.disarm(); !disarmed) return pass(disarmed);
              return wake;
            }),
            Wake::timeout);
}

TEST_P(WakeupSuite, a_commit_before_the_wait_wakes) {
  EXPECT_EQ(play([this](store::Wakeup& wakeup) -> Result<Wake> {
              if (Status armed = arm(wakeup); !armed) return pass(armed);
              write(make_events(1));
              return wakeup.wait(seconds(20));
            }),
            Wake::notified);
}

TEST_P(WakeupSuite, a_commit_during_the_wait_wakes) {
  EXPECT_EQ(play([this](store::Wakeup& wakeup) -> Result<Wake> {
              for (int i = 0; i < 20; ++i) {
                if (Status armed = arm(wakeup); !armed) return pass(armed);
                auto writing = std::async(std::launch::async, [this] { write(make_events(1)); });
                auto wake = wakeup.wait(seconds(20));
                writing.get();
                if (!wake || *wake != Wake::notified) return wake;
                if (Status disarmed = wakeup.disarm(); !disarmed) return pass(disarmed);
              }
              return Wake::notified;
            }),
            Wake::notified);
}

TEST_P(WakeupSuite, it_works_again_after_a_timeout) {
  EXPECT_EQ(play([this](store::Wakeup& wakeup) -> Result<Wake> {
              if (Status armed = arm(wakeup); !armed) return pass(armed);
              auto wake = wakeup.wait(milliseconds(10));
              if (!wake || *wake != Wake::timeout) return wake;
              if (Status disarmed = wakeup.disarm(); !disarmed) return pass(disarmed);
              if (Status armed = arm(wakeup); !armed) return pass(armed);
              write(make_events(1));
              return wakeup.wait(seconds(20));
            }),
            Wake::notified);
}

TEST_P(WakeupSuite, it_can_be_interrupted) {
  EXPECT_EQ(play([](store::Wakeup& wakeup) -> Result<Wake> {
              if (Status armed = arm(wakeup); !armed) return pass(armed);
              auto interrupting = std::async(std::launch::async, [&] { wakeup.interrupt(); });
              auto wake = wakeup.wait(seconds(20));
              interrupting.get();
              return wake;
            }),
            Wake::interrupted);
}

TEST_P(WakeupSuite, not_wanted_means_never_armed) {
  auto wakeup = make(false);
  auto armed = wakeup->arm();
  ASSERT_TRUE(ok(armed));
  EXPECT_FALSE(*armed);
}

}  // namespace outbox::conformance
