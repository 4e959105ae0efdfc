// Limits how often repeated failures are logged: the first at once, then each reason once a minute
// with the number of failures that were left out.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <outbox/error.hpp>
#include <string>

#include "base/log_line.hpp"

namespace outbox {

class Outage {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Over {
    std::chrono::nanoseconds lasted{0};
    std::uint64_t failures{0};
  };

  /// How many failures with this reason the log left out; nullopt if it leaves out this one, too.
  [[nodiscard]] std::optional<std::uint64_t> failed(const std::string& reason, TimePoint now);
  /// Notes a success. Returns the outage that ended with it, if that was logged.
  [[nodiscard]] std::optional<Over> works(TimePoint now);

  static constexpr std::chrono::seconds kEvery{60};
  /// The limit of distinct reasons within a minute; further ones are not logged.
  static constexpr std::size_t kMostReasons = 16;

 private:
  struct Logged {
    TimePoint at;
    std::uint64_t left_out{0};
  };

  std::map<std::string, Logged> logged_;
  std::optional<TimePoint> since_;
  std::uint64_t failures_{0};
  bool any_logged_{false};
};

/// Logs the outages of work that is tried again and again.
class OutageLog {
 public:
  /// `fails` warns of a failure, `works` tells that an outage is over.
  OutageLog(log::Constant fails, log::Constant works) : fails_(fails), works_(works) {}

  template <class T>
  void note(const Result<T>& done, Outage::TimePoint now) {
    done ? works(now) : failed(done.error(), now);
  }

 private:
  void works(Outage::TimePoint now);
  void failed(const Error& error, Outage::TimePoint now);

  log::Constant fails_;
  log::Constant works_;
  Outage outage_;
};

/// The length for a log field, rounded to a tenth.
[[nodiscard]] double in_seconds(std::chrono::nanoseconds length);

}  // namespace outbox
