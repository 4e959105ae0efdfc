// When to remove old ids: a chunk after a batch, and the next chunk soon if more are left, so that
// pruning keeps up with delivery and never delays it for long. Pure.
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
  /// Where the last chunk ended; its rows, in the index until VACUUM, need not be passed again.
  [[nodiscard]] const std::string& from() const { return from_; }

  void removed(std::int64_t count, std::string until, TimePoint now) {
    from_ = std::move(until);
    next_ = count >= static_cast<std::int64_t>(chunk_) ? now : now + pause_;
  }
  /// Stops pruning until the sink is opened again, because the server does not allow it.
  void stop() { on_ = false; }

 private:
  std::chrono::milliseconds pause_;
  std::size_t chunk_;
  bool on_;
  TimePoint next_{};
  std::string from_{"-infinity"};
};

}  // namespace outbox::sink::postgres
