// When to remove old ids: a chunk after a batch, and the next one soon if there were more, so that it keeps up with what is delivered and
// never holds it up for long. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace outbox::sink::postgres {

class Pruner {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Pruner(std::chrono::milliseconds window, std::size_t chunk)
      : pause_(std::clamp<std::chrono::milliseconds>(window / 10, std::chrono::milliseconds(1),
                                                     std::chrono::minutes(1))),
        chunk_(chunk),
        on_(window.count() > 0) {}

  [[nodiscard]] bool due(TimePoint now) const { return on_ && now >= next_; }
  [[nodiscard]] std::size_t chunk() const { return chunk_; }
  /// Where the last one ended: what it removed stays in the index until VACUUM, and need not be passed again.
  [[nodiscard]] const std::string& from() const { return from_; }

  void removed(std::int64_t count, std::string until, TimePoint now) {
    from_ = std::move(until);
    next_ = count >= static_cast<std::int64_t>(chunk_) ? now : now + pause_;
  }
  /// It may not; not again until the sink is opened.
  void stop() { on_ = false; }

 private:
  std::chrono::milliseconds pause_;
  std::size_t chunk_;
  bool on_;
  TimePoint next_{};
  std::string from_{"-infinity"};
};

}  // namespace outbox::sink::postgres
