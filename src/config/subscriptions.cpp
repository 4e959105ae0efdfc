#include "config/subscriptions.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.hpp"
#include "base/reference.hpp"
#include "base/text.hpp"
#include "config/belonging.hpp"
#include "config/secret.hpp"
#include "sink/registry.hpp"
#include "subscription/spec.hpp"

namespace outbox::config {
namespace {

bool names_file(const sink::SinkKind& sink, const std::string& name, const std::string& value) {
  if (const Setting* const setting = sink.find(name)) return setting->type == SettingType::path;
  return sink.passed_on && sink.passed_on->names_file(name, value);
}

class SubscriptionReader {
 public:
  SubscriptionReader(SinkPart part, bool resolve, Reading& reading)
      : part_(std::move(part)),
        resolve_(resolve),
        reading_(reading),
        path_(part_.path),
        effective_(part_.preset),
        written_(part_.preset) {
    written_.sink_settings.clear();
  }

  std::optional<SubscriptionSpec> read() {
    const std::size_t before = reading_.problems.size();
    const std::size_t references_before = reading_.references.size();
    for (const Member& member : part_.members) read_member(member);
    sink_ = sink::find_kind(effective_.sink);
    for (const Member& member : unknown_) complain_about_unknown(member);
    if (effective_.sink.empty()) {
      if (reading_.problems.size() == before) complain_about_missing_sink();
      return std::nullopt;
    }
    const bool readable = read_sink_tables();
    if (resolve_ || reading_.references.size() == references_before) check(readable);
    if (reading_.problems.size() != before) return std::nullopt;
    add_entries();
    return std::move(effective_);
  }

 private:
  /// Complains if this build lacks the sink, since a person must learn how to get it.
  bool is_missing_sink(const Member& member) {
    const auto* const name = member.value->as_string();
    if (member.key != "sink" || name == nullptr) return false;
    const auto missing = sink::not_in_this_build(name->get());
    if (missing) reading_.complain(path_, position(*member.value), *missing);
    return missing.has_value();
  }

  void read_member(const Member& member) {
    for (const auto& row : part_.rows) {
      if (row.setting.name != member.key) continue;
      if (is_missing_sink(member)) return;
      return read_setting(row, member);
    }
    if (member.value->is_table() && sink::find_kind(member.key) != nullptr)
      return sink_tables_.push_back(member);
    // There is a complaint about the sink already.
    if (member.value->is_table() && sink::not_in_this_build(member.key)) return;
    unknown_.push_back(member);
  }

  /// Complains about a setting after the sink, if any, has become known.
  void complain_about_unknown(const Member& member) {
    const std::string path = path_ + "." + member.key;
    if (sink_ != nullptr && is_of_sink(member)) {
      return reading_.complain(
          path + ": is a setting of the sink, not of the " + std::string(part_.owner), path,
          member.at, "write it below [" + part_.section + "." + effective_.sink + "]");
    }
    std::vector<std::string_view> known;
    for (const auto& row : part_.rows) known.emplace_back(row.setting.name);
    for (const auto& kind : sink::kinds()) known.emplace_back(kind.name);
    if (nearest(member.key, known)) return unknown(path, member.key, member.at, known);
    if (const std::string sinks = sinks_with(member.key); sink_ != nullptr && !sinks.empty()) {
      return reading_.complain(
          path + ": is a setting of sink " + sinks, path, member.at,
          "the sink of this " + std::string(part_.owner) + " is " + effective_.sink);
    }
    const auto elsewhere = where_it_belongs(member.key);
    if (elsewhere) return reading_.complain("unknown setting " + path, path, member.at, *elsewhere);
    unknown(path, member.key, member.at, known);
  }

  /// Whether the setting is the sink's. Settings that a sink passes on may have dots: tables here.
  [[nodiscard]] bool is_of_sink(const Member& member) const {
    if (has_setting(*sink_, member.key)) return true;
    if (!sink_->passed_on || !member.value->is_table()) return false;
    std::vector<std::string_view> tables;
    for (const auto& row : part_.rows) {
      if (row.setting.type == SettingType::table) tables.emplace_back(row.setting.name);
    }
    return !nearest(member.key, tables);
  }

  void unknown(const std::string& path, const std::string& key, Position at,
               const std::vector<std::string_view>& known) {
    reading_.complain("unknown setting " + path, path, at,
                      known.empty() ? "this sink has no settings" : did_you_mean(key, known));
  }

  void read_setting(const SettingRow<SubscriptionSpec>& row, const Member& member) {
    const std::string path = path_ + "." + member.key;
    positions_[member.key] = member.at;
    if (auto status = assign(row.setting, row.slot(written_), *member.value); !status)
      return refuse({member.key, status.error().message, status.error().hint},
                    position(*member.value));
    if (!reading_.take_references(*member.value, path, resolve_)) return;
    (void)assign(row.setting, row.slot(effective_), *member.value);
  }

