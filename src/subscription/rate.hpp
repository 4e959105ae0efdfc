// The rate of a subscription: "200/s", "30/min", "1000/h". Pure.
#pragma once

#include <outbox/error.hpp>
#include <string_view>

namespace outbox::subscription {

/// The rate in events per second.
[[nodiscard]] Result<double> parse_rate(std::string_view text);

}  // namespace outbox::subscription
