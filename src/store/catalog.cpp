#include "store/catalog.hpp"

namespace outbox::store {

const char* to_string(SubscriptionState state) noexcept {
  switch (state) {
    case SubscriptionState::active: return "active";
    case SubscriptionState::paused: return "paused";
    case SubscriptionState::stopped: return "stopped";
  }
  return "stopped";
}

}  // namespace outbox::store
