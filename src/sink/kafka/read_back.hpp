// Reads back what the topics of a subscription hold. See docs/sinks/kafka.md.
#pragma once

#include <outbox/subscription.hpp>

#include "sink/kafka/config.hpp"
#include "sink/read_back.hpp"

namespace outbox::sink::kafka {

[[nodiscard]] Result<ReadParts> read_back(const KafkaSettings& settings,
                                          const SubscriptionSpec& spec, const TakeId& take);

}  // namespace outbox::sink::kafka
