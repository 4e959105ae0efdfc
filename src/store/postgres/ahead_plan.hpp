// Which part of a large backlog is read ahead, so that the pages that follow find it in memory.
// Pure.
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
  /// Read at once.
  static constexpr std::int64_t kStretch = 10'000;
  /// So far ahead of the reader at the most.
  static constexpr std::int64_t kFar = 6 * kStretch;
  /// What is in memory is left out, up to so much after one look.
  static constexpr std::int64_t kLongestSkip = 256 * kStretch;

  /// The reader stands at `position` in a backlog that ends at `end`. None: it is far enough ahead,
  /// or not worth it.
  [[nodiscard]] std::optional<AheadRange> next(std::int64_t position, std::int64_t end) {
    // Another strand, further back.
    if (reached_ > position + kFar + kLongestSkip) reached_ = position;
    reached_ = std::max(reached_, position);
    if (reached_ >= position + kFar || end - reached_ < kStretch) return std::nullopt;
    const AheadRange range{.from = reached_, .to = reached_ + kStretch};
    reached_ = range.to;
    return range;
  }

  /// How the range was found. `cold`: the server had to wait for the disk.
  void found(bool cold) {
    skip_ = cold ? 0 : std::clamp(skip_ * 2, kStretch, kLongestSkip);
    reached_ += skip_;
  }

 private:
  std::int64_t reached_{0};
  std::int64_t skip_{0};
};

}  // namespace outbox::store::postgres
