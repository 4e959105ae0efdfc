// A parked event and the row of its key, to which the functions of store/parking_law.hpp apply.
// Everything runs in the caller's transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>

#include "store/parking_law.hpp"
#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

struct ParkedFacts {
  EventId id{};
  std::uint64_t key{0};
  law::Facts facts;
};
/// Nullopt if the event is not parked.
[[nodiscard]] Result<std::optional<ParkedFacts>> read_facts(Connection& connection,
                                                            std::int64_t subscription,
                                                            std::int64_t seq);
[[nodiscard]] Status write_facts(Connection& connection, std::int64_t subscription,
                                 std::int64_t seq, const law::Facts& facts);

/// The connection outlives it.
class KeyRow {
 public:
  [[nodiscard]] static Result<KeyRow> read(Connection& connection, std::int64_t subscription,
                                           std::uint64_t number);

  /// Nullopt if the key has no row. Change it with the functions of parking_law.hpp, then call
  /// write().
  [[nodiscard]] std::optional<law::Key>& key() { return key_; }
  /// The seq of the key's first event that is not dead.
  [[nodiscard]] Result<std::optional<std::int64_t>> first() const;
  /// Must be called for an event that comes to the key: only an event without a key is alone in it.
  void takes(std::int64_t seq) { solo_ = solo_ && static_cast<std::int64_t>(number_) == seq; }
  /// Must be called when an event was removed, or is retried again after its death: it does not
  /// block the key any more.
  [[nodiscard]] Status release(std::int64_t seq);
  /// Must be called when an event was removed, or died.
  [[nodiscard]] Status left(std::int64_t seq, bool was_dead, bool by_person, std::int64_t now);
  [[nodiscard]] Status write();

 private:
  KeyRow(Connection& connection, std::int64_t subscription, std::uint64_t number)
      : connection_(&connection), subscription_(subscription), number_(number) {}

  Connection* connection_;
  std::int64_t subscription_;
  std::uint64_t number_;
  std::optional<law::Key> key_;
  bool solo_{true};
  // The row as it is in the file.
  std::optional<law::Key> written_;
  bool written_solo_{true};
};

}  // namespace outbox::store::sqlite
