// Whether a store has something to deliver.
#pragma once

#include <outbox/error.hpp>
#include <span>
#include <string>

#include "store/store.hpp"

namespace outbox::relay {

/// The name of an active subscription of the groups `served` (subscription/group.hpp) that has
/// something to deliver, or to send again; empty if none has. Fails if a subscription is stopped,
/// which needs a person.
[[nodiscard]] Result<std::string> find_pending_subscription(store::Catalog& catalog,
                                                            std::span<const std::string> served);

}  // namespace outbox::relay
