// The inbox: which messages each consumer has received (docs/design/consumers.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/interface.hpp"

namespace outbox::store {

/// A message that a consumer has received, and the task that it becomes.
struct InboxMessage {
  std::string id;     ///< What its producer calls it; the same each time it arrives.
  std::string place;  ///< Where the source had it: "orders/3/1042".
  /// The message's number among those of its key, for a consumer that skips older ones.
  std::optional<std::int64_t> seq{};
  Event task{};  ///< Valid, and with an id.
};

enum class Arrival : std::uint8_t {
  first,  ///< It became a task.
  again,  ///< It had arrived before, and changed nothing.
  older,  ///< A message of its key with a higher number had arrived before.
};

/// A row of the inbox.
struct InboxRow {
  std::string consumer;
  std::string message_id;
  std::string event_type;  ///< Empty for a message of receive(), as the next two.
  std::string place;
  std::optional<EventId> task{};  ///< Not set for a message that was skipped, either.
  std::int64_t received_us{0};    ///< Microseconds since 1970, UTC.
  std::int64_t arrivals{1};       ///< How often it has arrived.
};

/// A place in a list of rows: the row that was received then.
struct InboxPlace {
  std::int64_t received_us{0};
  std::string consumer;
  std::string message_id;
};

/// Selects rows. A field that is empty does not restrict the selection.
struct InboxFilter {
  std::string consumer{};
  std::string message_id{};
  std::string event_type{};
  std::optional<std::int64_t> since_us{};
  std::optional<std::int64_t> until_us{};
  std::optional<InboxPlace> before{};  ///< Those that list() returns behind this row.
};

/// What the inbox has of a consumer.
struct InboxConsumer {
  std::string name;
  std::int64_t messages{0};
  bool more{false};           ///< Whether there are more than `messages`.
  std::int64_t oldest_us{0};  ///< When the first of them was received, and the last.
  std::int64_t newest_us{0};
};

/// It is used by one thread at a time.
class Inbox : public Interface {
 public:
  /// Writes, in one transaction, a row for each message that arrives for the first time, and its
  /// task, in the order of the messages. Returns what each one was. The transaction is durable
  /// when the call returns.
  [[nodiscard]] virtual Result<std::vector<Arrival>> receive(std::string_view consumer,
                                                             std::span<const InboxMessage> messages,
                                                             bool skip_older) = 0;
  /// At most `limit` rows: those received last first, those of one moment by consumer and id,
  /// backwards.
  [[nodiscard]] virtual Result<std::vector<InboxRow>> list(const InboxFilter& filter,
                                                           std::size_t limit) = 0;
  /// All consumers, by name. Counts at most `count` messages of each.
  [[nodiscard]] virtual Result<std::vector<InboxConsumer>> consumers(std::int64_t count) = 0;
  /// Calls `visit` for each message of the consumer, page by page.
  [[nodiscard]] virtual Status read(std::string_view consumer,
                                    const std::function<void(const InboxRow&)>& visit) = 0;
};

}  // namespace outbox::store
