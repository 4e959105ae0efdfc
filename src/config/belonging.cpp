#include "config/belonging.hpp"

#include <algorithm>

#include "config/settings.hpp"
#include "sink/registry.hpp"

namespace outbox::config {
namespace {

std::string below(std::string_view section) {
  return std::string("write it below [").append(section).append("]");
}

template <class Rows>
bool any_named(const Rows& rows, std::string_view key) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return row.setting.name == key; });
}

}  // namespace

bool has_setting(const sink::SinkKind& sink, std::string_view name) {
  return std::any_of(sink.settings.begin(), sink.settings.end(), [&](const Setting& setting) {
    const std::string_view known = setting.name;
    return known == name || (known.starts_with(name) && known.substr(name.size()).starts_with('.'));
  });
}

std::string sinks_with(std::string_view name) {
  std::string sinks;
  for (const auto& kind : sink::kinds()) {
    if (has_setting(kind, name)) sinks.append(sinks.empty() ? "" : " or ").append(kind.name);
  }
  return sinks;
}

std::optional<std::string> where_it_belongs(std::string_view key) {
  for (const auto& row : settings()) {
    if (row.setting.key() == key) return "did you mean " + row.setting.name + "?";
  }
  if (any_named(subscription_settings(), key)) return below("subscription.NAME");
  if (any_named(task_settings(), key)) return below("task.TYPE");
  if (any_named(schedule_settings(), key)) return below("schedule.NAME");
  if (any_named(consumer_settings(), key)) return below("consumer.NAME");
  if (sink::find_kind(key) != nullptr)
    return "settings of this sink are below [subscription.NAME." + std::string(key) + "]";
  const std::string sinks = sinks_with(key);
  if (sinks.empty()) return std::nullopt;
  return "it is a setting of sink " + sinks + ": " + below("subscription.NAME.SINK");
}

}  // namespace outbox::config
