// Findings about destinations, from what each says of itself (sink/inspection.hpp). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <outbox/subscription.hpp>

#include "ops/doctor/finding.hpp"
#include "sink/inspection.hpp"

namespace outbox::ops {

void judge_sink(const SubscriptionSpec& spec, const Result<sink::Inspection>& inspected,
                Findings& findings);
/// `payload_limit`: the largest payload that the store takes. Unit: bytes.
void judge_message_size(const SubscriptionSpec& spec, const sink::Inspection& inspection,
                        std::int64_t payload_limit, Findings& findings);

}  // namespace outbox::ops
