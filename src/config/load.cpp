#include "config/load.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/reference.hpp"
#include "base/text.hpp"
#include "base/text_file.hpp"
#include "config/belonging.hpp"
#include "config/consumers.hpp"
#include "config/reading.hpp"
#include "config/schedules.hpp"
#include "config/subscriptions.hpp"
#include "config/tasks.hpp"
#include "store/schema_name.hpp"
#include "store/url.hpp"
#include "subscription/group.hpp"

extern char** environ;

namespace outbox::config {
namespace {

constexpr const char* kDefaultFile = "outbox.toml";
constexpr std::size_t kLargestFile = std::size_t{16} << 20U;
constexpr const char* kFileVariable = "OUTBOX_CONFIG";
constexpr std::string_view kSubscription = "subscription";
constexpr std::string_view kTask = "task";
constexpr std::string_view kSchedule = "schedule";
constexpr std::string_view kConsumer = "consumer";
constexpr const char* kStoreUrl = "store.url";
constexpr const char* kStoreSchema = "store.schema";

/// An empty variable counts as not set: compose files and unit files leave one out that way.
std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

/// Suggests "did you mean relay.page?" by the whole name, or by the key of a wrong or missing
/// section.
std::string suggest(const std::string& path) {
  std::vector<std::string_view> known;
  for (const auto& row : settings()) known.emplace_back(row.setting.name);
  const std::string_view key = std::string_view(path).substr(path.rfind('.') + 1);
  return did_you_mean(
      path, known, where_it_belongs(key).value_or("`outbox config reference` lists all settings"));
}

struct Found {
  std::string path;
  std::string how;  ///< What named the file; empty if it was found in the working directory.
};

Found find_file(const Request& request) {
  if (request.file) return {.path = *request.file, .how = "-c"};
  if (const auto named = variable(kFileVariable)) return {.path = *named, .how = kFileVariable};
  if (access(kDefaultFile, F_OK) == 0) return {.path = kDefaultFile, .how = {}};
  return {};
}

/// Where a value in effect comes from.
struct Origin {
  std::string shown;
  std::string where;
  Position at;
};

class Loader {
 public:
  explicit Loader(const Request& request) : request_(request) {
    reading_.thorough = request.thorough;
  }

  tl::expected<Loaded, Problems> run() {
    read_file();
    read_environment();
    for (const Flag& flag : request_.flags) {
      const bool any = flag.flag == "--set";
      set(flag.path, flag.value, flag.flag, flag.flag + (any ? " " + flag.path + "=" : " "));
    }
    check_whole();
    if (!reading_.problems.empty()) return tl::unexpected(std::move(reading_.problems));
    auto shown = entries(effective_);
    return Loaded{.config = std::move(effective_),
                  .file = reading_.file,
                  .entries = std::move(shown),
                  .references = std::move(reading_.references),
                  .warnings = suspicious_variables()};
  }

 private:
  void read_file() {
    const Found found = find_file(request_);
    if (found.path.empty()) return;
    const auto url = given_outside(kStoreUrl);
    if (request_.only_store && found.how.empty() && url) return read_schema(found.path, *url);
    reading_.file = found.path;
    const auto file = read_text_file(found.path, kLargestFile);
    if (!file) {
      return reading_.complain(
          "configuration file: " + file.error().message, {}, {},
          found.how.empty() ? "check its permissions" : "check the path given with " + found.how);
    }
    auto document = parse_toml(file->text, found.path);
    if (!document) return reading_.problems.push_back(document.error());
    for (const Member& section : members(*document)) read_section(section);
  }

  /// The value that a flag, or else a variable, gives.
  [[nodiscard]] std::optional<std::string> given_outside(const std::string& path) const {
    for (auto flag = request_.flags.rbegin(); flag != request_.flags.rend(); ++flag) {
      if (flag->path == path) return flag->value;
    }
    return variable(environment_name(find_setting(path)->setting));
  }

