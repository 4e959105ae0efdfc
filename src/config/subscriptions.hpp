// A [subscription.NAME] section of the file.
#pragma once

#include <optional>
#include <outbox/subscription.hpp>
#include <string>

#include "config/reading.hpp"

namespace outbox::config {

/// None after a complaint. Without `resolve` a section with references is checked less.
[[nodiscard]] std::optional<SubscriptionSpec> read_subscription(const Member& section, bool resolve,
                                                                Reading& reading);

/// The value of a sink's setting as it is stored, as it may be shown. A reference may: what it refers to is not in it.
[[nodiscard]] std::string show_sink_setting(const std::string& sink, const std::string& name,
                                            const std::string& value);

/// The value of a subscription's setting ("topic", "headers.tenant", "kafka.brokers") as it may be shown: *** for what may be a
/// secret, and for what has a reference in the configuration.
[[nodiscard]] Json shown_value(const Loaded& loaded, const std::string& subscription,
                               const std::string& setting, const Json& value);

}  // namespace outbox::config
