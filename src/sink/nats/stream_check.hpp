// Reads what JetStream says about itself and a stream, and what prevents or weakens delivery. Pure.
#pragma once

#include <chrono>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/inspection.hpp"

namespace outbox::sink::nats {

/// `reply` is that of $JS.API.STREAM.INFO. `window` is how long after the first attempt an event in
/// doubt may be sent again.
[[nodiscard]] Result<std::vector<Weakness>> check_stream(const std::string& stream,
                                                         std::string_view reply,
                                                         std::chrono::nanoseconds window);

/// `reply` is that of $JS.API.INFO.
[[nodiscard]] Status check_account(std::string_view reply);

}  // namespace outbox::sink::nats
