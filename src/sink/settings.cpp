#include "sink/settings.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace outbox::sink {
namespace {

using std::chrono::microseconds;

constexpr std::string_view kChoice = "choice: ";

bool is_boolean(std::string_view text) { return text == "true" || text == "false"; }

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> choices(std::string_view type) {
  std::vector<std::string_view> found;
  type.remove_prefix(kChoice.size());
  while (true) {
    const auto bar = type.find('|');
    found.push_back(type.substr(0, bar));
    if (bar == std::string_view::npos) return found;
    type.remove_prefix(bar + 1);
  }
}

/// What is wrong with the value; empty: nothing.
std::string fault(const SettingInfo& setting, std::string_view value) {
  if (setting.type == "duration" && !parse_duration(value))
    return "is not a duration like 500ms, 10s, 5min or 7d";
  if (setting.type == "integer" && !parse_integer(value)) return "is not a whole number";
  if (setting.type == "boolean" && !is_boolean(value)) return "is neither true nor false";
  if (setting.required && value.empty()) return "is empty";
  if (setting.type.starts_with(kChoice)) {
    const auto known = choices(setting.type);
    const bool found = std::find(known.begin(), known.end(), value) != known.end();
    if (!found) return "is none of " + setting.type.substr(kChoice.size());
  }
  return {};
}

tl::unexpected<Error> unknown_setting(const SinkInfo& info, const std::string& name) {
  std::vector<std::string_view> known;
  for (const SettingInfo& setting : info.settings) known.push_back(setting.name);
  return fail(
      Errc::invalid_argument, info.name + "." + name + ": no such setting",
      known.empty() ? "sink \"" + info.name + "\" has no settings" : did_you_mean(name, known));
}

}  // namespace

Result<Settings> Settings::read(const SinkInfo& info,
                                const std::map<std::string, std::string>& given) {
  Settings settings;
  for (const SettingInfo& setting : info.settings) {
    const auto found = given.find(setting.name);
    if (found == given.end()) {
      if (setting.required) {
        return fail(Errc::invalid_argument, info.name + "." + setting.name + ": is missing",
                    setting.help);
      }
      settings.values_.emplace(setting.name, setting.default_value);
      continue;
    }
    if (const std::string wrong = fault(setting, found->second); !wrong.empty()) {
      return fail(Errc::invalid_argument,
                  info.name + "." + setting.name + ": \"" + found->second + "\" " + wrong,
                  setting.help);
    }
    settings.values_.emplace(setting.name, found->second);
  }
  for (const auto& [name, value] : given) {
    if (settings.values_.contains(name)) continue;
    if (!info.free_form) return unknown_setting(info, name);
    settings.others_.emplace(name, value);
  }
  return settings;
}

const std::string& Settings::text(std::string_view name) const {
  const auto found = values_.find(name);
  OUTBOX_CHECK(found != values_.end());
  return found->second;
}

microseconds Settings::duration(std::string_view name) const {
  const auto parsed = parse_duration(text(name));
  OUTBOX_CHECK(parsed.has_value());
  return *parsed;
}

std::int64_t Settings::integer(std::string_view name) const {
  const auto parsed = parse_integer(text(name));
  OUTBOX_CHECK(parsed.has_value());
  return *parsed;
}

bool Settings::boolean(std::string_view name) const { return text(name) == "true"; }

}  // namespace outbox::sink
