// Which events are sent on trial: alone, and recorded before, after relays have died here. Pure.
// docs/design/parking.md, "An event that kills the relay".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/count.hpp"
#include "store/trials.hpp"

namespace outbox::relay {

class TrialGate {
 public:
  /// So many deaths at one place, and the next relay goes event by event; so many of one event, and it is parked.
  static constexpr std::size_t kDeaths = 2;

  TrialGate() = default;
  /// `window`: most events that were sent and not settled when the relay died.
  TrialGate(const store::Trial& found, std::size_t window) {
    bool newest = false;
    for (const auto& event : found.events) {
      events_[event.seq] = event;
      newest = newest || event.newest;
    }
    if (newest || found.deaths >= kDeaths) left_ = window;
  }

  /// Of an event of the stream, or one that is parked.
  [[nodiscard]] bool tries_stream() const { return left_ > 0; }
  [[nodiscard]] bool tries_retries() const { return left_ > 0 || !events_.empty(); }
  /// The relay died of it, too often: how many times. It is not sent now. Each death is told once.
  [[nodiscard]] std::optional<std::size_t> take_culprit(std::int64_t seq) {
    const auto found = events_.find(seq);
    if (found == events_.end() || !found->second.newest || found->second.deaths < kDeaths)
      return {};
    found->second.newest = false;
    left_ = 0;
    return found->second.deaths;
  }
  /// It was recorded.
  void opened(std::int64_t seq) { open_ = seq; }
  [[nodiscard]] bool is_open(std::int64_t seq) const { return open_ == seq; }
  void sent() {
    open_.reset();
    if (left_ > 0) --left_;
  }

  [[nodiscard]] static std::string error(std::size_t deaths) {
    return "the relay died " + count("time", deaths) + " while it sent this event";
  }

 private:
  std::map<std::int64_t, store::TriedEvent> events_;
  std::size_t left_{0};  ///< Events of the stream to be tried.
  std::optional<std::int64_t> open_;
};

}  // namespace outbox::relay
