// Findings about what is delivered: relays, subscriptions, parked events, and the configuration compared with the store. Pure.
#pragma once

#include <cstddef>
#include <outbox/subscription.hpp>
#include <vector>

#include "ops/doctor/finding.hpp"
#include "store/history.hpp"
#include "store/subscriptions.hpp"

namespace outbox::ops {

void judge_relays(const std::vector<store::RelayRow>& relays,
                  const std::vector<store::SubscriptionOverview>& subscriptions,
                  Findings& findings);
/// State, trouble, pending age, parked events.
void judge_subscriptions(const std::vector<store::SubscriptionOverview>& subscriptions,
                         Findings& findings);
/// `quota`: what one may hold back. Unit: bytes.
void judge_history(const std::vector<store::Hold>& holds,
                   const std::vector<store::SubscriptionOverview>& subscriptions, std::size_t quota,
                   Findings& findings);
/// `wanted`: those of the configuration, in the file named.
void judge_difference(const std::vector<SubscriptionSpec>& wanted,
                      const std::vector<store::SubscriptionOverview>& subscriptions,
                      const std::string& file, Findings& findings);

}  // namespace outbox::ops
