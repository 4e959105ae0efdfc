// How far a partition is read, and what is not there any more: retention removes the oldest records, compaction single ones, and
// the offsets of both stay behind as holes. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace outbox::sink::kafka {

class PartitionRead {
 public:
  /// Is read as far as `end`, which is the offset of the next record at the time of asking.
  explicit PartitionRead(std::int64_t end) : end_(end) {}

  /// The record at this offset was sent at that time: what was before it was sent before.
  void record(std::int64_t offset, std::int64_t sent_us) {
    hole_before(offset, sent_us);
    next_ = std::max(next_, offset + 1);
  }
  /// Nothing is left below this offset.
  void at_end(std::int64_t offset, std::int64_t now_us) {
    hole_before(std::min(offset, end_), now_us);
    next_ = std::max(next_, offset);
  }

  [[nodiscard]] bool done() const { return next_ >= end_; }
  [[nodiscard]] std::int64_t end() const { return end_; }
  /// Offsets without a record. Transactions leave such offsets too, so at most so many records were removed.
  [[nodiscard]] std::int64_t removed() const { return removed_; }
  [[nodiscard]] std::int64_t removed_before_us() const { return removed_before_us_; }

 private:
  void hole_before(std::int64_t offset, std::int64_t sent_us) {
    if (offset <= next_) return;
    removed_ += offset - next_;
    removed_before_us_ = std::max(removed_before_us_, sent_us);
  }

  const std::int64_t end_;
  std::int64_t next_{0};
  std::int64_t removed_{0};
  std::int64_t removed_before_us_{0};
};

}  // namespace outbox::sink::kafka
