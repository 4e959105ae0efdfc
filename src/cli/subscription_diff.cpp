#include "cli/subscription_diff.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "config/reading.hpp"
#include "config/settings.hpp"
#include "config/subscriptions.hpp"

namespace outbox::cli {
namespace {

using Settings = std::map<std::string, std::string>;

const std::string* find(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? nullptr : &found->second;
}

std::string shown(const std::string& name, const std::string* value) {
  return value == nullptr ? "-" : config::quote(config::show_sink_setting(name, *value));
}

void compare_sink_settings(const SubscriptionSpec& before, const SubscriptionSpec& after,
                           std::vector<FieldChange>& changes) {
  std::set<std::string> names;
  for (const auto* const settings : {&before.sink_settings, &after.sink_settings}) {
    for (const auto& [name, value] : *settings) names.insert(name);
  }
  for (const auto& name : names) {
    const std::string* const was = find(before.sink_settings, name);
    const std::string* const is = find(after.sink_settings, name);
    if (was != nullptr && is != nullptr && *was == *is) continue;
    changes.push_back(
        {.field = after.sink + "." + name, .before = shown(name, was), .after = shown(name, is)});
  }
}

std::vector<FieldChange> compare_fields(SubscriptionSpec before, SubscriptionSpec after) {
  std::vector<FieldChange> changes;
  before.start = after.start;  // An existing one has started.
  for (const auto& [setting, slot] : config::subscription_settings()) {
    if (config::show(setting, slot(before)) == config::show(setting, slot(after))) continue;
    changes.push_back(
        {.field = setting.path,
         .before = config::presentable(setting, slot(before), slot(before), config::Notation::toml),
         .after = config::presentable(setting, slot(after), slot(after), config::Notation::toml)});
  }
  compare_sink_settings(before, after, changes);
  return changes;
}

}  // namespace

const char* to_string(SubscriptionChange::Kind kind) noexcept {
  switch (kind) {
    case SubscriptionChange::Kind::created: return "created";
    case SubscriptionChange::Kind::changed: return "changed";
    case SubscriptionChange::Kind::unchanged: return "unchanged";
    case SubscriptionChange::Kind::left_alone: return "left alone";
  }
  return "unchanged";
}

std::vector<SubscriptionChange> compare(std::span<const store::SubscriptionRow> present,
                                        std::span<const SubscriptionSpec> wanted) {
  using Kind = SubscriptionChange::Kind;
  std::vector<SubscriptionChange> changes;
  for (const SubscriptionSpec& spec : wanted) {
    const auto found = std::find_if(present.begin(), present.end(),
                                    [&](const auto& row) { return row.spec.name == spec.name; });
    if (found == present.end()) {
      changes.push_back({.kind = Kind::created, .name = spec.name});
      continue;
    }
    auto fields = compare_fields(found->spec, spec);
    changes.push_back({.kind = fields.empty() ? Kind::unchanged : Kind::changed,
                       .name = spec.name,
                       .fields = std::move(fields)});
  }
  for (const auto& row : present) {
    const bool named = std::any_of(wanted.begin(), wanted.end(),
                                   [&](const auto& spec) { return spec.name == row.spec.name; });
    if (!named) changes.push_back({.kind = Kind::left_alone, .name = row.spec.name});
  }
  return changes;
}

}  // namespace outbox::cli
