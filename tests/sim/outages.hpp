// The outages of a destination, and which events failed in them, to check P6: an outage is no
// event's fault.
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace outbox::sim {

class Outages {
 public:
  void go_down(bool down) {
    if (down != is_down()) ++number_;
  }
  [[nodiscard]] bool is_down() const { return number_ % 2 == 1; }

  void failed(std::int64_t seq) {
    if (is_down() && !failed_in_.contains(seq)) first_failures_[number_].insert(seq);
    failed_in_[seq] = is_down() ? number_ : 0;
  }
  void rejected(std::int64_t seq) { failed_in_[seq] = 0; }
  /// Whether an outage explains the newest failure of the event: it was in an outage, in which
  /// another event failed that had never failed before.
  [[nodiscard]] bool explain(std::int64_t seq) const {
    const auto found = failed_in_.find(seq);
    if (found == failed_in_.end()) return false;
    const auto firsts = first_failures_.find(found->second);
    if (firsts == first_failures_.end()) return false;
    return firsts->second.size() > (firsts->second.contains(seq) ? 1U : 0U);
  }

 private:
  int number_{0};  ///< The number of the newest outage; odd while it goes on.
  /// The outage of each event's newest failure; 0 if it was in none.
  std::map<std::int64_t, int> failed_in_;
  /// The events that failed for the first time, by outage.
  std::map<int, std::set<std::int64_t>> first_failures_;
};

}  // namespace outbox::sim
