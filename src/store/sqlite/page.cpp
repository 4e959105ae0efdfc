#include "store/sqlite/page.hpp"

#include <algorithm>
#include <cstring>

namespace outbox::store::sqlite {
namespace {

enum Column : int {
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

std::string_view copy_text(std::string_view bytes, char*& to) {
  if (bytes.empty()) return {};
  std::memcpy(to, bytes.data(), bytes.size());
  const std::string_view copied{to, bytes.size()};
  to += bytes.size();
  return copied;
}

}  // namespace

char* PageStorage::allocate(std::size_t size) {
  if (size > left_) {
    const std::size_t piece = std::max(size, next_piece_);
    pieces_.push_back(std::make_unique_for_overwrite<char[]>(piece));
    // A row larger than a piece gets one of its own; the one begun goes on.
    if (size > next_piece_) return pieces_.back().get();
    next_piece_ = std::min(2 * next_piece_, kLargestPiece);
    at_ = pieces_.back().get();
    left_ = piece;
  }
  char* const room = at_;
  at_ += size;
  left_ -= size;
  return room;
}

PageRow::PageRow(const Statement& row) {
  view_.seq = row.integer(kSeq);
  const std::string_view id = row.bytes(kId);
  std::memcpy(view_.id.bytes.data(), id.data(), std::min(id.size(), view_.id.bytes.size()));
  view_.aggregate_type = row.bytes(kAggregateType);
  view_.aggregate_id = row.bytes(kAggregateId);
  view_.event_type = row.bytes(kEventType);
  view_.payload = row.bytes(kPayload);
  view_.content_type = row.bytes(kContentType);
  view_.headers = row.bytes(kHeaders);
  view_.created_at_us = row.integer(kCreatedAt);
  if (!row.is_null(kOccurredAt)) view_.occurred_at_us = row.integer(kOccurredAt);
  bytes_ = view_.aggregate_type.size() + view_.aggregate_id.size() + view_.event_type.size() +
           view_.payload.size() + view_.content_type.size() + view_.headers.size();
}

EventView PageRow::copy(PageStorage& storage) const {
  EventView copied = view_;
  char* to = storage.allocate(bytes_);
  for (std::string_view* text : {&copied.aggregate_type, &copied.aggregate_id, &copied.event_type,
                                 &copied.payload, &copied.content_type, &copied.headers}) {
    *text = copy_text(*text, to);
  }
  return copied;
}

}  // namespace outbox::store::sqlite
