// outbox/consumer.hpp: reads messages from a broker into your database, where each becomes a task
// once, however often the broker delivers it. A worker does the tasks (outbox/worker.hpp).
//
//   outbox::ConsumerOptions options{
//       .store_url = "postgresql://localhost/billing",
//       .consumer = {.name = "billing",
//                    .source = "kafka",
//                    .read = {"orders.*"},
//                    .queue = "billing",
//                    .settings = {{"brokers", "localhost:9092"}}}};
//   auto consumer = outbox::Consumer::create(options);
//   if (!consumer) throw outbox::Exception(consumer.error());
//   if (auto status = (*consumer)->start(); !status) throw outbox::Exception(status.error());
//   ...
//   (*consumer)->stop();
//
// In one transaction a batch of messages gets rows in the inbox, and those that were not there
// before become tasks; then the batch is acknowledged. So nothing is lost when the process dies
// between the two, and what the broker delivers again changes nothing.
//
// Threads: any.
// Lifetime: the destructor stops the consumer.
// Errors: create() and start() check everything that can be checked. A broker or a database that is
//         away later is retried, and shown in report().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

namespace outbox {

/// Where a group begins to read what it has not read before.
enum class ConsumeFrom : std::uint8_t { earliest, latest };

/// What a consumer reads, and what becomes of it.
struct ConsumerSpec {
  /// The consumer, for the inbox: messages are recognized by this name and their id. Letters,
  /// digits, '-', '_' and '.', at most 63 bytes. Required.
  std::string name;
  /// The kind of broker (docs/guide/consumers.md). Required.
  std::string source;
  /// Topics, queues or streams. In names of topics * and ? stand for any characters. Required.
  std::vector<std::string> read{};
  /// The consumer group, or durable consumer, at the broker; its members share the messages.
  /// Default: the name.
  std::string group{};
  /// Where a new group begins. Default: earliest.
  ConsumeFrom start{ConsumeFrom::earliest};
  /// The queue of the tasks. Default: default.
  std::string queue{"default"};
  // Where a message has these: "header:NAME", "json:PATH" (a.b.0 in the payload) or "text:TEXT";
  // for `id` also "place", place and time at the broker. Default: empty, which means where the
  // known formats have them (docs/guide/consumers.md).
  std::string id{};
  std::string type{};
  std::string key{};
  std::string seq{};
  /// Skips a message whose number (`seq`) is below the highest one of its key, for messages that
  /// each carry the whole state. Default: false.
  bool skip_older{false};
  /// The consumer pauses when the queue has more tasks than this. Default: 100,000.
  std::size_t max_pending{100'000};
  /// The most messages in one transaction. Default: 500.
  std::size_t batch{500};
  /// The settings of the connection: those of the sink of the same name (docs/sinks).
  std::map<std::string, std::string> settings{};
};

struct ConsumerOptions {
  std::string store_url;
  std::string schema{"outbox"};
  ConsumerSpec consumer;
};

/// What a consumer has done since it was created.
struct ConsumerReport {
  enum class State : std::uint8_t {
    connecting,  ///< To the database or the broker; `last_error` says why it is not connected.
    reading,
    paused,  ///< The queue is longer than max_pending.
    stopped,
  };
  std::string name;
  State state{State::connecting};
  std::uint64_t received_new{0};
  std::uint64_t duplicates{0};
  std::uint64_t unreadable{0};  ///< Stored as dead tasks, with the reason.
  std::uint64_t older{0};       ///< Left out by skip_older.
  /// Messages at the broker that were not received yet, if the broker tells.
  std::optional<std::int64_t> lag{};
  std::string last_error{};  ///< Empty while everything works.
  /// Since it last asked the broker for messages, or tried to connect. More than a few seconds mean
  /// that a transaction hangs.
  std::chrono::milliseconds silent{0};
};

class Consumer {
 public:
  /// Validates the options. Connects to nothing.
  [[nodiscard]] static Result<std::unique_ptr<Consumer>> create(ConsumerOptions options);
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;
  Consumer(Consumer&&) = delete;
  Consumer& operator=(Consumer&&) = delete;
  ~Consumer();

  /// Checks the store, and begins to read. Does not wait for the broker.
  [[nodiscard]] Status start();
  void request_stop() noexcept;
  /// Returns when the batch that was being written is acknowledged.
  void stop();
  [[nodiscard]] ConsumerReport report() const;

 private:
  class Reading;
  explicit Consumer(std::unique_ptr<Reading> reading);
  const std::unique_ptr<Reading> reading_;
};

/// Checks a spec. The error names the field.
[[nodiscard]] Status validate(const ConsumerSpec& spec);

}  // namespace outbox
