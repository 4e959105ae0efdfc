// Groups of subscriptions: the relays that serve a group share its lanes (docs/design/groups.md). Pure.
#pragma once

#include <outbox/subscription.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::subscription {

inline constexpr std::string_view kDefaultGroup = "default";
/// Among what a relay serves: every group but those of custom sinks.
inline constexpr std::string_view kAllGroups = "*";

/// The group of a subscription: what its setting says; `custom:NAME` and `file:NAME` for these sinks; else `default`. Custom sinks whose
/// lanes one process must have together may name the group of one of them.
[[nodiscard]] std::string group_of(const SubscriptionSpec& spec);
/// The same for one that is in `former` already. A file keeps its group when the name changes: in another one a second relay could write it.
[[nodiscard]] std::string group_of(const SubscriptionSpec& spec, std::string_view former);
[[nodiscard]] std::string custom_group(std::string_view subscription);
/// Of a file only one process may write a part.
[[nodiscard]] bool has_one_owner(std::string_view group);
/// `served`: names of groups, and kAllGroups.
[[nodiscard]] bool serves(std::span<const std::string> served, std::string_view group);

/// Names joined by commas, as the stores keep them.
[[nodiscard]] std::string join_groups(std::span<const std::string> groups);
[[nodiscard]] std::vector<std::string> split_groups(std::string_view text);

/// The setting `group` of a subscription; empty: none.
[[nodiscard]] Status check_group(const SubscriptionSpec& spec);
/// What a relay may be told to serve.
[[nodiscard]] bool is_group_name(std::string_view name);

}  // namespace outbox::subscription
