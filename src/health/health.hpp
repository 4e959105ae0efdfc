// Judges the health of a store: what it delivers, and what of that is not as it should be. `outbox
// status`, its --check and `outbox doctor` show the findings that are made here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <vector>

#include "health/finding.hpp"
#include "health/queues.hpp"
#include "store/adoption.hpp"
#include "store/history.hpp"
#include "store/store.hpp"
#include "store/subscriptions.hpp"

namespace outbox::health {

/// What a store delivers. A part that could not be read is an error of its own and leaves the
/// others.
struct Deliveries {
  std::vector<store::SubscriptionOverview> subscriptions;
  Result<std::vector<store::RelayRow>> relays;
  Result<std::vector<store::Hold>> holds;  ///< The history that subscriptions hold back.
  Result<Queues> queues;
  /// What continuous verification has found.
  Result<std::vector<store::VerifiedRow>> verified;
};

struct HealthLimits {
  /// How old a pending event of an active subscription may be; nullopt if its age is not judged.
  std::optional<std::chrono::milliseconds> max_lag;
  std::size_t quota{0};  ///< How much history a subscription may hold back. Unit: bytes.
};

/// Reads what the store delivers. `keep` is how long history is kept after it was written, `limit`
/// how many pending events of a subscription are counted.
[[nodiscard]] Result<Deliveries> look_at_deliveries(store::Store& store,
                                                    std::chrono::milliseconds keep,
                                                    std::int64_t limit);
[[nodiscard]] Findings judge(const Deliveries& seen, const HealthLimits& limits);

/// Whether the filter of the subscription is probably wrong, since it matched none of many events.
/// A priority of a queue that nobody uses has no such filter.
[[nodiscard]] bool matches_nothing(const store::SubscriptionOverview& one);
/// Whether a live relay has lanes.
[[nodiscard]] bool has_owner(const std::vector<store::RelayRow>& relays);

// The parts of judge().
void judge_relays(const std::vector<store::RelayRow>& relays,
                  const std::vector<store::SubscriptionOverview>& subscriptions,
                  Findings& findings);
void judge_subscriptions(const std::vector<store::SubscriptionOverview>& subscriptions,
                         std::optional<std::chrono::milliseconds> max_lag, Findings& findings);
void judge_history(const std::vector<store::Hold>& holds,
                   const std::vector<store::SubscriptionOverview>& subscriptions, std::size_t quota,
                   Findings& findings);
void judge_queues(const Queues& queues, Findings& findings);
void judge_verified(const std::vector<store::VerifiedRow>& rows, Findings& findings);

/// Judges whether rows of adopted tables are forwarded. `outbox doctor` asks for more about each
/// table.
void judge_adoptions(const std::vector<store::AdoptionRow>& rows, Findings& findings);

}  // namespace outbox::health
