// What verbs have in common: the options that every verb takes, the configuration they lead to, and the store.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "config/load.hpp"
#include "store/store.hpp"

namespace outbox::cli {

/// Whether a verb works with the subscriptions of the configuration. Those that do not need no broker's password.
enum class Subscriptions { unused, used };

class Context {
 public:
  /// -c, --store and the other options of every verb.
  void add_options(CLI::App& root);

  /// Where `init` puts a configuration: -c, else outbox.toml.
  [[nodiscard]] std::string file_to_write() const;
  /// What -c, OUTBOX_CONFIG, the environment and the flags give.
  [[nodiscard]] config::Request request(Subscriptions subscriptions) const;
  /// The effective configuration. Sets up logging as it says. Ends the verb when something is wrong.
  [[nodiscard]] config::Loaded configuration(Subscriptions subscriptions) const;

  /// The store of the configuration; not yet connected.
  [[nodiscard]] static std::unique_ptr<store::Store> store(const config::Loaded& loaded);
  /// The same, and it is reachable and has the schema that this program needs.
  [[nodiscard]] static std::unique_ptr<store::Store> checked_store(const config::Loaded& loaded);
  /// For those that only need its address.
  [[nodiscard]] static store::StoreOptions store_options(const config::Loaded& loaded);

 private:
  std::optional<std::string> file_;
  std::optional<std::string> store_;
  std::optional<std::string> schema_;
  std::optional<std::string> log_level_;
  std::optional<std::string> log_format_;
  std::vector<std::string> settings_;
};

}  // namespace outbox::cli
