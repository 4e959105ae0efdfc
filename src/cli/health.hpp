// What `outbox status` found, and what is wrong with it.
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

  /// Some relay has the lanes and is alive.
  [[nodiscard]] bool somebody_delivers() const;
  /// The relay's last word on an active subscription.
  [[nodiscard]] static std::string trouble_of(const store::SubscriptionRow& row);
  /// What needs a person, each with what to do; with `max_lag` also what lags further behind. A paused subscription is
  /// somebody's wish, and so is its lag.
  [[nodiscard]] std::vector<std::string> problems(
      std::optional<std::chrono::milliseconds> max_lag) const;
};

/// In its largest unit: "0s", "12s", "3m", "2h", "5d".
[[nodiscard]] std::string age_text(std::chrono::microseconds age);

}  // namespace outbox::cli
