// A source: where a consumer reads messages. It hands over batches, and forgets messages only when
// the consumer says that they are in its database (docs/design/consumers.md).
//
// Threads: one at a time.
// Errors: after an error the source is closed and opened again; whatever was not acknowledged is
//         read again then, by this consumer or another one of its group.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <vector>

namespace outbox::source {

/// A message as a broker's client gave it, and what the broker knows of it.
struct Received {
  std::string payload{};
  std::vector<Header> headers{};
  /// Where the source has it, unique there for as long as the source keeps it: "orders/3/1042".
  std::string place{};
  /// The topic, queue, stream or subject: the type of a message that says nothing else of it.
  std::string channel{};
  // What the broker's protocol has a field of its own for; empty if there is none.
  std::string key{};
  std::string id{};
  std::string type{};
  std::string content_type{};
  std::string correlation_id{};
  std::optional<Timestamp> sent_at{};
  /// What the source needs to acknowledge it, such as an offset or a delivery tag.
  std::uint64_t tag{0};
  std::int32_t part{0};  ///< The same, such as the number of a partition.
};

struct Wanted {
  std::size_t messages{500};                 ///< With 0 the source only stays connected.
  std::size_t bytes{std::size_t{4} << 20U};  ///< Stops after the message that exceeds it.
  std::chrono::milliseconds wait{100};       ///< The longest wait for the first message.
};

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  Source(Source&&) = delete;
  Source& operator=(Source&&) = delete;
  virtual ~Source() = default;

  /// Connects, and joins the group. May be called again after close().
  [[nodiscard]] virtual Status open() = 0;
  /// Appends messages in the order of the source. Must be called at least once a second, because
  /// brokers take a client that is silent for dead. The messages of one call are acknowledged
  /// before the next call that wants any.
  [[nodiscard]] virtual Status receive(const Wanted& wanted, std::vector<Received>& into) = 0;
  /// Says that all messages received so far are in the consumer's database. It need not reach the
  /// broker: a message that comes again is recognized.
  [[nodiscard]] virtual Status acknowledge(std::span<const Received> messages) = 0;
  /// How many messages of the source this consumer has not received yet; nullopt if that is not
  /// known.
  [[nodiscard]] virtual std::optional<std::int64_t> lag() = 0;
  /// Leaves the group and gives back what is not acknowledged.
  virtual void close() noexcept = 0;
};

}  // namespace outbox::source
