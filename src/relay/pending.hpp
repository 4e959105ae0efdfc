// Whether a store has something left to deliver.
#pragma once

#include <outbox/error.hpp>
#include <string>

#include "store/store.hpp"

namespace outbox::relay {

/// The name of an active subscription that has something to deliver; empty when none has. An error when one is stopped, which
/// a person must look at.
[[nodiscard]] Result<std::string> pending_of_active(store::Catalog& catalog);

}  // namespace outbox::relay
