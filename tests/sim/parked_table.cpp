#include "sim/parked_table.hpp"

#include <algorithm>
#include <utility>

namespace outbox::sim {
namespace {

namespace law = store::law;

law::Time time_of(relay::TimePoint at) {
  return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
}

law::Time due_of(relay::TimePoint now, std::chrono::milliseconds due_in) {
  return time_of(now) + std::chrono::microseconds(due_in).count();
}

}  // namespace

ParkedTable::Key ParkedTable::take(std::uint64_t key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? Key{} : Key{found->second};
}

/// Writes the key's row, and what follows from it for the rows of its events.
void ParkedTable::put(std::uint64_t number, const Key& key) {
  if (key) {
    keys_[number] = *key;
  } else {
    keys_.erase(number);
  }
  const auto first = this->first(number);
  for (const std::int64_t seq : of_key_[number]) {
    Row& row = rows_.at(seq);
    row.state = law::state_of(row.facts, seq, key, first.value_or(0));
    const bool runs = row.state == store::ParkedState::running;
    row.attempts = row.facts.dead                             ? row.facts.attempts
                   : row.state == store::ParkedState::waiting ? 0
                                                              : key->attempts;
    row.token = key ? key->token : row.facts.token;
    row.worker = runs ? *key->worker : EventId{};
    row.cancelled = runs && key->cancelled_by.has_value();
  }
}

std::optional<std::int64_t> ParkedTable::first(std::uint64_t key) const {
  const auto seqs = of_key_.find(key);
  if (seqs == of_key_.end()) return {};
  const auto found = std::find_if(seqs->second.begin(), seqs->second.end(),
                                  [&](std::int64_t seq) { return !rows_.at(seq).facts.dead; });
  return found == seqs->second.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::int64_t> ParkedTable::next_block(std::uint64_t key) const {
  const auto& seqs = of_key_.at(key);
  const auto found = std::find_if(seqs.begin(), seqs.end(),
                                  [&](std::int64_t seq) { return rows_.at(seq).facts.blocks; });
  return found == seqs.end() ? std::nullopt : std::optional(*found);
}

void ParkedTable::park(const store::ParkedEvent& event, const EventView& copied, unsigned lane,
                       relay::TimePoint now) {
  parks_twice_ = parks_twice_ || rows_.contains(event.seq) || delivered_.contains(event.seq);
  const bool dead = event.state == store::ParkedState::dead;
  Row row{.event = copied,
          .lane = lane,
          .key = event.key,
          .facts = {.dead = dead,
                    .blocks = dead && dead_blocks_,
                    .attempts = dead ? event.attempts : 0,
                    .error = event.error},
          .slow = event.state == store::ParkedState::retrying && event.attempts == 0};
  row.event.seq = event.seq;
  rows_[event.seq] = row;
  of_key_[event.key].insert(event.seq);
  Key key = take(event.key);
  if (dead) {
    law::park_dead(key, event.seq, dead_blocks_);
    law::left(key, event.seq, first(event.key), true, false, time_of(now));
  } else {
    law::park(key, event.seq, event.state, event.attempts, due_of(now, event.due_in), event.error,
              event.worker, time_of(now));
  }
  put(event.key, key);
}

void ParkedTable::settle(const store::RetryResult& result, relay::TimePoint now) {
  conclude(result, result.version, now);
}

void ParkedTable::conclude(const store::RetryResult& result, std::int64_t version,
                           relay::TimePoint now) {
  const auto row = rows_.find(result.seq);
  if (row == rows_.end() || row->second.event.id != result.id) return;
  if (!result.state) {
    delivered_.insert(result.seq);
    return remove(result.seq, false, now);
  }
  if (row->second.cancelled) {
    discarded_.insert(result.seq);
    return remove(result.seq, false, now);
  }
  const std::uint64_t number = row->second.key;
  Key key = take(number);
  if (!law::counts(key, row->second.facts, version, *result.state)) return;
  row->second.slow = false;
  if (*result.state == store::ParkedState::dead) {
    law::died(*key, row->second.facts, result.seq, result.attempts, result.error, dead_blocks_);
    law::left(key, result.seq, first(number), false, false, time_of(now));
  } else {
    law::reschedule(*key, result.seq, first(number).value_or(result.seq), *result.state,
                    result.attempts, due_of(now, result.due_in), result.error, result.worker,
                    time_of(now));
  }
  put(number, key);
}

bool ParkedTable::end(const store::TaskRunEnd& end, relay::TimePoint now) {
  const auto row = rows_.find(end.result.seq);
  if (row == rows_.end() || row->second.event.id != end.result.id) return false;
  const Key key = take(row->second.key);
  if (!key || !key->runs(end.result.seq) || key->worker != end.result.worker ||
      key->token != end.token)
    return false;
  store::RetryResult result = end.result;
  result.worker = {};
  conclude(result, key->version, now);
  return true;
}

/// These rows are what Tables::claim_ready() claims.
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
    const std::uint64_t number = rows_.at(seq).key;
    Key key = take(number);
    key->worker = worker;
    ++key->token;
    put(number, key);
  }
}