  /// Reads store.schema from a file that may be about another store and is skipped without the
  /// word.
  void read_schema(const std::string& path, const std::string& url) {
    if (!store::find_file(url).empty() || given_outside(kStoreSchema)) return;
    const auto file = read_text_file(path, kLargestFile);
    if (file && file->text.find("schema") == std::string::npos) return;
    constexpr const char* kHint = "with --schema NAME, such as --schema outbox, it is not read";
    if (!file)
      return reading_.complain("configuration file: " + file.error().message, {}, {}, kHint);
    auto document = parse_toml(file->text, path);
    if (!document) {
      document.error().hint = kHint;
      return reading_.problems.push_back(document.error());
    }
    for (const Member& section : members(*document)) {
      if (section.key != "store" || !section.value->is_table()) continue;
      reading_.file = path;
      for (const Member& member : members(*section.value->as_table())) {
        if (section.key + "." + member.key == kStoreSchema) read_setting(kStoreSchema, member);
      }
    }
  }

  void read_section(const Member& section) {
    std::vector<std::string_view> known{kSubscription, kTask, kSchedule, kConsumer};
    for (const auto& row : settings()) known.push_back(row.setting.section());
    if (std::find(known.begin(), known.end(), section.key) == known.end())
      return unknown_section(section, known);
    auto* const table = reading_.table(section, section.key);
    if (table == nullptr) return;
    for (const Member& member : members(*table)) {
      if (section.key == kTask) {
        if (auto task = read_task(member, request_.resolve_tasks, reading_))
          effective_.tasks.push_back(std::move(*task));
      } else if (section.key == kConsumer) {
        if (auto consumer = read_consumer(member, request_.resolve_consumers, reading_))
          effective_.consumers.push_back(std::move(*consumer));
      } else if (section.key == kSchedule) {
        if (auto schedule = read_schedule(member, reading_))
          effective_.worker.schedules.push_back(std::move(*schedule));
      } else if (section.key != kSubscription) {
        read_setting(section.key + "." + member.key, member);
      } else if (auto spec = read_subscription(member, request_.resolve_subscriptions, reading_)) {
        effective_.relay.subscriptions.push_back(std::move(*spec));
      }
    }
  }

  void unknown_section(const Member& section, const std::vector<std::string_view>& known) {
    const char* const what = section.value->is_table() ? "unknown section " : "unknown setting ";
    reading_.complain(what + section.key, section.key, section.at,
                      did_you_mean(section.key, known, suggest(section.key)));
  }

  void read_setting(const std::string& path, const Member& member) {
    const auto* const row = find_setting(path);
    if (row == nullptr)
      return reading_.complain("unknown setting " + path, path, member.at, suggest(path));
    const Position at = position(*member.value);
    if (auto status = assign(row->setting, row->slot(written_), *member.value); !status)
      return reading_.complain(path, at, status.error());
    if (!reading_.take_references(*member.value, path, true)) return;
    (void)assign(row->setting, row->slot(effective_), *member.value);
    if (path == kStoreUrl) anchor_store();
    if (row->setting.type == SettingType::path) {
      auto& folder = *std::get<std::string*>(row->slot(effective_));
      folder = reading_.anchored(folder);
    }
    origins_[path] = {.shown = reading_.origin(at), .where = place(reading_.file, at), .at = at};
  }

  void anchor_store() {
    std::string& url = effective_.relay.store_url;
    if (const std::string path = store::find_file(url); !path.empty())
      url = "sqlite:" + reading_.anchored(path);
  }

  void read_environment() {
    for (const auto& row : settings()) {
      const std::string name = environment_name(row.setting);
      if (const auto value = variable(name))
        set(row.setting.name, *value, "environment " + name, name + "=");
    }
  }

  /// Sets a value from a variable or flag, which `where` names; `writing` precedes the value.
  void set(const std::string& path, const std::string& text, const std::string& where,
           const std::string& writing) {
    const Origin origin{.shown = where, .where = where, .at = {}};
    const auto* const row = find_setting(path);
    if (row == nullptr) return complain("unknown setting " + path, path, origin, suggest(path));
    const auto resolved = resolve_setting(path, text, {});
    if (!resolved) return complain(path, origin, resolved.error());
    const Status status = assign(row->setting, row->slot(effective_), *resolved, writing);
    if (!status) return complain(path, origin, status.error());
    (void)assign(row->setting, row->slot(written_), has_references(text) ? text : *resolved);
    origins_[path] = origin;
  }

