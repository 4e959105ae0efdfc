#include "sim/parked_table.hpp"

#include <algorithm>

namespace outbox::sim {

void ParkedTable::park(const store::ParkedEvent& event, const std::string& key,
                       relay::TimePoint now) {
  parks_twice_ = parks_twice_ || rows_.contains(event.seq) || delivered_.contains(event.seq);
  rows_[event.seq] = {key, event.state, event.attempts, now + event.due_in,
                      event.state == store::ParkedState::retrying && event.attempts == 0};
  of_key_[key].insert(event.seq);
  order(key, now);
}

void ParkedTable::settle(const store::RetryResult& result, relay::TimePoint now) {
  const auto row = rows_.find(result.seq);
  if (row == rows_.end()) return;
  const std::string key = row->second.key;
  if (result.state) {
    row->second = {key, *result.state, result.attempts, now + result.due_in};
  } else {
    rows_.erase(row);
    of_key_[key].erase(result.seq);
    delivered_.insert(result.seq);
  }
  order(key, now);
}

void ParkedTable::order(const std::string& key, relay::TimePoint now) {
  bool first = true;
  for (const std::int64_t seq : of_key_[key]) {
    Row& row = rows_.at(seq);
    if (!blocks(row)) continue;
    if (first && row.state == store::ParkedState::waiting) {
      row.state = store::ParkedState::retrying;
      row.due = now;
    }
    if (!first && row.state == store::ParkedState::retrying)
      row.state = store::ParkedState::waiting;
    first = false;
  }
}

bool ParkedTable::rests(std::int64_t seq) const {
  const auto row = rows_.find(seq);
  if (row == rows_.end()) return false;
  if (row->second.state == store::ParkedState::dead) return true;
  const Row& first = rows_.at(*of_key_.at(row->second.key).begin());
  return dead_blocks_ && first.state == store::ParkedState::dead;
}

store::DueEvents ParkedTable::due(const SimLog& log, relay::TimePoint now) const {
  store::DueEvents due;
  const auto add = [&](std::int64_t seq) {
    const Row& row = rows_.at(seq);
    due.rows.push_back({.event = log.at(seq).view, .state = row.state, .attempts = row.attempts});
  };
  for (const auto& [key, seqs] : of_key_) {
    bool chain = false;
    for (const std::int64_t seq : seqs) {
      const Row& row = rows_.at(seq);
      if (row.state == store::ParkedState::dead && dead_blocks_) break;
      if (row.state == store::ParkedState::waiting && chain) add(seq);
      if (row.state != store::ParkedState::retrying) continue;
      chain = row.due <= now;
      if (chain) {
        add(seq);
      } else {
        const auto in = std::chrono::ceil<std::chrono::milliseconds>(row.due - now);
        due.next_in = std::min(due.next_in.value_or(in), in);
      }
    }
  }
  return due;
}

}  // namespace outbox::sim
