#include "cli/subscription_diff.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "config/reading.hpp"
#include "config/settings.hpp"
#include "config/subscriptions.hpp"

namespace outbox::cli {
namespace {

/// A setting belongs to its sink: another sink's of the same name is another one.
const std::string* find(const SubscriptionSpec& spec, const std::string& sink,
                        const std::string& name) {
  const auto found = spec.sink_settings.find(name);
  return spec.sink != sink || found == spec.sink_settings.end() ? nullptr : &found->second;
}

std::string shown(const std::string& name, const std::string* value) {
  return value == nullptr ? "-" : config::quote(config::show_sink_setting(name, *value));
}

/// A subscription and how it may be shown.
struct Side {
  SubscriptionSpec is;
  SubscriptionSpec shown;
};

void compare_sink_settings(const Side& before, const Side& after,
                           std::vector<FieldChange>& changes) {
  std::set<std::pair<std::string, std::string>> names;
  for (const auto* const spec : {&before.is, &after.is}) {
    for (const auto& [name, value] : spec->sink_settings) names.emplace(spec->sink, name);
  }
  for (const auto& [sink, name] : names) {
    const std::string* const was = find(before.is, sink, name);
    const std::string* const is = find(after.is, sink, name);
    if (was != nullptr && is != nullptr && *was == *is) continue;
    changes.push_back({.field = std::string(sink).append(".").append(name),
                       .before = shown(name, find(before.shown, sink, name)),
                       .after = shown(name, find(after.shown, sink, name))});
  }
}

std::vector<FieldChange> compare_fields(Side before, Side after) {
  std::vector<FieldChange> changes;
  before.is.start = after.is.start;  // An existing one has started.
  for (const auto& row : config::subscription_settings()) {
    const auto& setting = row.setting;
    if (config::show(setting, row.slot(before.is)) == config::show(setting, row.slot(after.is)))
      continue;
    const auto text = [&row](SubscriptionSpec& spec) {
      return config::presentable(row.setting, row.slot(spec), row.slot(spec),
                                 config::Notation::toml);
    };
    changes.push_back(
        {.field = setting.path, .before = text(before.shown), .after = text(after.shown)});
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

const SubscriptionSpec* find(std::span<const SubscriptionSpec> specs, const std::string& name) {
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [&](const SubscriptionSpec& one) { return one.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

std::vector<SubscriptionChange> compare(std::span<const store::SubscriptionRow> present,
                                        std::span<const SubscriptionSpec> wanted,
                                        std::span<const SubscriptionSpec> written) {
  using Kind = SubscriptionChange::Kind;
  std::vector<SubscriptionChange> changes;
  for (const SubscriptionSpec& spec : wanted) {
    const auto found = std::find_if(present.begin(), present.end(),
                                    [&](const auto& row) { return row.spec.name == spec.name; });
    if (found == present.end()) {
      changes.push_back({.kind = Kind::created, .name = spec.name});
      continue;
    }
    const SubscriptionSpec* const as_written = find(written, spec.name);
    const auto side = [&](const SubscriptionSpec& one) {
      return Side{
          .is = one,
          .shown = as_written == nullptr ? one : config::without_references(one, *as_written)};
    };
    auto fields = compare_fields(side(found->spec), side(spec));
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
