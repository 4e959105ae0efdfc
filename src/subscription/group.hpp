// Groups of subscriptions: relays that serve a group share its lanes (docs/design/groups.md). Pure.
#pragma once

#include <outbox/subscription.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::subscription {

inline constexpr std::string_view kDefaultGroup = "default";
/// Stands, among what a relay serves, for every group but those of custom sinks.
inline constexpr std::string_view kAllGroups = "*";

/// The group of a subscription: what its setting says; `custom:NAME` and `file:NAME` for these
/// sinks; otherwise `default`. Custom sinks whose lanes one process must have may name one's group.
[[nodiscard]] std::string choose_group(const SubscriptionSpec& spec);
/// The group of a subscription that is in `former` already. A file keeps its group when its name
/// changes: in another group a second relay could write it.
[[nodiscard]] std::string choose_group(const SubscriptionSpec& spec, std::string_view former);
[[nodiscard]] std::string custom_group(std::string_view subscription);
/// Whether only one process may serve the group, since a part of a file has only one writer.
[[nodiscard]] bool has_one_owner(std::string_view group);
/// `served` has names of groups, and perhaps kAllGroups.
[[nodiscard]] bool serves(std::span<const std::string> served, std::string_view group);

/// The names joined by commas, as the stores keep them.
[[nodiscard]] std::string join_groups(std::span<const std::string> groups);
[[nodiscard]] std::vector<std::string> split_groups(std::string_view text);

/// Checks the setting `group` of a subscription, which may be empty.
[[nodiscard]] Status check_group(const SubscriptionSpec& spec);
/// Whether a relay may be told to serve this name.
[[nodiscard]] bool is_group_name(std::string_view name);

}  // namespace outbox::subscription
