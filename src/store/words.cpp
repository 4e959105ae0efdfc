// The words of the contract as they are stored.
#include "store/store.hpp"

namespace outbox::store {

const char* to_string(SettlementKind kind) noexcept {
  switch (kind) {
    case SettlementKind::settle: return "settle";
    case SettlementKind::claim: return "claim";
    case SettlementKind::mark: return "mark";
    case SettlementKind::retry: return "retry";
    case SettlementKind::reset: return "reset";
  }
  return "settle";
}

const char* to_string(SubscriptionState state) noexcept {
  switch (state) {
    case SubscriptionState::active: return "active";
    case SubscriptionState::paused: return "paused";
    case SubscriptionState::stopped: return "stopped";
  }
  return "stopped";
}

}  // namespace outbox::store
