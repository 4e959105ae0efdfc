// A parked event and the row of its key, to which the functions of store/parking_law.hpp apply. All
// in the caller's transaction.
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
/// None: the event is not parked.
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

  /// None: the key has nothing to do. Change it by the law, then call write().
  [[nodiscard]] std::optional<law::Key>& key() { return key_; }
  /// The seq of its first event that is not dead.
  [[nodiscard]] Result<std::optional<std::int64_t>> first() const;
  /// Call it for an event that comes to the key: only one without a key is alone in it.
  void takes(std::int64_t seq) { solo_ = solo_ && static_cast<std::int64_t>(number_) == seq; }
  /// An event was removed, or lives again: it does not hold the key any more.
  [[nodiscard]] Status release(std::int64_t seq);
  /// An event was removed, or died.
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
  // As it is in the file.
  std::optional<law::Key> written_;
  bool written_solo_{true};
};

}  // namespace outbox::store::sqlite
