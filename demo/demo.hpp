// `outbox-demo`: a small shop and its relay, which is killed again and again, and then a count of
// what arrived. README.md shows the output.
#pragma once

#include <outbox/error.hpp>
#include <outbox/subscription.hpp>
#include <string>

namespace outbox::demo {

struct DemoOptions {
  /// postgresql://..., or sqlite:PATH of a new file. Default: a SQLite file in the work folder.
  std::string store{};
  /// "file", "kafka", "redis", "nats" or "rabbitmq". Default: file.
  std::string sink{"file"};
  /// Kafka's brokers: host:port, separated by commas.
  std::string brokers{};
  /// The address of another sink: redis://..., nats://..., amqp://...
  std::string url{};
  /// How long the shop is open. Unit: seconds, 1 to 3600. Default: 10.
  int seconds{10};
  /// The number of threads that sell, 1 to 64. Default: 4.
  int writers{4};
  /// How often the relay is killed; at most twice a second. Default: default_kills().
  int kills{5};
  /// Keeps the work folder, the tables and the topic.
  bool keep{false};
  /// Prints one JSON object instead of the table.
  bool json{false};
  /// Uses a dual write instead of an outbox.
  bool naive{false};
  /// Makes each order a task for workers, which are killed, instead of an event.
  bool tasks{false};
};

/// The default of `kills`: 5, or fewer if the shop is not open long enough.
[[nodiscard]] int default_kills(int seconds);

/// The error names the option that is wrong.
[[nodiscard]] Status check_options(const DemoOptions& options);

enum class Ending {
  held,         ///< Every promise held, or it was a dual write, which promises nothing.
  broken,       ///< Something was lost, invented or reordered.
  interrupted,  ///< The user pressed Ctrl-C.
};

/// Prints its progress. It must be called on the main thread, before other threads are started.
[[nodiscard]] Result<Ending> run_demo(const DemoOptions& options);

/// The child process of a dual write: takes orders from stdin, a socket, and sends them in batches
/// to the `destination` of make_destination(), as a broker's client does. Returns at its end.
[[nodiscard]] Status run_publisher(const std::string& destination);

/// The child process that delivers what the shop has enqueued. `file` has the text of relay_file().
/// Returns after a signal.
[[nodiscard]] Status run_relay(const std::string& file);
[[nodiscard]] std::string relay_file(const std::string& store_url, const std::string& schema,
                                     const SubscriptionSpec& spec);

/// The child process that works off the shop's tasks. The first line of `file` is the store's
/// address. Returns after a signal.
[[nodiscard]] Status run_worker(const std::string& file);

}  // namespace outbox::demo
