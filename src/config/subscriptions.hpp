// A [subscription.NAME] section of the file.
#pragma once

#include <map>
#include <optional>
#include <outbox/subscription.hpp>
#include <string>
#include <vector>

#include "config/reading.hpp"

namespace outbox::config {

/// Returns nullopt after a complaint. Without `resolve` a section with references is checked less.
[[nodiscard]] std::optional<SubscriptionSpec> read_subscription(const Member& section, bool resolve,
                                                                Reading& reading);

/// Settings of a subscription, and the table of its sink, within another section.
struct SinkPart {
  std::string path;     ///< The section's name for messages.
  std::string section;  ///< The section's name in the file, where a name with a dot is in quotes.
  Position at;
  std::vector<Member> members;         ///< Each is one of `rows`, or the table of the sink.
  SettingRows<SubscriptionSpec> rows;  ///< The settings that exist besides those of the sink.
  SubscriptionSpec preset;             ///< The sink and defaults.
  /// Settings of the sink that `preset` has and the file must not have, and why.
  std::map<std::string, std::string> settled{};
  std::string_view owner{"subscription"};  ///< The owner of the section, for messages.
  std::vector<std::string> others{};       ///< Settings of the section that are not in `rows`.
};
/// Returns nullopt after a complaint. Without `resolve` a section with references is checked less.
[[nodiscard]] std::optional<SubscriptionSpec> read_sink_part(SinkPart part, bool resolve,
                                                             Reading& reading);

/// The stored value of a sink's setting as it may be shown. A reference may be, because the value
/// behind it is not in it.
[[nodiscard]] std::string show_sink_setting(const std::string& sink, const std::string& name,
                                            const std::string& value);

/// The value of a subscription's setting ("topic", "headers.tenant", "http.url") as it may be
/// shown: *** for what may be a secret, and for what has a reference in the configuration.
[[nodiscard]] Json shown_value(const Loaded& loaded, const std::string& subscription,
                               const std::string& setting, const Json& value);

}  // namespace outbox::config
