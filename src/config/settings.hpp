// The table of all settings. Parsing, checking, `--help`, `outbox config` and docs/reference are made from it; a new setting
// is one row. Defaults are those of the structures themselves.
#pragma once

#include <chrono>
#include <outbox/relay.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <vector>

#include "config/setting.hpp"

namespace outbox::config {

struct Config {
  /// The store, the relay and the subscriptions.
  RelayOptions relay{};
  std::chrono::milliseconds grace{std::chrono::seconds(10)};
  std::string log_level{"info"};
  std::string log_format{"text"};
};

[[nodiscard]] const std::vector<Row<Config>>& settings();
/// Those of a [subscription.NAME] section.
[[nodiscard]] const std::vector<Row<SubscriptionSpec>>& subscription_settings();

/// None when there is no such setting.
[[nodiscard]] const Row<Config>* find_setting(std::string_view path);

}  // namespace outbox::config
