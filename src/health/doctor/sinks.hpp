// Findings about destinations, from what each says of itself (sink/inspection.hpp). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <outbox/subscription.hpp>

#include "health/finding.hpp"
#include "sink/inspection.hpp"

namespace outbox::health {

void judge_sink(const SubscriptionSpec& spec, const Result<sink::Inspection>& inspected,
                Findings& findings);
/// Payloads of a store. Unit: bytes.
struct PayloadSizes {
  /// The largest that it takes. Of SQLite it is each application's own, and this its default.
  std::int64_t limit{std::int64_t{1} << 20};
  std::int64_t recent{0};  ///< The largest of the newest events; 0: not known.
};

/// Whether events, and the subscription's own limit, are larger than what the destination takes.
void judge_message_size(const SubscriptionSpec& spec, const sink::Inspection& inspection,
                        const PayloadSizes& sizes, Findings& findings);

}  // namespace outbox::health
