// Sends that go on after their event was set aside. The event is not sent again before their
// outcome, and an ack is its delivery. The strands and the retries of a subscription share these,
// and only the loop's thread uses them. Pure. docs/design/parking.md, "An event that takes long".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <outbox/sink.hpp>
#include <utility>
#include <vector>

namespace outbox::relay {

class LateSends {
 public:
  struct Send {
    Token token{0};  ///< The token that the sink knows.
    std::int64_t seq{0};
    EventId id{};
    std::uint64_t key{0};     ///< The event's key in the gate.
    std::int64_t version{0};  ///< The version of the key's row.
    std::size_t attempts{0};  ///< Attempts before this one.
    std::int64_t run{0};      ///< The token of its run, if the row is `running`.
    bool written{false};      ///< Whether the row of the event exists.
    std::optional<Outcome> outcome{};
  };

  void began(Send send) { sends_.emplace(send.seq, std::move(send)); }
  void written(std::int64_t seq) {
    if (const auto found = sends_.find(seq); found != sends_.end()) found->second.written = true;
  }
  void ended(std::int64_t seq, const Outcome& outcome) {
    if (const auto found = sends_.find(seq); found != sends_.end()) found->second.outcome = outcome;
  }

  /// Whether the event must not be sent, because the outcome of its send is not known or not taken.
  [[nodiscard]] bool contains(std::int64_t seq) const { return sends_.contains(seq); }
  [[nodiscard]] std::size_t size() const { return sends_.size(); }
  [[nodiscard]] bool empty() const { return sends_.empty(); }
  [[nodiscard]] const std::map<std::int64_t, Send>& all() const { return sends_; }
  /// Forgets the send, because somebody else looks after it or it has ended.
  void remove(std::int64_t seq) { sends_.erase(seq); }
  /// Returns and forgets the sends whose outcome is known and whose row exists, in the order of
  /// seq.
  [[nodiscard]] std::vector<Send> take_ended() {
    std::vector<Send> ended;
    for (auto send = sends_.begin(); send != sends_.end();) {
      if (send->second.written && send->second.outcome) {
        ended.push_back(std::move(send->second));
        send = sends_.erase(send);
      } else {
        ++send;
      }
    }
    return ended;
  }

 private:
  std::map<std::int64_t, Send> sends_;
};

}  // namespace outbox::relay
