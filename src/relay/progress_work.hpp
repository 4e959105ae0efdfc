// What a loop has written in one transaction: the rows that a store::ProgressBatch refers to.
#pragma once

#include <iterator>
#include <vector>

#include "store/parked.hpp"
#include "store/replay.hpp"
#include "store/settlement.hpp"

namespace outbox::relay {

struct ProgressWork {
  std::vector<store::Settlement> rows;
  std::vector<store::ParkedEvent> parked{};
  std::vector<store::RetryResult> results{};
  std::vector<store::ReplayProgress> replays{};

  /// Appends what is written in the same transaction.
  void add(ProgressWork more) {
    const auto move_to = [](auto& all, auto& some) {
      all.insert(all.end(), std::make_move_iterator(some.begin()),
                 std::make_move_iterator(some.end()));
    };
    move_to(rows, more.rows);
    move_to(parked, more.parked);
    move_to(results, more.results);
    move_to(replays, more.replays);
  }
};

}  // namespace outbox::relay
