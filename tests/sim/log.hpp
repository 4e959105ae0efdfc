// A log in which transactions commit late, or not at all.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/random.hpp"
#include "store/delivery.hpp"

namespace outbox::sim {

struct LoggedEvent {
  EventView view;
  std::string key;
  std::uint64_t committed_at{0};  ///< The place in the order of commits; 0 if not committed (yet).
};

/// Each transaction takes its key's lock, then its seqs, and commits or rolls back some steps
/// later. A snapshot is a number of commits.
class SimLog {
 public:
  SimLog(Random& random, unsigned keys, bool repeated_ids)
      : random_(random), repeated_ids_(repeated_ids), locks_(keys, false) {}
  void begin_transaction();
  void finish_transaction();
  void finish_all();
  [[nodiscard]] std::uint64_t commits() const { return commits_; }
  [[nodiscard]] const std::deque<LoggedEvent>& events() const { return events_; }
  [[nodiscard]] const LoggedEvent& at(std::int64_t seq) const {
    return events_[static_cast<std::size_t>(seq - 1)];
  }
  [[nodiscard]] std::shared_ptr<const store::Page> read(const store::Cursor& from,
                                                        std::size_t rows) const;
  /// The seqs, beyond a position and ascending, of the events that the commits after s1 and up to
  /// s2 wrote.
  [[nodiscard]] std::span<const std::int64_t> between(const std::string& s1, const std::string& s2,
                                                      std::int64_t position) const;

 private:
  struct Transaction {
    unsigned key{0};
    std::vector<std::size_t> events;
  };
  Random& random_;
  const bool repeated_ids_;
  std::vector<bool> locks_;
  std::vector<Transaction> open_;
  std::deque<LoggedEvent> events_;
  std::deque<std::string> texts_;
  /// The seqs of each commit, from the first one on.
  std::vector<std::vector<std::int64_t>> of_commit_;
  /// The pairs that were asked for last are remembered, because a pair is read page by page.
  struct SortedPair {
    std::string s1, s2;
    std::vector<std::int64_t> seqs;
  };
  mutable std::array<SortedPair, 4> pairs_;
  mutable std::size_t oldest_pair_{0};
  std::int64_t seq_{0};
  std::uint64_t commits_{0};
};

}  // namespace outbox::sim
