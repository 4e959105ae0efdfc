// Subscriptions: their validation, and their JSON (column `config` of table `subscription`). Pure.
#pragma once

#include <array>
#include <functional>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.hpp"
#include "base/words.hpp"

namespace outbox {

template <>
inline constexpr std::array<std::string_view, 2> kWords<Start>{"beginning", "now"};
template <>
inline constexpr std::array<std::string_view, 2> kWords<OnReject>{"park", "stop"};
template <>
inline constexpr std::array<std::string_view, 2> kWords<OnDead>{"continue", "block"};

}  // namespace outbox

namespace outbox::subscription {

/// Adds every error. Sink settings are checked by the sink.
void check(const SubscriptionSpec& spec, FieldErrors& errors);
/// The first error of check().
[[nodiscard]] Status validate(const SubscriptionSpec& spec);

/// Everything but name and start. Keys are sorted, so that equal specs give equal text.
[[nodiscard]] std::string to_json(const SubscriptionSpec& spec);
[[nodiscard]] Result<SubscriptionSpec> from_json(std::string_view name, std::string_view json);

/// A setting that differs between two specs, by its name in the configuration.
struct SettingDifference {
  std::string setting;  ///< "topic", "headers.tenant", "http.url"
  std::string before;   ///< As JSON; "-" if it was not set.
  std::string after;

  auto operator<=>(const SettingDifference&) const = default;
};

/// How the value of a setting, given as JSON, is shown.
using ShowValue = std::function<std::string(const std::string& setting, const std::string& json)>;

/// What differs between two specs of one subscription, without `start`, which matters only when it
/// is created. By default the result may be logged: the values of headers and sink settings, which
/// may be secret, are hidden.
[[nodiscard]] std::vector<SettingDifference> differences(const SubscriptionSpec& before,
                                                         const SubscriptionSpec& after,
                                                         const ShowValue& show = {});

}  // namespace outbox::subscription
