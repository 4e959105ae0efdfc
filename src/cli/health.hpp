// What `outbox status` found, and its problems.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace outbox::cli {

struct Health {
  struct Line {
    store::SubscriptionRow row;
    store::SubscriptionProgress progress;
  };

  std::vector<Line> subscriptions;
  std::vector<store::RelayRow> relays;

  /// A live relay has the lanes.
  [[nodiscard]] bool has_owner() const;
  /// What the relay last reported about an active subscription.
  [[nodiscard]] static std::string trouble_of(const store::SubscriptionRow& row);
  /// What needs a person, each with what to do; with `max_lag` also what lags by more. A subscription that a person paused is not a
  /// problem, nor is its lag.
  [[nodiscard]] std::vector<std::string> problems(
      std::optional<std::chrono::milliseconds> max_lag) const;
};

/// In its largest unit: "0s", "12s", "3m", "2h", "5d".
[[nodiscard]] std::string age_text(std::chrono::microseconds age);

}  // namespace outbox::cli
