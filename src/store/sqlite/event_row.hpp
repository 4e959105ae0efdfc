// A row with the columns of an event, as the statements that read events return it.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <outbox/event.hpp>

#include "store/sqlite/statement.hpp"

namespace outbox::store::sqlite {

/// The columns in the order of queries.hpp.
enum EventColumn : int {
  kSeq,
  kId,
  kAggregateType,
  kAggregateId,
  kEventType,
  kPayload,
  kContentType,
  kHeaders,
  kCreatedAt,
  kOccurredAt
};
constexpr int kFirstExtra = kOccurredAt + 1;

/// Memory for the texts of several events.
using EventMemory = std::pmr::monotonic_buffer_resource;
constexpr std::size_t kFirstPiece = 512;

/// The event of the current row. Its texts are valid until the next row is read.
[[nodiscard]] EventView read_view(const Statement& row);
[[nodiscard]] std::size_t size_of_texts(EventView view);
/// Copies the texts, which have `size` bytes, and lets the view point to the copy.
void keep(EventView& view, std::size_t size, EventMemory& memory);

}  // namespace outbox::store::sqlite
