// The options of a shop, and its events.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <outbox/event.hpp>
#include <string>
#include <vector>

#include "support/ledger.hpp"

namespace outbox::test {

/// How an event is enqueued.
enum class Way : std::uint8_t {
  function,     ///< SELECT outbox.enqueue(...)
  view,         ///< INSERT INTO outbox.new_event
  library,      ///< outbox::postgres::enqueue() on the connection
  transaction,  ///< outbox::postgres::Transaction, which stages
};

struct ShopOptions {
  int writers{24};
  int keys{40};
  /// How many transactions each writer does. If it is 0, they write until stop().
  int transactions{100};
  std::vector<Way> ways{Way::function, Way::view, Way::library, Way::transaction};
  std::vector<std::string> types{"OrderPlaced", "OrderPaid", "OrderShipped"};
  int rollback_percent{15};
  int savepoint_percent{20};
  int early_xid_percent{25};
  int asynchronous_percent{0};  ///< How many commits have synchronous_commit = off.
  std::chrono::microseconds longest_pause{2000};
  std::size_t padding{20};
  /// Whether a broken connection is opened again. Otherwise it is an error.
  bool reconnect{false};
  /// A file (support/journal.hpp) that is written before each COMMIT, and decides instead of memory
  /// what was tried. There is no file if it is empty.
  std::string journal{};
  std::uint64_t seed{1};
};

/// A new attempt to write an event, with a body of its own.
[[nodiscard]] Attempt new_attempt(const std::string& key, std::int64_t version,
                                  const std::string& type, std::size_t padding);
[[nodiscard]] Event to_event(const Attempt& attempt);

/// The body of an event, formatted like jsonb, so that all ways of writing give the same bytes.
[[nodiscard]] std::string make_body(const std::string& id, const std::string& key,
                                    std::int64_t version, std::size_t padding);
/// The id in such a body; empty if there is none.
[[nodiscard]] std::string id_in(const std::string& body);

}  // namespace outbox::test
