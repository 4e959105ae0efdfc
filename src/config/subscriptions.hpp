// A [subscription.NAME] section of the file.
#pragma once

#include <optional>
#include <outbox/subscription.hpp>

#include "config/document.hpp"
#include "config/reading.hpp"

namespace outbox::config {

/// None after a complaint.
[[nodiscard]] std::optional<SubscriptionSpec> read_subscription(const Member& section, bool resolve,
                                                                Reading& reading);

/// A setting of a sink as it may be shown.
[[nodiscard]] std::string show_sink_setting(const std::string& name, const std::string& value);

/// The subscription with *** for what came from a reference: for what has one in `written`, the same before references
/// were replaced.
[[nodiscard]] SubscriptionSpec without_references(SubscriptionSpec spec,
                                                  const SubscriptionSpec& written);

}  // namespace outbox::config
