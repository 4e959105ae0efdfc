// A [consumer.NAME] section of the file.
#pragma once

#include <optional>
#include <outbox/consumer.hpp>

#include "config/reading.hpp"

namespace outbox::config {

/// Returns nullopt after a complaint. Without `resolve` a section with references is checked less.
[[nodiscard]] std::optional<ConsumerSpec> read_consumer(const Member& section, bool resolve,
                                                        Reading& reading);

}  // namespace outbox::config
