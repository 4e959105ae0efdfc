// What verbs share: the common options, the configuration that results from them, and the store.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "config/load.hpp"
#include "store/store.hpp"

namespace outbox::cli {

/// Whether a verb uses the subscriptions of the configuration. A verb that uses none needs no
/// broker's password.
enum class Subscriptions { unused, used };
/// Whether a verb uses the handlers of tasks.
enum class Tasks { unused, used };
/// Whether a verb reads the sources of consumers.
enum class Consumers { unused, used };

/// The person for whom a verb changes something (cli/acting.hpp); not set if it only reads.
using Decided = std::optional<store::PersonDecision>;

class Context {
 public:
  /// Adds -c, --store and the other options of every verb.
  void add_options(CLI::App& root);

  /// The verbs that use this context leave logging as it is, because they are not the process.
  void leave_logging() { sets_logging_ = false; }

  /// The file that `init` writes: that of -c, else outbox.toml.
  [[nodiscard]] std::string file_to_write() const;
  /// What -c, OUTBOX_CONFIG, the environment and the flags give.
  [[nodiscard]] config::Request request(Subscriptions subscriptions, Tasks tasks = Tasks::unused,
                                        Consumers consumers = Consumers::unused) const;
  /// The effective configuration. Configures logging. Ends the verb on an error.
  [[nodiscard]] config::Loaded configuration(Subscriptions subscriptions,
                                             Tasks tasks = Tasks::unused,
                                             Consumers consumers = Consumers::unused) const;

  /// The configuration of a verb that needs only the store. An outbox.toml that happens to lie in
  /// the working directory does not matter if the store is given otherwise.
  [[nodiscard]] config::Loaded store_configuration() const;
  /// The configuration of a verb that shows more with the rest of it. If the store is given
  /// otherwise, a broken outbox.toml that happens to lie in the working directory is passed over
  /// with a warning.
  [[nodiscard]] config::Loaded store_and_more() const;

  /// The configured store; not connected yet.
  [[nodiscard]] static std::unique_ptr<store::Store> store(const config::Loaded& loaded,
                                                           Decided decided = {});
  /// The configured store, after checking that it is reachable and has the schema version that this
  /// program needs.
  [[nodiscard]] static std::unique_ptr<store::Store> checked_store(const config::Loaded& loaded,
                                                                   Decided decided = {});
  /// The address of the configured store, for callers that need no more.
  [[nodiscard]] static store::StoreOptions store_options(const config::Loaded& loaded,
                                                         Decided decided = {});

 private:
  std::optional<std::string> file_;
  std::optional<std::string> store_;
  std::optional<std::string> schema_;
  std::optional<std::string> log_level_;
  std::optional<std::string> log_format_;
  std::vector<std::string> settings_;
  bool sets_logging_{true};
};

}  // namespace outbox::cli
