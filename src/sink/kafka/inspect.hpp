// What the brokers and the topic promise: replication, and the configuration of the topic as far as this user may ask for it.
#pragma once

#include <outbox/error.hpp>
#include <outbox/subscription.hpp>

#include "sink/inspection.hpp"
#include "sink/kafka/config.hpp"

namespace outbox::sink::kafka {

[[nodiscard]] Result<Inspection> inspect(KafkaSettings settings, const SubscriptionSpec& spec);

}  // namespace outbox::sink::kafka
