// A subscription as JSON (the column `config` of the table `subscription`) and its validation. Pure.
#pragma once

#include <outbox/subscription.hpp>
#include <string>
#include <string_view>

namespace outbox::event {

/// Names the field that is wrong. Sink settings are checked by the sink.
[[nodiscard]] Status validate(const SubscriptionSpec& spec);

/// Everything but name and start; keys sorted, so equal specs give equal text.
[[nodiscard]] std::string to_json(const SubscriptionSpec& spec);
[[nodiscard]] Result<SubscriptionSpec> from_json(std::string_view name, std::string_view json);

}  // namespace outbox::event
