// Decides whether the oldest unsettled event holds back the rest. Pure. docs/design/parking.md, "An
// event that takes long".
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/sink.hpp>

#include "relay/trust_deadline.hpp"

namespace outbox::relay {

/// While a relay stops, events that take longer than this are set aside.
inline constexpr std::chrono::milliseconds kSlowAtStop{100};

class SlowWatch {
 public:
  explicit SlowWatch(std::chrono::nanoseconds limit)
      : limit_(std::chrono::duration_cast<TimePoint::duration>(limit)) {}

  /// The state of the stream.
  struct View {
    Token oldest{0};
    bool old{false};   ///< Whether it was sent longer ago than the limit.
    bool half{false};  ///< Whether half of the window is done behind it.
    std::uint64_t acked{0};
    std::size_t in_flight{0};
  };

  [[nodiscard]] TimePoint::duration limit() const { return limit_; }
  /// Whether it is time to look. Looking costs something, and once in a tenth of the limit is often
  /// enough.
  [[nodiscard]] bool looks(TimePoint now) {
    if (now < look_at_) return false;
    look_at_ = now + limit_ / 10;
    return true;
  }
  /// Whether the oldest event holds back the rest while later ones succeed. More events must have
  /// been acked than can have been in flight with it, so that events sent later are among them.
  [[nodiscard]] bool holds_back(const View& view) {
    if (!seen_ || seen_->oldest != view.oldest)
      seen_ = Mark{view.oldest, view.acked, view.in_flight};
    if (!view.old) {
      expired_.reset();
    } else if (!expired_ || expired_->oldest != view.oldest) {
      expired_ = Mark{view.oldest, view.acked, view.in_flight};
    }
    return (view.half && seen_->is_passed(view)) || (expired_ && expired_->is_passed(view));
  }

  static constexpr std::size_t kFewKeys = 4;
  /// Whether too many keys are slow at once, so that more likely the destination is slow.
  [[nodiscard]] static bool too_many(std::size_t slow, std::size_t keys_in_window) {
    return slow > std::max(kFewKeys, keys_in_window / 100);
  }

 private:
  struct Mark {
    Token oldest{0};
    std::uint64_t acked{0};
    std::size_t in_flight{0};

    [[nodiscard]] bool is_passed(const View& view) const {
      // The oldest event itself is one of those in flight.
      return view.acked > acked && view.acked - acked >= in_flight;
    }
  };

  const TimePoint::duration limit_;
  TimePoint look_at_{};
  std::optional<Mark> seen_;     ///< The state when the event became the oldest.
  std::optional<Mark> expired_;  ///< The state when the limit had passed.
};

}  // namespace outbox::relay
