// Writing a mark: where the sequence stood before a transaction began (docs/design/reading.md, "The floor").
#pragma once

#include <cstdint>
#include <outbox/error.hpp>

#include "store/postgres/connection.hpp"

namespace outbox::store::postgres {

/// The value of the sequence, and the incarnation of the server.
struct SequenceReading {
  std::int64_t value{0};
  std::int64_t incarnation{0};
};

/// From the rows of the statement `sequence`, sent after `name_incarnation`.
[[nodiscard]] Result<SequenceReading> sequence_reading(const Rows& rows);
[[nodiscard]] Result<SequenceReading> read_sequence(Connection& connection);

/// Writes the mark in a transaction of its own, which begins after the reading was taken; returns that transaction's id.
/// Once it has committed, the reading is durable too.
[[nodiscard]] Result<std::uint64_t> write_mark(Connection& connection,
                                               const SequenceReading& reading);

/// The server that was read has crashed or was replaced since.
[[nodiscard]] tl::unexpected<Error> other_incarnation();

}  // namespace outbox::store::postgres
