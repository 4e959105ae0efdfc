// Findings about consumers, from what their brokers say (source/inspection.hpp). Pure.
#pragma once

#include <chrono>
#include <outbox/consumer.hpp>
#include <outbox/error.hpp>

#include "health/finding.hpp"
#include "source/inspection.hpp"

namespace outbox::health {

/// `remembered` is inbox.retention.
void judge_consumer(const ConsumerSpec& spec, const Result<source::Inspection>& inspected,
                    std::chrono::milliseconds remembered, Findings& findings);

}  // namespace outbox::health
