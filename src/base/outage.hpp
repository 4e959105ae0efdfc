// Something that fails again and again, and which of its failures are worth a line in the log: the first at once, then each
// reason once a minute with the number left out, so that an hour's outage is readable and reasons that alternate are no flood.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace outbox {

class Outage {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Over {
    std::chrono::nanoseconds lasted{0};
    std::uint64_t failures{0};
  };

  /// None: write nothing. Else how many failures with this reason were left out since it was written last.
  [[nodiscard]] std::optional<std::uint64_t> failed(const std::string& reason, TimePoint now);
  /// It works. What to say of the outage that ended, if there was one and it was written of.
  [[nodiscard]] std::optional<Over> works(TimePoint now);

  static constexpr std::chrono::seconds kEvery{60};
  /// Reasons that can be told apart; more of them within a minute are left out.
  static constexpr std::size_t kMostReasons = 16;

 private:
  struct Said {
    TimePoint at;
    std::uint64_t left_out{0};
  };

  std::map<std::string, Said> said_;
  std::optional<TimePoint> since_;
  std::uint64_t failures_{0};
  bool written_{false};
};

/// For a field of the log: to a tenth.
[[nodiscard]] double in_seconds(std::chrono::nanoseconds length);

}  // namespace outbox
