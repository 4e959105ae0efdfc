// When the oldest unsettled event holds back the rest. Pure. docs/design/parking.md, "An event that
// takes long".
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/sink.hpp>

#include "relay/trust_deadline.hpp"

namespace outbox::relay {

/// While a relay stops, what takes longer is set aside.
inline constexpr std::chrono::milliseconds kSlowAtStop{100};

class SlowWatch {
 public:
  explicit SlowWatch(std::chrono::nanoseconds limit)
      : limit_(std::chrono::duration_cast<TimePoint::duration>(limit)) {}

  /// How the stream stands.
  struct View {
    Token oldest{0};
    bool old{false};   ///< It was sent longer ago than the limit.
    bool half{false};  ///< Half of the window is done behind it.
    std::uint64_t acked{0};
    std::size_t in_flight{0};
  };

  [[nodiscard]] TimePoint::duration limit() const { return limit_; }
  /// Looking costs something; a tenth of the limit is often enough.
  [[nodiscard]] bool looks(TimePoint now) {
    if (now < look_at_) return false;
    look_at_ = now + limit_ / 10;
    return true;
  }
  /// True: it holds back the rest, while later ones succeed. More must have been acked than can
  /// have been in flight with it, so that events sent later are among them.
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
  /// Too many at once: more likely the destination is slow.
  [[nodiscard]] static bool too_many(std::size_t slow, std::size_t keys_in_window) {
    return slow > std::max(kFewKeys, keys_in_window / 100);
  }

 private:
  struct Mark {
    Token oldest{0};
    std::uint64_t acked{0};
    std::size_t in_flight{0};

    [[nodiscard]] bool is_passed(const View& view) const {
      // Itself is one of those in flight.
      return view.acked > acked && view.acked - acked >= in_flight;
    }
  };

  const TimePoint::duration limit_;
  TimePoint look_at_{};
  std::optional<Mark> seen_;     ///< When it became the oldest.
  std::optional<Mark> expired_;  ///< When the limit had passed.
};

}  // namespace outbox::relay