void ParkedTable::remove(std::int64_t seq, bool by_person, relay::TimePoint now) {
  const std::uint64_t number = rows_.at(seq).key;
  const bool was_dead = rows_.at(seq).facts.dead;
  rows_.erase(seq);
  of_key_[number].erase(seq);
  Key key = take(number);
  law::release(key, seq, next_block(number));
  law::left(key, seq, first(number), was_dead, by_person, time_of(now));
  put(number, key);
}

void ParkedTable::retry(std::int64_t seq, relay::TimePoint now) {
  const auto row = rows_.find(seq);
  if (row == rows_.end()) return;
  const std::uint64_t number = row->second.key;
  Key key = take(number);
  const std::int64_t first = std::min(this->first(number).value_or(seq), seq);
  row->second.facts.blocks = false;
  law::release(key, seq, next_block(number));
  law::retry(key, row->second.facts, seq, first, false, time_of(now));
  put(number, key);
}

void ParkedTable::discard(std::int64_t seq, relay::TimePoint now) {
  const auto row = rows_.find(seq);
  if (row == rows_.end()) return;
  if (row->second.state == store::ParkedState::running) {
    Key key = take(row->second.key);
    key->cancelled_by = "somebody";
    return put(row->second.key, key);
  }
  discarded_.insert(seq);
  remove(seq, true, now);
}

bool ParkedTable::rests(std::int64_t seq) const {
  const auto row = rows_.find(seq);
  if (row == rows_.end()) return false;
  if (row->second.facts.dead) return true;
  const auto& blocked_by = keys_.at(row->second.key).blocked_by;
  return blocked_by && *blocked_by < seq;
}

std::vector<store::AskedState> ParkedTable::asked(std::span<const store::AskedRow> rows) const {
  std::vector<store::AskedState> states;
  for (const store::AskedRow& one : rows) {
    const auto row = rows_.find(one.seq);
    states.push_back({.seq = one.seq,
                      .state = row == rows_.end() ? std::nullopt : std::optional(row->second.state),
                      .key_left = keys_.contains(one.key)});
  }
  return states;
}

bool ParkedTable::works(std::uint64_t key, store::LaneMask lanes) const {
  const auto& seqs = of_key_.at(key);
  return !seqs.empty() && (lanes >> rows_.at(*seqs.begin()).lane & 1U) != 0;
}

store::ParkedKeys ParkedTable::keys(store::LaneMask lanes) const {
  store::ParkedKeys all;
  for (const auto& [number, key] : keys_) {
    const bool solo = of_key_.at(number).contains(static_cast<std::int64_t>(number));
    if (works(number, lanes) && (!solo || key.run_seq))
      all.keys.push_back({.key = number, .run_seq = key.run_seq.value_or(0)});
  }
  for (const auto& [seq, row] : rows_)
    all.live += !row.facts.dead && (lanes >> row.lane & 1U) != 0 ? 1 : 0;
  return all;
}

store::DueEvents ParkedTable::due(relay::TimePoint now, store::LaneMask lanes) const {
  store::DueEvents due;
  for (const auto& [number, key] : keys_) {
    if (key.run_seq || key.due_at == law::kNever || !works(number, lanes)) continue;
    const std::chrono::microseconds left(std::max<law::Time>(key.due_at - time_of(now), 0));
    const auto in = std::chrono::ceil<std::chrono::milliseconds>(left);
    due.next_in = std::min(due.next_in.value_or(in), in);
    if (key.due_at > time_of(now)) continue;
    bool is_first = true;
    for (const std::int64_t seq : of_key_.at(number)) {
      const Row& row = rows_.at(seq);
      if (key.blocked_by && seq >= *key.blocked_by) break;
      if (row.facts.dead) continue;
      due.rows.push_back({.event = row.event,
                          .key = number,
                          .version = key.version,
                          .attempts = std::exchange(is_first, false) ? key.attempts : 0,
                          .token = key.token});
    }
  }
  return due;
}

}  // namespace outbox::sim
