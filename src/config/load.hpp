// The effective configuration: defaults, then the file, then the environment, then flags.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "config/problem.hpp"
#include "config/settings.hpp"

namespace outbox::config {

/// A value from the command line.
struct Flag {
  std::string path;  ///< "store.url"
  std::string value;
  std::string flag;  ///< "--store", for messages.
};

struct Request {
  /// The file that the user named. Default: OUTBOX_CONFIG, or outbox.toml in the working directory.
  std::optional<std::string> file{};
  std::vector<Flag> flags{};
  /// Replaces ${env:...} and ${file:...} in subscriptions. A verb that does not deliver must not
  /// need a broker's password.
  bool resolve_subscriptions{true};
  /// Replaces references in handlers of tasks.
  bool resolve_tasks{true};
  /// Replaces references in consumers.
  bool resolve_consumers{true};
  /// Reads nothing but the store. If flags or the environment say where it is, a file that nobody
  /// named is read only for store.schema, which PostgreSQL needs.
  bool only_store{false};
  /// Also reports what would otherwise fail only in use: no store, a directory that does not exist.
  bool thorough{false};
};

using Json = nlohmann::ordered_json;

/// One value as `outbox config show` prints it: secrets are masked.
struct Entry {
  std::string section;  ///< "relay", "subscription.orders.http"
  std::string key;      ///< "page", "linger.ms"
  Json value;
  std::string origin;  ///< "default", "outbox.toml:3", "environment OUTBOX_STORE_URL", "--store"
};

struct Loaded {
  Config config;
  std::string file;  ///< Empty if no file was read.
  std::vector<Entry> entries;
  /// The settings whose values have references ("subscription.orders.http.password"). What a
  /// reference stands for is never shown.
  std::set<std::string> references;
  std::vector<std::string> warnings;
};

/// Returns all problems, not only the first. Opens only the file and what it refers to. Relative
/// paths in the file are relative to its folder, all others to the working directory.
[[nodiscard]] tl::expected<Loaded, Problems> load(const Request& request);

/// The file that load() reads; empty if there is none.
[[nodiscard]] std::string find_path(const Request& request);

}  // namespace outbox::config
