// What a broker says of what a consumer reads. `outbox doctor` judges it.
#pragma once

#include <chrono>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "sink/inspection.hpp"

namespace outbox::source {

/// For how long the broker can deliver a message again that was received before.
struct Keeping {
  static constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();
  std::chrono::milliseconds longest{0};
  std::string what;     ///< "topic orders keeps messages for up to 14d (...)"
  std::string shorten;  ///< What makes it shorter: "retention.ms of the topic".
};

struct Inspection {
  std::string broker;                     ///< Its address, without passwords.
  std::vector<std::string> reads{};       ///< What is there: "topic orders".
  std::vector<sink::Weakness> missing{};  ///< Why something cannot be read.
  std::vector<sink::Weakness> weaknesses{};
  std::vector<Error> unasked{};      ///< What this user may not ask for.
  std::optional<Keeping> keeping{};  ///< The longest; nullopt if a received message does not stay.

  /// Keeps the longest of them.
  void add(Keeping one) {
    if (!keeping || keeping->longest < one.longest) keeping = std::move(one);
  }
};

}  // namespace outbox::source
