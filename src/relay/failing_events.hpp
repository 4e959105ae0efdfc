// Events of the stream that failed with `unknown` or `retry`, until they are acked or set aside.
// Pure. docs/design/parking.md, "An event that fails while others succeed".
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <outbox/sink.hpp>

#include "base/backoff.hpp"
#include "relay/doubt.hpp"
#include "relay/trust_deadline.hpp"

namespace outbox::relay {

class FailingEvents {
 public:
  /// After so many failures by its own fault an event is parked. The last of them, for which it was
  /// sent alone, counts as an attempt.
  static constexpr int kStrikes = 3;

  explicit FailingEvents(BackoffPolicy pause) : pause_(pause) {}

  struct Entry {
    int tries{0};
    int strikes{0};  ///< How often it failed by its own fault.
    bool in_flight{false};
    bool alone{false};  ///< Whether it was sent alone the last time.
    bool judged{false};
    Doubt doubt{};
    Error error{};
    TimePoint since{};  ///< Since when it has failed by its own fault.
    TimePoint failed_at{};
    TimePoint again_at{};  ///< It is not sent before this time.
  };

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] bool contains(Token token) const { return entries_.contains(token); }
  [[nodiscard]] bool is_suspect(Token token) const {
    const auto found = entries_.find(token);
    return found != entries_.end() && found->second.strikes > 0;
  }
  /// Since when the event has failed, if it is a suspect.
  [[nodiscard]] std::optional<TimePoint> since(Token token) const {
    const auto found = entries_.find(token);
    if (found == entries_.end() || found->second.strikes == 0) return {};
    return found->second.since;
  }
  [[nodiscard]] const std::map<Token, Entry>& entries() const { return entries_; }

  void failed(Token token, const Doubt& doubt, bool alone, const Error& error, TimePoint now) {
    Entry& entry = entries_[token];
    ++entry.tries;
    entry.failed_at = now;
    entry.in_flight = entry.judged = false;
    entry.alone = alone;
    entry.doubt = doubt;
    entry.error = error;
    entry.again_at =
        now + std::chrono::duration_cast<TimePoint::duration>(backoff(pause_, entry.tries, token));
  }
  /// Removes and returns an event that has failed too often by its own fault.
  [[nodiscard]] std::optional<std::pair<Token, Entry>> take_guilty() {
    for (auto& [token, entry] : entries_) {
      if (entry.in_flight || entry.judged || entry.doubt.fault() == Fault::open) continue;
      entry.judged = true;
      const bool own = entry.doubt.fault() == Fault::event;
      // An outage is not the event's own fault, so its time does not count.
      if (!own || entry.strikes == 0) entry.since = entry.failed_at;
      if (!own || ++entry.strikes < kStrikes) continue;
      const std::pair<Token, Entry> guilty(token, entry);
      entries_.erase(token);
      return guilty;
    }
    return {};
  }
  /// The next event to send alone. `at_last` says that nothing else can show whose fault it was.
  [[nodiscard]] std::optional<Token> next(TimePoint now, bool at_last) const {
    for (const auto& [token, entry] : entries_) {
      const bool may = entry.judged || at_last;
      if (!entry.in_flight && may && now >= entry.again_at) return token;
    }
    return {};
  }
  void sent(Token token) { entries_.at(token).in_flight = true; }
  /// Whether an event fails each time, and others with it.
  [[nodiscard]] bool need_isolation() const {
    return std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) {
      return entry.second.tries >= entry.second.strikes + kStrikes;
    });
  }
  void clear() { entries_.clear(); }
  void remove(Token token) { entries_.erase(token); }
  /// Removes and returns the events that failed beside others. The sink was opened again, so they
  /// are sent again like all others.
  [[nodiscard]] std::vector<Token> take_innocent() {
    std::vector<Token> innocent;
    for (const auto& [token, entry] : entries_) {
      if (!entry.in_flight && entry.strikes == 0 && !entry.alone) innocent.push_back(token);
    }
    for (const Token token : innocent) entries_.erase(token);
    return innocent;
  }
  [[nodiscard]] std::optional<TimePoint> next_at() const {
    std::optional<TimePoint> at;
    for (const auto& [token, entry] : entries_) {
      if (!entry.in_flight) at = std::min(at.value_or(entry.again_at), entry.again_at);
    }
    return at;
  }

 private:
  const BackoffPolicy pause_;
  std::map<Token, Entry> entries_;
};

}  // namespace outbox::relay
