// A random history of a log and of the settlements that its relays wrote, with late commits,
// strands, claims, and relays that lost their lanes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "verify/ledger_walk.hpp"

namespace outbox::verify::test {

class LedgerHistory {
 public:
  explicit LedgerHistory(std::uint64_t seed);

  /// Adds so many writes, settlements and takeovers, in any order.
  void run(int steps);
  /// The place behind everything that is committed.
  [[nodiscard]] Place now();

  /// The settlements in the order of (generation, id).
  [[nodiscard]] std::vector<store::LedgerRow> rows() const;
  [[nodiscard]] std::vector<store::LedgerEvent>& events() { return events_; }
  [[nodiscard]] std::size_t any(std::size_t size) { return random_() % size; }

 private:
  struct Strand {
    store::LaneMask lanes{0};
    std::int64_t generation{0};
    Place cursor;
  };

  void write();
  void settle(Strand& strand, bool counts);
  void claim(Strand& strand);
  void take_over();
  void merge();
  void append(store::LedgerRow row);
  [[nodiscard]] store::VisiblePtr snapshot() const;
  [[nodiscard]] std::vector<store::LedgerEvent> pending(const Strand& strand,
                                                        const store::EventRange& range) const;

  std::mt19937_64 random_;
  std::uint64_t next_xid_{10};
  std::int64_t next_seq_{1};
  std::set<std::uint64_t> running_;
  std::vector<store::LedgerEvent> events_;  ///< Also those of running transactions.
  std::vector<store::LedgerRow> rows_;
  std::deque<Strand> strands_;
  std::deque<Strand> zombies_;
  std::int64_t generation_{0};
};

/// Walks over these rows, and compares them with these events.
[[nodiscard]] LedgerReport walk(const std::vector<store::LedgerRow>& rows,
                                const std::vector<store::LedgerEvent>& events, const Place& now,
                                const store::Pruned& pruned = {});

}  // namespace outbox::verify::test
