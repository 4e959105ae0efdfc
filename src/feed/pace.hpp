// When to poll again: adaptive polling with the armed wake-up. Pure. Measured: a poll costs 0.1 to
// 0.5 ms, an armed wake-up costs writers a few per cent, and an unconditional NOTIFY would
// serialize their commits.
//
//   after work:   poll again in 1 ms (at once when the page was full)
//   when empty:   20 polls 1 ms apart, then try to arm
//   armed:        one last poll, then sleep until woken or the idle interval has passed, then a
//                 poll, and sleep again
//   refused:      a writer's transaction is open: double the pause up to 20 ms, try to arm each
//   time
//   arming off:   double the pause up to the idle interval
//
// Beside a stream of the store's log (docs/design/feed.md) nothing is armed:
//
//   all was seen: sleep until a commit is reported or the idle interval has passed
//   more:         poll again at once
//   late:         poll again in 0.1 ms, doubling up to 20 ms
//   many events:  poll again in 1 ms, so that a busy log is read in pages
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "store/delivery.hpp"

namespace outbox::feed {

struct PaceOptions {
  std::chrono::nanoseconds busy{std::chrono::milliseconds(1)};
  std::chrono::nanoseconds refused_longest{std::chrono::milliseconds(20)};
  std::chrono::nanoseconds idle{std::chrono::seconds(1)};
  int empty_polls{20};
  bool arm{true};
  // Beside a stream:
  std::chrono::nanoseconds late{std::chrono::microseconds(100)};
  std::size_t many_events{3};
};

class Pace {
 public:
  struct Step {
    enum class What : std::uint8_t {
      pause,  ///< Wait `pause`, then poll.
      arm,    ///< Try to arm, then report armed().
      sleep,  ///< The last armed poll found nothing: wait at most `pause` to be woken.
    };
    What what{What::pause};
    std::chrono::nanoseconds pause{0};
  };

  explicit Pace(PaceOptions options) : options_(options) {}

  /// Called when the poll brought events. If armed, the caller disarms.
  [[nodiscard]] Step worked();
  [[nodiscard]] Step found_nothing();
  /// Takes the result of arming. After a success one more poll is due at once, otherwise a pause.
  [[nodiscard]] Step armed(bool succeeded);
  /// Called when the wake-up came or the sleep is over; the caller disarms and polls.
  void woken(bool by_commit);
  /// Called instead of worked() and found_nothing() while there is a stream: what it has told, and
  /// how many events the poll brought. If armed, the caller disarms.
  [[nodiscard]] Step told(store::Wakeup::Told told, std::size_t events);
  [[nodiscard]] bool is_armed() const { return armed_; }

 private:
  const PaceOptions options_;
  int empty_{0};
  std::chrono::nanoseconds pause_{options_.busy};
  std::chrono::nanoseconds late_{options_.late};
  bool armed_{false};
};

}  // namespace outbox::feed
