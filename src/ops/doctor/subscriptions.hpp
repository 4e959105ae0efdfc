// Findings about what is delivered: relays, subscriptions, parked events, and the configuration compared with the store. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <outbox/subscription.hpp>
#include <vector>

#include "ops/doctor/finding.hpp"
#include "store/history.hpp"
#include "store/subscriptions.hpp"

namespace outbox::ops {

/// Its filter is probably wrong. That of a priority of a queue that nobody uses is not.
[[nodiscard]] bool matches_nothing(const store::SubscriptionOverview& one);
/// Whether a live relay has lanes.
[[nodiscard]] bool has_owner(const std::vector<store::RelayRow>& relays);

void judge_relays(const std::vector<store::RelayRow>& relays,
                  const std::vector<store::SubscriptionOverview>& subscriptions,
                  Findings& findings);
/// State, trouble, parked events; and, unless `max_lag` is none, whether an active one has pending events that are older.
void judge_subscriptions(const std::vector<store::SubscriptionOverview>& subscriptions,
                         std::optional<std::chrono::milliseconds> max_lag, Findings& findings);
/// `quota`: what one may hold back. Unit: bytes.
void judge_history(const std::vector<store::Hold>& holds,
                   const std::vector<store::SubscriptionOverview>& subscriptions, std::size_t quota,
                   Findings& findings);
/// `wanted`: those of the configuration, in the file named.
void judge_difference(const std::vector<SubscriptionSpec>& wanted,
                      const std::vector<store::SubscriptionOverview>& subscriptions,
                      const std::string& file, Findings& findings);

}  // namespace outbox::ops
