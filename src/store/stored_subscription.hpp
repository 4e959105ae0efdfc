// Subscriptions as both stores keep them: a name, a configuration in JSON, a state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/parked.hpp"
#include "store/subscriptions.hpp"

namespace outbox::store {

/// A word that this version does not know counts as stopped.
[[nodiscard]] SubscriptionState state_of(std::string_view word) noexcept;

/// A word that this version does not know counts as dead.
[[nodiscard]] ParkedState parked_state_of(std::string_view word) noexcept;

/// Empty: none. A word that this version does not know counts as discarded.
[[nodiscard]] std::optional<ParkedOutcome> parked_outcome_of(std::string_view word) noexcept;

/// Sets the spec. A configuration that cannot be read stops the subscription, with the reason where
/// a person can see it: it must not stop the others.
void read_config(SubscriptionRow& row, std::string_view name, std::string_view config);

/// Equal in meaning: a store may order JSON in its own way, and an older version knew fewer
/// settings.
[[nodiscard]] bool same_config(const std::string& name, std::string_view stored,
                               const std::string& wanted);

/// Sets left_out and paused_types of all: what the rows say about each other.
void note_types_of_their_own(std::vector<SubscriptionRow>& all);
/// One that takes over the tasks of a type must not become that of another type whose hash is the
/// same.
[[nodiscard]] Status check_same_type(const SubscriptionSpec& wanted, std::string_view stored);

/// {"default": 32, "heavy": 64}, as both stores return it; empty: none.
[[nodiscard]] std::map<std::string, std::int64_t> lanes_by_group(std::string_view json);

[[nodiscard]] Status no_such_subscription(std::string_view name);
/// Its settlements were deleted. `which`: its name or id.
[[nodiscard]] tl::unexpected<Error> no_cursor(const std::string& which);

}  // namespace outbox::store
