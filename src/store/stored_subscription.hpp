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
[[nodiscard]] SubscriptionState parse_state(std::string_view word) noexcept;

/// A word that this version does not know counts as dead.
[[nodiscard]] ParkedState parse_parked_state(std::string_view word) noexcept;

/// Nullopt if the word is empty. A word that this version does not know counts as discarded.
[[nodiscard]] std::optional<ParkedOutcome> parse_parked_outcome(std::string_view word) noexcept;

/// Sets the spec. A configuration that cannot be read stops the subscription, but not the others,
/// and leaves the reason where a person can see it.
void read_config(SubscriptionRow& row, std::string_view name, std::string_view config);

/// Whether the two are equal in meaning: a store may order JSON in its own way, and an older
/// version knew fewer settings.
[[nodiscard]] bool same_config(const std::string& name, std::string_view stored,
                               const std::string& wanted);

/// Sets left_out and paused_types of all rows, which follow from the other rows.
void note_types_of_their_own(std::vector<SubscriptionRow>& all);
/// Fails if a subscription that takes over the tasks of a type would become that of another type
/// with the same hash.
[[nodiscard]] Status check_same_type(const SubscriptionSpec& wanted, std::string_view stored);

/// Parses text like {"default": 32, "heavy": 64}, which both stores return; an empty text gives an
/// empty map.
[[nodiscard]] std::map<std::string, std::int64_t> lanes_by_group(std::string_view json);

[[nodiscard]] Status no_such_subscription(std::string_view name);
/// The error that the subscription's settlements were deleted. `which` is its name or id.
[[nodiscard]] tl::unexpected<Error> no_cursor(const std::string& which);

}  // namespace outbox::store
