#include "config/reading.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "base/reference.hpp"
#include "config/secret.hpp"
#include "store/url.hpp"

namespace outbox::config {
namespace {

using Texts = std::map<std::string, std::string>;

constexpr std::size_t kShownBytes = 40;

std::string found(const Setting& setting, const toml::node& value) {
  if (value.is_array() || value.is_table()) return std::string(describe(value));
  if (setting.secret) return value.is_string() ? "a string" : std::string(describe(value));
  std::string text = to_text(value);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return value.is_string() ? "the string " + quote(text)
                           : std::string(describe(value)) + " " + text;
}

bool fits(SettingType type, const toml::node& value) {
  switch (type) {
    case SettingType::text:
    case SettingType::url:
    case SettingType::path:
    case SettingType::choice:
    case SettingType::duration:
    case SettingType::rate: return value.is_string();
    case SettingType::boolean: return value.is_boolean();
    case SettingType::count: return value.is_integer();
    case SettingType::size: return value.is_string() || value.is_integer();
    case SettingType::list: return value.is_array();
    case SettingType::table: return value.is_table();
  }
  return false;
}

std::string type_hint(const Setting& setting, const toml::node& value) {
  const std::string key(setting.key());
  const bool scalar = !value.is_array() && !value.is_table();
  if (setting.type == SettingType::duration && value.is_integer())
    return needs_unit(setting, to_text(value));
  if (setting.type == SettingType::list && value.is_string())
    return "write " + key + " = [" + quote(to_text(value)) + "]";
  if (setting.type == SettingType::text && scalar)
    return "write it in quotes: " + key + " = " + quote(to_text(value));
  if (setting.type == SettingType::choice)
    return "write it in quotes, such as " + key + " = " + quote(setting.choices.front());
  if (setting.type == SettingType::url)
    return "write " + key + " = \"postgresql://...\" or \"sqlite:PATH\"";
  if (setting.type == SettingType::boolean)
    return "write " + key + " = true or false, without quotes";
  if (setting.type == SettingType::count && value.is_string())
    return "write it without quotes: " + key + " = 100";
  return key + " takes " + setting.expectation();
}

tl::unexpected<Error> item_misfit(const Setting& setting, const toml::node& item,
                                  const std::string& where) {
  return misfit(setting, std::string(describe(item)) + where, "write each value in quotes");
}

/// Takes a user, a password or a parameter of the URL that comes from a reference literally: it is
/// percent-encoded in a URL and quoted in a "host=... password=..." text.
std::string fit_into_url(std::string_view before, std::string_view after, std::string_view value) {
  const std::string right = without_references(after);
  const bool whole = before.ends_with('=') && (right.empty() || right.front() == ' ');
  return store::fitted(without_references(before), right, value, whole);
}

}  // namespace

void Reading::complain(std::string what, std::string path, Position at, std::string hint) {
  problems.push_back({.what = std::move(what),
                      .path = std::move(path),
                      .where = place(file, at),
                      .at = at,
                      .hint = std::move(hint)});
}

void Reading::complain(const std::string& path, Position at, const Error& error) {
  complain(path + ": " + error.message, path, at, error.hint);
}

toml::table* Reading::table(const Member& section, const std::string& path) {
  auto* const table = section.value->as_table();
  if (table == nullptr) {
    complain(path + ": expected a table, found " + std::string(describe(*section.value)), path,
             section.at, "write [" + path + "] and its settings below it");
  }
  return table;
}

std::string Reading::origin(Position at) const { return file + ":" + std::to_string(at.line); }

std::string Reading::directory() const { return std::filesystem::path(file).parent_path(); }

std::string Reading::anchored(const std::string& path) const {
  const bool independent = path.empty() || path.front() == '/' || path.front() == '~';
  if (independent) return path;
  return std::filesystem::absolute(std::filesystem::path(directory()) / path).lexically_normal();
}

bool Reading::take_references(toml::node& value, const std::string& path, bool resolve) {
  bool good = true;
  if (auto* const text = value.as_string(); text != nullptr && has_references(text->get())) {
    references.insert(path);
    if (!resolve) return true;
    auto resolved = resolve_setting(path, text->get(), directory());
    if (!resolved) {
      complain(path, position(value), resolved.error());
      return false;
    }
    text->get() = std::move(*resolved);
  } else if (auto* const items = value.as_array()) {
    for (toml::node& item : *items) good = take_references(item, path, resolve) && good;
  } else if (auto* const table = value.as_table()) {
    for (const Member& member : members(*table))
      good = take_references(*member.value, path + "." + member.key, resolve) && good;
  }
  return good;
}

Status assign(const Setting& setting, Slot slot, const toml::node& value) {
  if (!fits(setting.type, value))
    return misfit(setting, found(setting, value), type_hint(setting, value));
  if (const auto* const items = value.as_array()) {
    std::vector<std::string> list;
    for (const toml::node& item : *items) {
      if (!item.is_string()) return item_misfit(setting, item, " in it");
      list.push_back(to_text(item));
    }
    return outbox::assign(slot, std::move(list));
  }
  if (const auto* const table = value.as_table()) {
    Texts texts;
    for (const auto& [key, item] : *table) {
      if (!item.is_string()) return item_misfit(setting, item, " at " + std::string(key.str()));
      texts.emplace(key.str(), to_text(item));
    }
    *std::get<Texts*>(slot) = std::move(texts);
    return {};
  }
  return outbox::assign(setting, slot, to_text(value));
}

Result<std::string> resolve_setting(const std::string& path, const std::string& text,
                                    const std::string& directory) {
  return path == "store.url" ? resolve(text, directory, fit_into_url) : resolve(text, directory);
}

Json presentable(const Setting& setting, Slot effective, Slot written) {
  if (setting.secret) return store::shown_url(*std::get<std::string*>(effective));
  Json json = to_json(setting, written);
  if (!json.is_object()) return json;
  for (const auto& [name, value] : json.items()) {
    if (is_secret_name(name)) value = kMask;
  }
  return json;
}

}  // namespace outbox::config