  void complain(std::string what, const std::string& path, const Origin& origin, std::string hint) {
    reading_.problems.push_back({.what = std::move(what),
                                 .path = path,
                                 .where = origin.where,
                                 .at = origin.at,
                                 .hint = std::move(hint)});
  }
  void complain(const std::string& path, const Origin& origin, const Error& error) {
    complain(path + ": " + error.message, path, origin, error.hint);
  }

  void check_whole() {
    const RelayOptions& relay = effective_.relay;
    if (!relay.store_url.empty()) {
      const Status status = store::check_url(relay.store_url);
      check_setting(kStoreUrl, status);
      if (status && request_.thorough)
        check_setting(kStoreUrl, store::check_place(relay.store_url));
    } else if (request_.thorough) {
      complain_about_no_store();
    }
    check_setting(kStoreSchema, store::check_schema_name(relay.schema));
    check_window();
    check_groups();
  }

  void complain_about_no_store() {
    const auto about_it = [](const Problem& problem) { return problem.path == kStoreUrl; };
    if (std::any_of(reading_.problems.begin(), reading_.problems.end(), about_it)) return;
    const bool given = origins_.contains(kStoreUrl);
    complain(
        std::string(kStoreUrl) + (given ? ": is empty" : ": is not set"), kStoreUrl,
        given ? origins_[kStoreUrl] : Origin{.shown = {}, .where = reading_.file, .at = {}},
        reading_.file.empty()
            ? "--store sqlite:shop.db, OUTBOX_STORE_URL, or `outbox init` for a configuration file"
            : "write url = \"sqlite:shop.db\" below [store], or set OUTBOX_STORE_URL");
  }

  void check_setting(const std::string& path, const Status& status) {
    if (!status) complain(path, origins_[path], status.error());
  }

  void check_window() {
    const RelayOptions& relay = effective_.relay;
    if (relay.window_events >= relay.page_rows) return;
    const std::string path =
        origins_.contains("relay.window_events") ? "relay.window_events" : "relay.page";
    complain(path + ": the window (" + std::to_string(relay.window_events) +
                 " events) is smaller than a page (" + std::to_string(relay.page_rows) + ")",
             path, origins_[path], "relay.window_events must be at least relay.page");
  }

  void check_groups() {
    for (const std::string& group : effective_.relay.groups) {
      if (subscription::is_group_name(group)) continue;
      complain("relay.groups: " + in_quotes(group) + " is no name of a group", "relay.groups",
               origins_["relay.groups"],
               "letters, digits, '-', '_' and '.'; custom:NAME, file:NAME");
    }
  }

  std::vector<Entry> entries(Config& config) {
    std::vector<Entry> all;
    for (const auto& [setting, slot] : settings()) {
      const auto origin = origins_.find(setting.name);
      all.push_back({.section = std::string(setting.section()),
                     .key = std::string(setting.key()),
                     .value = presentable(setting, slot(config), slot(written_)),
                     .origin = origin == origins_.end() ? "default" : origin->second.shown});
    }
    all.insert(all.end(), reading_.entries.begin(), reading_.entries.end());
    return all;
  }

  /// Variables that look like a mistyped setting. They are no errors: container platforms set them.
  static std::vector<std::string> suspicious_variables() {
    std::vector<std::string> names;
    for (const auto& row : settings()) names.push_back(environment_name(row.setting));
    const std::vector<std::string_view> known(names.begin(), names.end());
    std::vector<std::string> warnings;
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
      const std::string_view whole(*at);
      const std::string_view name = whole.substr(0, whole.find('='));
      if (!name.starts_with("OUTBOX_") || name == kFileVariable) continue;
      const auto near = nearest(name, known);
      if (!near || *near == name) continue;
      warnings.push_back("environment variable " + std::string(name) +
                         " is not a setting (hint: did you mean " + std::string(*near) + "?)");
    }
    return warnings;
  }

  const Request& request_;
  Reading reading_;
  Config effective_;
  Config written_;
  std::map<std::string, Origin> origins_;
};

}  // namespace

tl::expected<Loaded, Problems> load(const Request& request) { return Loader(request).run(); }

std::string find_path(const Request& request) { return find_file(request).path; }

}  // namespace outbox::config
