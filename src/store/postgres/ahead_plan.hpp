// Decides which part of a large backlog is read ahead, so that the reader finds its next pages in
// memory. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace outbox::store::postgres {

/// Sequence numbers above `from` up to `to`.
struct AheadRange {
  std::int64_t from{0};
  std::int64_t to{0};

  bool operator==(const AheadRange&) const = default;
};

class AheadPlan {
 public:
  /// The number of sequence numbers that are read at once.
  static constexpr std::int64_t kStretch = 10'000;
  /// No further range is read while the plan is this far ahead of the reader.
  static constexpr std::int64_t kFar = 6 * kStretch;
  /// A part that is in memory is skipped. After each range that was found in memory the skip
  /// doubles, up to this length.
  static constexpr std::int64_t kLongestSkip = 256 * kStretch;

  /// The range to read next when the reader stands at `position` in a backlog that ends at `end`;
  /// nullopt if enough is read ahead, or too little of the backlog is left.
  [[nodiscard]] std::optional<AheadRange> next(std::int64_t position, std::int64_t end) {
    // The reader has gone on with another strand, which is further back.
    if (reached_ > position + kFar + kLongestSkip) reached_ = position;
    reached_ = std::max(reached_, position);
    if (reached_ >= position + kFar || end - reached_ < kStretch) return std::nullopt;
    const AheadRange range{.from = reached_, .to = reached_ + kStretch};
    reached_ = range.to;
    return range;
  }

  /// Reports how the range was found. `cold` means that the server had to wait for the disk.
  void found(bool cold) {
    skip_ = cold ? 0 : std::clamp(skip_ * 2, kStretch, kLongestSkip);
    reached_ += skip_;
  }

 private:
  std::int64_t reached_{0};
  std::int64_t skip_{0};
};

}  // namespace outbox::store::postgres
