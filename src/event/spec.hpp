// A subscription as JSON (the column `config` of the table `subscription`) and its validation. Pure.
#pragma once

#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::event {

/// Names the field that is wrong. Sink settings are checked by the sink.
[[nodiscard]] Status validate(const SubscriptionSpec& spec);

/// Everything but name and start; keys sorted, so equal specs give equal text.
[[nodiscard]] std::string to_json(const SubscriptionSpec& spec);
[[nodiscard]] Result<SubscriptionSpec> from_json(std::string_view name, std::string_view json);

/// One setting of a subscription that differs, by its name in the configuration.
struct SettingDifference {
  std::string setting;
  std::string before;  ///< As JSON; "-": there was none.
  std::string after;

  auto operator<=>(const SettingDifference&) const = default;
};

/// What differs between two specs of one subscription. `start` is not looked at. May be logged: the values of headers and of a
/// sink's settings, which may be secret, are not shown.
[[nodiscard]] std::vector<SettingDifference> differences(const SubscriptionSpec& before,
                                                         const SubscriptionSpec& after);

}  // namespace outbox::event
