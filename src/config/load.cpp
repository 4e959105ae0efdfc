#include "config/load.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "config/assign.hpp"
#include "config/reading.hpp"
#include "config/store_url.hpp"
#include "config/subscriptions.hpp"
#include "config/text_file.hpp"
#include "store/url.hpp"

extern char** environ;

namespace outbox::config {
namespace {

constexpr const char* kDefaultFile = "outbox.toml";
constexpr std::size_t kLargestFile = std::size_t{16} << 20U;
constexpr const char* kFileVariable = "OUTBOX_CONFIG";
constexpr std::string_view kSubscription = "subscription";
constexpr const char* kStoreUrl = "store.url";

/// An empty variable counts as not set: that is how compose files and unit files leave one out.
std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

bool is_section(std::string_view name) {
  for (const auto& row : settings()) {
    if (row.setting.section() == name) return true;
  }
  return false;
}

/// "did you mean relay.page?": by the whole path, or by the key alone where the section was forgotten.
std::string suggest(const std::string& path) {
  std::vector<std::string_view> known;
  for (const auto& row : settings()) known.emplace_back(row.setting.path);
  std::string otherwise = "`outbox config reference` lists all settings";
  const std::string_view key = std::string_view(path).substr(path.rfind('.') + 1);
  for (const auto& row : settings()) {
    if (row.setting.key() == key) otherwise = "did you mean " + row.setting.path + "?";
  }
  return did_you_mean(path, known, otherwise);
}

struct Found {
  std::string path;
  std::string how;  ///< Who named it; empty: nobody, it was just there.
};

Found find_file(const Request& request) {
  if (request.file) return {.path = *request.file, .how = "-c"};
  if (const auto named = variable(kFileVariable)) return {.path = *named, .how = kFileVariable};
  if (access(kDefaultFile, F_OK) == 0) return {.path = kDefaultFile, .how = {}};
  return {};
}

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
    Loaded loaded{
        .config = std::move(effective_), .file = reading_.file, .entries = {}, .warnings = {}};
    loaded.entries = entries(loaded.config);
    loaded.warnings = strange_variables();
    return loaded;
  }

 private:
  void read_file() {
    const Found found = find_file(request_);
    if (found.path.empty()) return;
    reading_.file = found.path;
    const auto file = read_text_file(found.path, kLargestFile);
    if (!file) {
      return reading_.complain(
          "configuration file: " + file.error().message, {}, {},
          found.how.empty() ? "check its permissions" : "check the path given with " + found.how);
    }
    const auto document = parse_document(file->text, found.path);
    if (!document) return reading_.problems.push_back(document.error());
    for (const Member& section : document->members) read_section(section);
  }

  void read_section(const Member& section) {
    const bool table = section.value.type == Node::Type::table;
    if (section.key == kSubscription && table) {
      for (const Member& one : section.value.members) {
        auto spec = read_subscription(one, request_.resolve_subscriptions, reading_);
        if (spec) effective_.relay.subscriptions.push_back(std::move(*spec));
      }
      return;
    }
    if (section.key != kSubscription && !is_section(section.key)) return unknown_section(section);
    if (!table) {
      return reading_.complain(
          section.key + ": expected a table, found " + std::string(describe(section.value.type)),
          section.key, section.at, "write [" + section.key + "] and its settings below it");
    }
    for (const Member& member : section.value.members)
      read_setting(section.key + "." + member.key, member);
  }

  void unknown_section(const Member& section) {
    std::vector<std::string_view> known{kSubscription};
    for (const auto& row : settings()) known.emplace_back(row.setting.section());
    std::string hint = did_you_mean(section.key, known, suggest(section.key));
    const bool table = section.value.type == Node::Type::table;
    const std::string what = (table ? "unknown section " : "unknown setting ") + section.key;
    reading_.complain(what, section.key, section.at, std::move(hint));
  }

  void read_setting(const std::string& path, const Member& member) {
    const Row<Config>* const row = find_setting(path);
    if (row == nullptr)
      return reading_.complain("unknown setting " + path, path, member.at, suggest(path));
    if (auto status = assign_node(row->setting, row->slot(written_), member.value); !status) {
      return reading_.complain(path, member.value.at, status.error());
    }
    const auto node = resolve_node(member.value, path, reading_);
    if (!node) return;
    (void)assign_node(row->setting, row->slot(effective_), *node);
    if (path == kStoreUrl) anchor_store();
    const Position at = member.value.at;
    origins_[path] = {.shown = reading_.origin(at), .where = place(reading_.file, at), .at = at};
  }

  void anchor_store() {
    std::string& url = effective_.relay.store_url;
    if (const std::string path = store::file_of(url); !path.empty())
      url = "sqlite:" + reading_.anchored(path);
  }

  void read_environment() {
    for (const auto& row : settings()) {
      const std::string name = row.setting.environment();
      if (const auto value = variable(name))
        set(row.setting.path, *value, "environment " + name, name + "=");
    }
  }

