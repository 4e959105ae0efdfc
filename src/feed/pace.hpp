// When to poll again: adaptive polling with the armed wake-up. Pure. Measured: a poll costs 0.1 to 0.5 ms, an armed wake-up
// costs writers a few per cent, an unconditional NOTIFY would serialize their commits.
//
//   after work:   poll again in 1 ms (at once when the page was full)
//   when empty:   20 polls 1 ms apart, then try to arm
//   armed:        one last poll, then sleep until woken or the idle interval has passed; after that a poll, and sleep again
//   refused:      a writer's transaction is open: double the pause up to 20 ms, try to arm at each poll
//   arming off:   double the pause up to the idle interval
#pragma once

#include <chrono>
#include <cstdint>

namespace outbox::feed {

struct PaceOptions {
  std::chrono::nanoseconds busy{std::chrono::milliseconds(1)};
  std::chrono::nanoseconds refused_longest{std::chrono::milliseconds(20)};
  std::chrono::nanoseconds idle{std::chrono::seconds(1)};
  int empty_polls{20};
  bool arm{true};
};

class Pace {
 public:
  struct Step {
    enum class What : std::uint8_t {
      pause,  ///< Wait `pause`, then poll.
      arm,    ///< Try to arm, then report armed().
      sleep,  ///< Armed, and the last poll found nothing: wait for the wake-up, at most `pause`.
    };
    What what{What::pause};
    std::chrono::nanoseconds pause{0};
  };

  explicit Pace(PaceOptions options) : options_(options) {}

  /// The poll brought events. When armed, the caller disarms.
  [[nodiscard]] Step worked();
  [[nodiscard]] Step found_nothing();
  /// The result of arming: poll once more at once when it succeeded, else pause.
  [[nodiscard]] Step armed(bool succeeded);
  /// The wake-up came, or the sleep is over; the caller disarms and polls.
  void woken(bool by_commit);
  [[nodiscard]] bool is_armed() const { return armed_; }

 private:
  const PaceOptions options_;
  int empty_{0};
  std::chrono::nanoseconds pause_{options_.busy};
  bool armed_{false};
};

}  // namespace outbox::feed
