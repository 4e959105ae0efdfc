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
/// Sizes of payloads of a store. Unit: bytes.
struct PayloadSizes {
  /// The largest payload that the store takes. With SQLite each application has its own limit; this
  /// is the default.
  std::int64_t limit{std::int64_t{1} << 20};
  std::int64_t recent{0};  ///< The largest of the newest events; 0 if it is not known.
};

/// Judges whether events, and the subscription's own limit, are larger than what the destination
/// takes.
void judge_message_size(const SubscriptionSpec& spec, const sink::Inspection& inspection,
                        const PayloadSizes& sizes, Findings& findings);

}  // namespace outbox::health
