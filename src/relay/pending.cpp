#include "relay/pending.hpp"

#include "base/error.hpp"
#include "subscription/group.hpp"

namespace outbox::relay {

Result<std::string> find_pending_subscription(store::Catalog& catalog,
                                              std::span<const std::string> served) {
  OUTBOX_TRY(const auto rows, catalog.subscriptions());
  for (const auto& row : rows) {
    if (!subscription::serves(served, row.group)) continue;
    if (row.state == store::SubscriptionState::stopped) {
      return fail(Errc::unavailable, "subscription " + row.spec.name + " is stopped", row.reason);
    }
    if (row.state != store::SubscriptionState::active) continue;
    if (row.replay != 0) return row.spec.name;
    OUTBOX_TRY(const auto progress, catalog.progress(row, 1));
    if (progress.pending > 0) return row.spec.name;
  }
  return std::string();
}

}  // namespace outbox::relay