  /// From outside the file; `where` names the variable or the flag, `writing` is what stands before the value.
  void set(const std::string& path, const std::string& text, const std::string& where,
           const std::string& writing) {
    const auto complain = [&](std::string what, std::string hint) {
      reading_.problems.push_back({.what = std::move(what),
                                   .path = path,
                                   .where = where,
                                   .at = {},
                                   .hint = std::move(hint)});
    };
    const Row<Config>* const row = find_setting(path);
    if (row == nullptr) return complain("unknown setting " + path, suggest(path));
    const auto resolved = resolve_setting(path, text, {});
    if (!resolved) return complain(path + ": " + resolved.error().message, resolved.error().hint);
    if (auto status = assign_text(row->setting, row->slot(effective_), *resolved, writing);
        !status) {
      return complain(path + ": " + status.error().message, status.error().hint);
    }
    (void)assign_text(row->setting, row->slot(written_), has_references(text) ? text : *resolved);
    origins_[path] = {.shown = where, .where = where, .at = {}};
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
    check_setting("store.schema", check_schema(relay.schema));
    check_window();
  }

  void complain_about_no_store() {
    const auto about_it = [](const Problem& problem) { return problem.path == kStoreUrl; };
    if (std::any_of(reading_.problems.begin(), reading_.problems.end(), about_it)) return;
    const auto origin = origins_.find(kStoreUrl);
    const bool given = origin != origins_.end();
    const std::string where = given ? origin->second.where : reading_.file;
    reading_.problems.push_back(
        {.what = std::string(kStoreUrl) + (given ? ": is empty" : ": is not set"),
         .path = kStoreUrl,
         .where = where,
         .at = given ? origin->second.at : Position{},
         .hint =
             reading_.file.empty()
                 ? "--store sqlite:shop.db, OUTBOX_STORE_URL, or `outbox init` for a configuration file"
                 : "write url = \"sqlite:shop.db\" below [store], or set OUTBOX_STORE_URL"});
  }

  void check_setting(const std::string& path, const Status& status) {
    if (status) return;
    const Origin& origin = origins_[path];
    reading_.problems.push_back({.what = path + ": " + status.error().message,
                                 .path = path,
                                 .where = origin.where,
                                 .at = origin.at,
                                 .hint = status.error().hint});
  }

  void check_window() {
    if (effective_.relay.window_events >= effective_.relay.page_rows) return;
    const std::string path =
        origins_.contains("relay.window_events") ? "relay.window_events" : "relay.page";
    const Origin& origin = origins_[path];
    reading_.problems.push_back({.what = path + ": the window (" +
                                         std::to_string(effective_.relay.window_events) +
                                         " events) is smaller than a page (" +
                                         std::to_string(effective_.relay.page_rows) + ")",
                                 .path = path,
                                 .where = origin.where,
                                 .at = origin.at,
                                 .hint = "relay.window_events must be at least relay.page"});
  }

  std::vector<Entry> entries(Config& config) {
    std::vector<Entry> all;
    for (const auto& row : settings()) {
      const auto origin = origins_.find(row.setting.path);
      const auto shown = [&](Notation notation) {
        return presentable(row.setting, row.slot(config), row.slot(written_), notation);
      };
      all.push_back({.section = std::string(row.setting.section()),
                     .key = std::string(row.setting.key()),
                     .toml = shown(Notation::toml),
                     .json = shown(Notation::json),
                     .origin = origin == origins_.end() ? "default" : origin->second.shown});
    }
    all.insert(all.end(), reading_.entries.begin(), reading_.entries.end());
    return all;
  }

  /// Variables that look like a mistyped setting. No error: container platforms set such names by themselves.
  static std::vector<std::string> strange_variables() {
    std::vector<std::string> names;
    for (const auto& row : settings()) names.push_back(row.setting.environment());
    const std::vector<std::string_view> known(names.begin(), names.end());
    std::vector<std::string> warnings;
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
      const std::string_view whole(*at);
      const std::string_view name = whole.substr(0, whole.find('='));
      if (!name.starts_with("OUTBOX_") || name == kFileVariable) continue;
      const auto near = nearest(name, known);
      if (!near || *near == name) continue;
      warnings.push_back("environment variable " + std::string(name) +
                         " is no setting (hint: did you mean " + std::string(*near) + "?)");
    }
    return warnings;
  }

  struct Origin {
    std::string shown;
    std::string where;
    Position at;
  };

  const Request& request_;
  Reading reading_;
  Config effective_;
  Config written_;
  std::map<std::string, Origin> origins_;
};

}  // namespace

tl::expected<Loaded, Problems> load(const Request& request) { return Loader(request).run(); }

std::string file_of(const Request& request) { return find_file(request).path; }

}  // namespace outbox::config
