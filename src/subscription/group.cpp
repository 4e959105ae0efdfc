#include "subscription/group.hpp"

#include <algorithm>

#include "base/field_error.hpp"
#include "base/text.hpp"

namespace outbox::subscription {
namespace {

constexpr std::string_view kCustom = "custom:";
constexpr std::string_view kFile = "file:";
constexpr std::size_t kLongestGroupName = 63;

bool is_plain_name(std::string_view name) {
  const auto allowed = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; };
  return !name.empty() && name.size() <= kLongestGroupName &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

std::string custom_group(std::string_view subscription) {
  return std::string(kCustom).append(subscription);
}

std::string choose_group(const SubscriptionSpec& spec) {
  if (spec.sink == "custom") return spec.group.empty() ? custom_group(spec.name) : spec.group;
  if (spec.sink == "file") return std::string(kFile).append(spec.name);
  return spec.group.empty() ? std::string(kDefaultGroup) : spec.group;
}

std::string choose_group(const SubscriptionSpec& spec, std::string_view former) {
  std::string group = choose_group(spec);
  return has_one_owner(group) && has_one_owner(former) ? std::string(former) : group;
}

bool has_one_owner(std::string_view group) { return group.starts_with(kFile); }

bool serves(std::span<const std::string> served, std::string_view group) {
  const auto has = [&](std::string_view name) {
    return std::find(served.begin(), served.end(), name) != served.end();
  };
  return has(group) || (has(kAllGroups) && !group.starts_with(kCustom));
}

std::string join_groups(std::span<const std::string> groups) {
  std::string text;
  for (const std::string& group : groups) text.append(text.empty() ? "" : ",").append(group);
  return text;
}

std::vector<std::string> split_groups(std::string_view text) {
  std::vector<std::string> groups;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    groups.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return groups;
}

Status check_group(const SubscriptionSpec& spec) {
  if (spec.group.empty()) return {};
  if (spec.sink == "custom" && spec.group.starts_with(kCustom) && is_group_name(spec.group))
    return {};
  if (!is_plain_name(spec.group)) {
    return bad_field("group", in_quotes(spec.group) + " is no name of a group",
                     "at most 63 letters, digits, '-', '_' and '.'");
  }
  if (spec.sink != "custom" && spec.sink != "file") return {};
  return bad_field("group", "a subscription with sink \"" + spec.sink + "\" has a group of its own",
                   "leave it out; relay.groups can name it: " + choose_group(spec));
}

bool is_group_name(std::string_view name) {
  for (const std::string_view prefix : {kCustom, kFile}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  return is_plain_name(name);
}

}  // namespace outbox::subscription
