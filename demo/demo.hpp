// `outbox-demo`: a small shop and its relay, which is killed again and again; then a count of what arrived. README.md shows the
// output.
#pragma once

#include <outbox/error.hpp>
#include <string>

namespace outbox::demo {

struct DemoOptions {
  /// postgresql://... or sqlite:PATH of a file that does not exist yet. Default: a SQLite file in the work folder.
  std::string store{};
  /// "file", "kafka", "redis", "nats" or "rabbitmq". Default: file.
  std::string sink{"file"};
  /// Of Kafka: host:port, separated by commas.
  std::string brokers{};
  /// Of the others: redis://..., nats://..., amqp://...
  std::string url{};
  /// How long the shop is open. Unit: seconds, 1 to 3600. Default: 10.
  int seconds{10};
  /// Threads that sell. 1 to 64. Default: 4.
  int writers{4};
  /// How often the relay is killed; at most twice a second. Default: default_kills().
  int kills{5};
  /// Keep the work folder (and the tables, and the topic).
  bool keep{false};
  /// One JSON object instead of the table.
  bool json{false};
  /// A dual write instead of an outbox.
  bool naive{false};
  /// Each order is a task for workers, which are killed, instead of an event.
  bool tasks{false};
};

/// 5, or fewer if the shop is not open long enough.
[[nodiscard]] int default_kills(int seconds);

/// The error names the option that is wrong.
[[nodiscard]] Status check_options(const DemoOptions& options);

enum class Ending {
  held,         ///< Every promise held, or it was a dual write, which promises nothing.
  broken,       ///< Something was lost, invented or reordered.
  interrupted,  ///< Ctrl-C.
};

/// Prints its progress. Call it from the main thread, before other threads are started.
[[nodiscard]] Result<Ending> run_demo(const DemoOptions& options);

/// The child process of a dual write: takes orders from stdin, a socket, and sends them in batches, as the client of a broker
/// does. `destination`: as make_destination() takes it. Returns when the socket is closed.
[[nodiscard]] Status run_publisher(const std::string& destination);

/// The child process that works off the tasks of the shop. `file`: its first line is the address of the store. Returns after a signal.
[[nodiscard]] Status run_worker(const std::string& file);

}  // namespace outbox::demo