  void complain_about_missing_sink() {
    std::string known;
    for (const auto& kind : sink::kinds())
      known.append(known.empty() ? "" : ", ").append(kind.name);
    reading_.complain(path_ + ".sink: is missing", path_ + ".sink", part_.at, "one of " + known);
  }

  /// Returns false after a complaint that the sink would only repeat.
  bool read_sink_tables() {
    const std::size_t before = reading_.problems.size();
    for (const Member& table : sink_tables_) {
      if (table.key == effective_.sink) {
        gather(*table.value->as_table(), "");
        positions_.emplace(table.key, table.at);
        continue;
      }
      reading_.complain(path_ + "." + table.key + ": settings of a sink that is not used",
                        path_ + "." + table.key, table.at,
                        "the sink of this subscription is " + effective_.sink);
    }
    return reading_.problems.size() == before;
  }

  /// Collects settings. A dotted key is a table within a table: linger.ms is ms in linger.
  void gather(toml::table& table, const std::string& prefix) {
    for (const Member& member : members(table)) {
      const std::string name = prefix + member.key;
      if (is_of_section(name, *member.value)) {
        const std::string path = path_ + "." + effective_.sink + "." + name;
        reading_.complain(
            path + ": is a setting of the " + std::string(part_.owner) + ", not of its sink", path,
            member.at, "write it below [" + part_.section + "]");
      } else if (auto* const inner = member.value->as_table()) {
        gather(*inner, name + ".");
      } else if (is_known(name, member.at)) {
        read_sink_setting(name, member);
      }
    }
  }

  /// Whether a setting in the table of the sink is one of the section that the table is in.
  [[nodiscard]] bool is_of_section(const std::string& name, const toml::node& value) const {
    if (has_setting(*sink_, name)) return false;
    const auto& others = part_.others;
    if (std::find(others.begin(), others.end(), name) != others.end()) return true;
    return std::any_of(part_.rows.begin(), part_.rows.end(), [&](const auto& row) {
      return row.setting.name == name &&
             (!value.is_table() || row.setting.type == SettingType::table);
    });
  }

  /// Complains if the setting is unknown.
  bool is_known(const std::string& name, Position at) {
    if (const auto found = part_.settled.find(name); found != part_.settled.end()) {
      const std::string path = path_ + "." + effective_.sink + "." + name;
      reading_.complain(path + ": cannot be set here", path, at, found->second);
      return false;
    }
    if (sink_->passed_on || sink_->find(name) != nullptr) return true;
    std::vector<std::string_view> known;
    for (const Setting& setting : sink_->settings) known.emplace_back(setting.name);
    unknown(path_ + "." + effective_.sink + "." + name, name, at, known);
    return false;
  }

  void read_sink_setting(const std::string& name, const Member& member) {
    const std::string field = effective_.sink + "." + name;
    positions_[field] = position(*member.value);
    const std::string text = written_.sink_settings[name] = to_text(*member.value);
    if (!reading_.take_references(*member.value, path_ + "." + field, resolve_)) {
      refused_.add({field, {}});
      return;
    }
    std::string& stored = effective_.sink_settings[name];
    if (has_references(text)) {
      stored = anchored_references(text, reading_.directory());
    } else {
      stored = names_file(*sink_, name, text) ? reading_.anchored(text) : text;
    }
  }

  /// Checks the whole. A refused setting keeps its default, so that the rest can be checked.
  void check(bool readable) {
    FieldErrors errors = refused_;
    subscription::check(effective_, errors);
    if (readable) sink_->check(effective_, errors);
    if (reading_.thorough && errors.empty()) sink_->check_here(effective_, errors);
    for (const FieldError& one : errors) {
      if (!refused_.of(one.field)) refuse(one, find_position(one.field));
    }
    check_exclusive(errors);
  }

  void check_exclusive(const FieldErrors& errors) {
    for (const Setting& setting : sink_->settings) {
      const auto value = effective_.sink_settings.find(setting.name);
      const std::string field = effective_.sink + "." + setting.name;
      if (!setting.exclusive || value == effective_.sink_settings.end() || errors.of(field))
        continue;
      const std::string text =
          setting.type == SettingType::path
              ? std::filesystem::path(value->second).lexically_normal().string()
              : value->second;
      std::string place = field;
      place.append("=").append(text);
      const auto [first, ours] = reading_.exclusive.emplace(std::move(place), effective_.name);
      if (ours) continue;
      reading_.complain(
          path_ + "." + field + ": subscription " + first->second + " has the same value",
          path_ + "." + field, find_position(field), "give each subscription its own");
    }
  }

