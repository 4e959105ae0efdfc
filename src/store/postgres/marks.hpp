// Marks bound a read from below (docs/design/reading.md, "The floor").
//
// A mark (w, l) says: every transaction with an xid above w has only events with a seq above l. It
// holds because l was read from the sequence before the transaction w began. The floor of a
// snapshot S1 is the greatest l over marks with w < xmax(S1): rows with xid >= xmax(S1) cannot have
// a seq at or below it.
//
// This holds for one server only. So the book also holds the incarnation of the server that is
// read: behind a pooler nothing else would show the settler that it writes to another server.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <outbox/error.hpp>

#include "base/mutex.hpp"
#include "store/postgres/connection.hpp"

namespace outbox::store::postgres {

/// Any thread may use it: the settler adds marks, the reader uses them.
class MarkBook {
 public:
  void note(std::uint64_t w, std::int64_t l);
  /// The floor of a snapshot with this xmax; 0 without a usable mark.
  [[nodiscard]] std::int64_t floor(std::uint64_t xmax) const;
  /// The greatest l of all marks; 0 without one. The sequence can never be below it.
  [[nodiscard]] std::int64_t greatest() const;

  /// The reader reads from this incarnation of the server.
  void read_from(std::int64_t incarnation);
  [[nodiscard]] std::optional<std::int64_t> incarnation() const;

  /// Must be called after a reconnect, since earlier marks do not hold any more.
  void clear();

 private:
  mutable Mutex mutex_;
  /// w -> the greatest l of all marks up to w. Both ascend.
  std::map<std::uint64_t, std::int64_t> marks_ OUTBOX_GUARDED_BY(mutex_);
  std::optional<std::int64_t> incarnation_ OUTBOX_GUARDED_BY(mutex_);
};

/// The value of the sequence, and the incarnation of the server.
struct SequenceReading {
  std::int64_t value{0};
  std::int64_t incarnation{0};
};

/// Reads the rows of the statement `sequence`, which was sent after `name_incarnation`.
[[nodiscard]] Result<SequenceReading> sequence_reading(const Rows& rows);
[[nodiscard]] Result<SequenceReading> read_sequence(Connection& connection);

/// Writes the mark in a transaction of its own, which begins after the reading was taken; returns
/// that transaction's id. Once it has committed, the reading is durable too.
[[nodiscard]] Result<std::uint64_t> write_mark(Connection& connection,
                                               const SequenceReading& reading);

/// The error that the server which was read has crashed or was replaced since.
[[nodiscard]] tl::unexpected<Error> other_incarnation();

}  // namespace outbox::store::postgres
