#include "sim/parked_table.hpp"

#include <algorithm>

namespace outbox::sim {

void ParkedTable::park(const store::ParkedEvent& event, const EventView& copied, unsigned lane,
                       relay::TimePoint now) {
  parks_twice_ = parks_twice_ || rows_.contains(event.seq) || delivered_.contains(event.seq);
  Row row{.event = copied,
          .lane = lane,
          .state = event.state,
          .attempts = event.attempts,
          .due = now + event.due_in,
          .worker = event.worker,
          .token = event.state == store::ParkedState::running ? 1 : 0,
          .slow = event.state == store::ParkedState::retrying && event.attempts == 0};
  row.event.seq = event.seq;
  of_key_[row.key()].insert(event.seq);
  rows_[event.seq] = row;
  wait_behind(event.seq);
  order(row.key(), now);
}

/// A new row of a key that has one already, which the relay did not know.
void ParkedTable::wait_behind(std::int64_t seq) {
  Row& row = rows_.at(seq);
  if (row.state != store::ParkedState::ready) return;
  const auto& of_key = of_key_.at(row.key());
  const bool is_first = std::none_of(of_key.begin(), of_key.find(seq), [&](std::int64_t earlier) {
    return blocks(rows_.at(earlier));
  });
  if (!is_first) row.state = store::ParkedState::waiting;
}

void ParkedTable::settle(const store::RetryResult& result, relay::TimePoint now) {
  const auto row = rows_.find(result.seq);
  if (row == rows_.end() || row->second.event.id != result.id) return;
  if (!result.state) {
    delivered_.insert(result.seq);
    return remove(result.seq, now);
  }
  if (row->second.cancelled) {
    discarded_.insert(result.seq);
    return remove(result.seq, now);
  }
  row->second.state = *result.state;
  row->second.attempts = result.attempts;
  row->second.due = now + result.due_in;
  row->second.worker = result.worker;
  row->second.token += *result.state == store::ParkedState::running ? 1 : 0;
  row->second.slow = false;
  order(row->second.key(), now);
}

bool ParkedTable::end(const store::TaskRunEnd& end, relay::TimePoint now) {
  const auto row = rows_.find(end.result.seq);
  if (row == rows_.end() || row->second.event.id != end.result.id) return false;
  if (row->second.state != store::ParkedState::running) return false;
  if (row->second.worker != end.result.worker) return false;
  if (row->second.token != end.token) return false;
  store::RetryResult result = end.result;
  result.worker = {};
  settle(result, now);
  return true;
}

/// claim_ready
std::vector<std::int64_t> ParkedTable::ready(std::span<const std::string> types,
                                             std::size_t limit) const {
  std::vector<std::int64_t> seqs;
  for (const auto& [seq, row] : rows_) {
    const bool asked = std::find(types.begin(), types.end(), row.event.event_type) != types.end();
    if (seqs.size() < limit && row.state == store::ParkedState::ready && asked) seqs.push_back(seq);
  }
  return seqs;
}

void ParkedTable::claim(const std::vector<std::int64_t>& seqs, const EventId& worker) {
  for (const std::int64_t seq : seqs) {
    Row& row = rows_.at(seq);
    row.state = store::ParkedState::running;
    row.worker = worker;
    ++row.token;
  }
}

void ParkedTable::remove(std::int64_t seq, relay::TimePoint now) {
  const std::string key = rows_.at(seq).key();
  rows_.erase(seq);
  of_key_[key].erase(seq);
  order(key, now);
}

void ParkedTable::retry(std::int64_t seq, relay::TimePoint now) {
  const auto row = rows_.find(seq);
  if (row == rows_.end() || row->second.state == store::ParkedState::waiting) return;
  if (row->second.state == store::ParkedState::dead)
    row->second.state = store::ParkedState::retrying;
  row->second.due = now;
  order(row->second.key(), now);
}

void ParkedTable::discard(std::int64_t seq, relay::TimePoint now) {
  const auto row = rows_.find(seq);
  if (row == rows_.end()) return;
  if (row->second.state == store::ParkedState::running) {
    row->second.cancelled = true;
    return;
  }
  discarded_.insert(seq);
  remove(seq, now);
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
  const Row& first = rows_.at(*of_key_.at(row->second.key()).begin());
  return dead_blocks_ && first.state == store::ParkedState::dead;
}

std::vector<store::RunningRow> ParkedTable::running(const std::vector<std::int64_t>& seqs) const {
  std::vector<store::RunningRow> running;
  for (const std::int64_t seq : seqs) {
    const auto row = rows_.find(seq);
    if (row != rows_.end()) running.push_back({.seq = seq, .state = row->second.state});
  }
  return running;
}

store::DueEvents ParkedTable::due(relay::TimePoint now, store::LaneMask lanes) const {
  store::DueEvents due;
  const auto add = [&](std::int64_t seq) {
    const Row& row = rows_.at(seq);
    due.rows.push_back(
        {.event = row.event, .state = row.state, .attempts = row.attempts, .token = row.token});
  };
  for (const auto& [key, seqs] : of_key_) {
    if (seqs.empty() || (lanes >> rows_.at(*seqs.begin()).lane & 1U) == 0) continue;
    bool chain = false;
    for (const std::int64_t seq : seqs) {
      const Row& row = rows_.at(seq);
      if (row.state == store::ParkedState::dead && dead_blocks_) break;
      if (row.state == store::ParkedState::waiting && chain) add(seq);
      if (row.state != store::ParkedState::retrying) continue;
      chain = row.due <= now;
      if (chain) add(seq);
      const auto in = std::max(std::chrono::ceil<std::chrono::milliseconds>(row.due - now),
                               std::chrono::milliseconds(0));
      due.next_in = std::min(due.next_in.value_or(in), in);
    }
  }
  return due;
}

}  // namespace outbox::sim