  /// Complains about a field, which is then not checked further.
  void refuse(const FieldError& error, Position at) {
    refused_.add({error.field, {}});
    const std::string path = path_ + "." + error.field;
    reading_.complain(path + ": " + error.what, path, at, error.hint);
  }

  /// The place where the field is set, or else of the section.
  [[nodiscard]] Position find_position(std::string field) const {
    while (true) {
      const auto found = positions_.find(field);
      if (found != positions_.end()) return found->second;
      const std::size_t dot = field.rfind('.');
      if (dot == std::string::npos) return part_.at;
      field.resize(dot);
    }
  }

  void add_entries() {
    for (const auto& [setting, slot] : part_.rows) {
      const auto at = positions_.find(setting.name);
      reading_.entries.push_back(
          {.section = part_.section,
           .key = setting.name,
           .value = presentable(setting, slot(effective_), slot(written_)),
           .origin = at == positions_.end() ? "default" : reading_.origin(at->second)});
    }
    for (const auto& [name, text] : written_.sink_settings)
      add_entry(name, shown(name, text), reading_.origin(positions_[effective_.sink + "." + name]));
    for (const Setting& setting : sink_->settings) {
      if (written_.sink_settings.contains(setting.name) || part_.settled.contains(setting.name))
        continue;
      const auto preset = effective_.sink_settings.find(setting.name);
      add_entry(setting.name,
                preset == effective_.sink_settings.end() ? parse_json<Json>(setting.default_note)
                                                         : shown(setting.name, preset->second),
                "default");
    }
  }

  void add_entry(const std::string& name, Json value, std::string origin) {
    reading_.entries.push_back({.section = part_.section + "." + effective_.sink,
                                .key = name,
                                .value = std::move(value),
                                .origin = std::move(origin)});
  }

  /// A setting of the sink as it is shown: text, as sinks take it, but a number or boolean as such.
  [[nodiscard]] Json shown(const std::string& name, const std::string& written) const {
    const std::string text = show_sink_setting(effective_.sink, name, written);
    const Setting* const setting = sink_->find(name);
    const bool bare = setting != nullptr && (setting->type == SettingType::count ||
                                             setting->type == SettingType::boolean);
    Json json = bare ? try_parse_json<Json>(text) : Json(text);
    return json.is_discarded() ? Json(text) : json;
  }

  const SinkPart part_;
  const bool resolve_;
  Reading& reading_;
  const std::string path_;
  SubscriptionSpec effective_;
  SubscriptionSpec written_;  ///< As it was before references were replaced.
  const sink::SinkKind* sink_{nullptr};
  std::vector<Member> unknown_;
  std::vector<Member> sink_tables_;
  std::map<std::string, Position> positions_;  ///< By field, such as "topic" or "http.url".
  FieldErrors refused_;
};

}  // namespace

std::optional<SubscriptionSpec> read_subscription(const Member& section, bool resolve,
                                                  Reading& reading) {
  const std::string path = "subscription." + section.key;
  auto* const table = reading.table(section, path);
  if (table == nullptr) return std::nullopt;
  const bool plain = section.key.find('.') == std::string::npos;
  SinkPart part{.path = path,
                .section = plain ? path : "subscription." + quote(section.key),
                .at = section.at,
                .members = members(*table),
                .rows = subscription_settings(),
                .preset = {}};
  part.preset.name = section.key;
  return SubscriptionReader(std::move(part), resolve, reading).read();
}

std::optional<SubscriptionSpec> read_sink_part(SinkPart part, bool resolve, Reading& reading) {
  return SubscriptionReader(std::move(part), resolve, reading).read();
}

std::string show_sink_setting(const std::string& sink, const std::string& name,
                              const std::string& value) {
  const sink::SinkKind* const kind = sink::find_kind(sink);
  const bool secret = is_secret_name(name) ||
                      (kind != nullptr && kind->passed_on && kind->passed_on->is_secret(name));
  if (!value.empty() && without_references(value).empty()) return value;
  const bool open = is_plain_value(without_references(value)) ||
                    (kind != nullptr && names_file(*kind, name, value));
  return open && !secret ? value : std::string(kMask);
}

Json shown_value(const Loaded& loaded, const std::string& subscription, const std::string& setting,
                 const Json& value) {
  const std::size_t dot = setting.find('.');
  const bool of_sink = sink::find_kind(setting.substr(0, dot)) != nullptr;
  if (!of_sink && loaded.references.contains("subscription." + subscription + "." + setting))
    return value.is_array() ? Json::array({kMask}) : Json(kMask);
  if (dot == std::string::npos) return value;
  const std::string owner = setting.substr(0, dot);
  const std::string name = setting.substr(dot + 1);
  if (owner != "headers" && owner != "match_headers" && owner != "format_options")
    return show_sink_setting(owner, name, value.get<std::string>());
  return is_secret_name(name) ? Json(kMask) : value;
}

}  // namespace outbox::config
