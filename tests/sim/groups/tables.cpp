#include "sim/groups/tables.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "store/postgres/snapshot.hpp"

namespace outbox::sim {
namespace {

store::LaneMask bit(unsigned lane) { return store::LaneMask{1} << lane; }

}  // namespace

std::string text_of(const store::Visible& snapshot) {
  std::string text =
      std::to_string(snapshot.first_unseen()) + ':' + std::to_string(snapshot.xmax) + ':';
  for (std::size_t i = 0; i < snapshot.running.size(); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(snapshot.running[i]);
  return text;
}

store::VisiblePtr snapshot_of(const std::string& text) {
  const auto parsed = store::postgres::parse_snapshot(text);
  return std::make_shared<const store::Visible>(
      store::Visible{.xmax = parsed->xmax, .running = parsed->xip});
}

Tables::Tables(Database& database, bool tasks, bool dead_blocks)
    : database_(database),
      dead_blocks_(dead_blocks),
      catalog_(tasks),
      kept_{{{.parked = ParkedTable(dead_blocks)}, {.parked = ParkedTable(dead_blocks)}}} {
  SettlementRow first;
  first.row.subscription = kSubscription;
  first.row.kind = store::SettlementKind::reset;
  first.row.s1 = first.row.s2 = "3:3:";  // nothing is visible in it
  add(std::move(first));
}

void Tables::set_apart(bool paused) {
  database_.commit(database_.begin(), true);
  catalog_.set_apart(paused);
}

void Tables::set_active(bool active) {
  database_.commit(database_.begin(), true);
  catalog_.set_active(active);
}

// ---- settlements

void Tables::add(SettlementRow row) {
  row.id = next_id_++;
  row.written_at = database_.inserted();
  if (!row.row.s1.empty()) row.s1 = snapshot_of(row.row.s1);
  if (!row.row.s2.empty()) row.s2 = snapshot_of(row.row.s2);
  rows_.push_back(std::move(row));
  note_newest(rows_.size() - 1);
}

void Tables::note_newest(std::size_t row) {
  const store::Settlement& added = rows_[row].row;
  for (unsigned lane = 0; lane < 64; ++lane) {
    if ((added.lanes & bit(lane)) == 0) continue;
    auto& newest = kept(added.subscription).newest[lane];
    if (!newest || added.generation >= rows_[*newest].row.generation) newest = row;
  }
}

const SettlementRow* Tables::newest(std::int32_t subscription, unsigned lane) const {
  const auto& newest = kept(subscription).newest[lane];
  return newest ? &rows_[*newest] : nullptr;
}

std::vector<store::Strand> Tables::strands(std::int32_t subscription, store::LaneMask lanes) const {
  std::vector<store::Strand> strands;
  std::vector<std::vector<std::int64_t>> ids;
  for (unsigned lane = 0; lane < 64; ++lane) {
    const SettlementRow* const row = newest(subscription, lane);
    if ((lanes & bit(lane)) == 0 || row == nullptr) continue;
    const store::Cursor cursor = row->row.end();
    auto strand = std::find_if(strands.begin(), strands.end(),
                               [&](const store::Strand& known) { return known.cursor == cursor; });
    if (strand == strands.end()) {
      strands.push_back(
          {.lanes = 0, .cursor = cursor, .generation = row->row.generation, .rows = 0});
      ids.emplace_back();
      strand = strands.end() - 1;
    }
    auto& seen = ids[static_cast<std::size_t>(strand - strands.begin())];
    if (std::find(seen.begin(), seen.end(), row->id) == seen.end()) seen.push_back(row->id);
    strand->lanes |= bit(lane);
    strand->generation = std::min(strand->generation, row->row.generation);
    strand->rows = seen.size();
  }
  return strands;
}

std::optional<std::uint64_t> Tables::append(const Batch& batch, int incarnation, bool durably,
                                            relay::TimePoint now) {
  if (incarnation != database_.incarnation() || !owns(batch)) return {};
  const std::uint64_t w = database_.begin();
  database_.commit(w, durably);
  for (const store::Settlement& row : batch.rows) add({.row = row, .w = w, .has_mark = true});
  for (const store::ParkedEvent& event : batch.parked) {
    const WrittenEvent& written = *find(event.seq, event.id);
    change_parked(event.subscription,
                  [event, view = written.view, lane = written.lane, now](ParkedTable& table) {
                    table.park(event, view, lane, now);
                  });
  }
  for (const store::RetryResult& result : batch.results)
    change_parked(result.subscription,
                  [result, now](ParkedTable& table) { table.settle(result, now); });
  for (const store::ReplayProgress& progress : batch.replays)
    change_record([progress](ReplayRecord& record) { record.settle(progress); });
  const auto is_ready = [](const auto& row) { return row.state == store::ParkedState::ready; };
  if (std::any_of(batch.parked.begin(), batch.parked.end(), is_ready) ||
      std::any_of(batch.results.begin(), batch.results.end(), is_ready))
    ++told_of_ready_;
  return w;
}

// ---- parked events

bool Tables::owns(const Batch& batch) const {
  const auto of_event = [&](const store::ParkedEvent& event) {
    const WrittenEvent* const written = find(event.seq, event.id);
    return written != nullptr && members_.owns(bit(written->lane), event.generation);
  };
  const auto of_result = [&](const store::RetryResult& result) {
    const auto& rows = parked(result.subscription).rows();
    const auto row = rows.find(result.seq);
    return row == rows.end() || members_.owns(bit(row->second.lane), result.generation);
  };
  const auto of_replay = [&](const store::ReplayProgress& progress) {
    return members_.owns(progress.lanes, progress.generation);
  };
  return std::all_of(batch.parked.begin(), batch.parked.end(), of_event) &&
         std::all_of(batch.results.begin(), batch.results.end(), of_result) &&
         std::all_of(batch.replays.begin(), batch.replays.end(), of_replay);
}

const WrittenEvent* Tables::find(std::int64_t seq, const EventId& id) const {
  for (auto number = database_.rows().rbegin(); number != database_.rows().rend(); ++number) {
    const WrittenEvent& event = database_.event(*number);
    if (event.view.seq == seq && event.view.id == id) return &event;
  }
  return nullptr;
}

void Tables::change_parked(std::int32_t subscription, const Change& change) {
  Kept& kept = this->kept(subscription);
  change(kept.parked);
  kept.changes.emplace_back(database_.inserted(), change);
}

void Tables::due(std::int32_t subscription, const store::Holding& holding, relay::TimePoint now,
                 store::DueEvents& into) const {
  store::LaneMask owned = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    if (members_.owns(bit(lane), holding.generation)) owned |= bit(lane);
  }
  store::DueEvents due = parked(subscription).due(now, holding.lanes & owned);
  into.rows = std::move(due.rows);
  into.next_in = due.next_in;
}

std::vector<std::uint64_t> Tables::released(std::int32_t subscription, const Batch& batch) const {
  std::vector<std::uint64_t> keys;
  const auto look = [&](const auto& row) {
    if (row.subscription == subscription && parked(subscription).is_released(row.key))
      keys.push_back(row.key);
  };
  for (const store::ParkedEvent& event : batch.parked) look(event);
  for (const store::RetryResult& result : batch.results) look(result);
  return keys;
}

void Tables::decide(bool discard, std::int32_t subscription, std::int64_t seq,
                    relay::TimePoint now) {
  database_.commit(database_.begin(), true);
  change_parked(subscription, [discard, seq, now](ParkedTable& table) {
    discard ? table.discard(seq, now) : table.retry(seq, now);
  });
  catalog_.parked_changed(subscription);
}

// ---- runs of tasks

void Tables::beat(const EventId& worker, relay::TimePoint now) {
  const std::uint64_t xid = database_.begin();
  database_.commit(xid, true);
  const auto [row, is_new] =
      workers_.try_emplace(worker, Worker{.beat = static_cast<std::int64_t>(xid) * 1000});
  if (!is_new) ++row->second.beat;
  row->second.beat_at = now;
}

std::vector<store::TaskRunRow> Tables::runs_of(const EventId& worker) const {
  std::vector<store::TaskRunRow> runs;
  for (const store::SubscriptionRow& subscription : catalog_.rows()) {
    for (const auto& [seq, row] : parked(subscription.id).rows()) {
      if (row.state == store::ParkedState::running && row.worker == worker)
        runs.push_back({.subscription = subscription.id,
                        .queue = subscription.spec.name,
                        .seq = seq,
                        .id = row.event.id,
                        .attempts = row.attempts,
                        .token = row.token,
                        .type = std::string(row.event.event_type),
                        .headers = "{}",
                        .cancelled = row.cancelled});
    }
  }
  return runs;
}

std::vector<store::OtherWorker> Tables::others(const EventId& me) const {
  std::map<EventId, std::optional<std::int64_t>> others;
  for (const Kept& kept : kept_) {
    for (const auto& [seq, row] : kept.parked.rows()) {
      if (row.state != store::ParkedState::running || row.worker == me) continue;
      const auto worker = workers_.find(row.worker);
      others[row.worker] =
          worker == workers_.end() ? std::nullopt : std::optional(worker->second.beat);
    }
  }
  std::vector<store::OtherWorker> all;
  for (const auto& [id, beat] : others) all.push_back({.id = id, .beat = beat});
  return all;
}

std::vector<bool> Tables::end_runs(const std::vector<store::TaskRunEnd>& ends,
                                   const std::vector<store::TaskFinish>& finishes,
                                   relay::TimePoint now) {
  database_.commit(database_.begin(), true);
  std::vector<bool> written;
  for (const store::TaskRunEnd& end : ends) {
    const auto done = std::make_shared<bool>();
    change_parked(end.result.subscription,
                  [done, end, now](ParkedTable& table) { *done = table.end(end, now); });
    if (*done && end.finish) finish(*end.finish);
    written.push_back(*done);
  }
  for (const store::TaskFinish& one : finishes) finish(one);
  return written;
}

// ---- tasks for any worker

void Tables::announce_free_threads(const EventId& worker, std::size_t free) {
  database_.commit(database_.begin(), true);
  if (const auto row = workers_.find(worker); row != workers_.end()) row->second.idle = free;
}

store::OtherThreads Tables::other_threads(const EventId& me, relay::TimePoint now,
                                          std::chrono::milliseconds alive) const {
  store::OtherThreads others;
  for (const auto& [id, worker] : workers_) {
    if (id == me || now - worker.beat_at > alive) continue;
    ++others.workers;
    others.free += static_cast<std::int64_t>(worker.idle);
  }
  return others;
}

std::vector<Tables::Claimed> Tables::claim_ready(const EventId& worker,
                                                 std::span<const std::string> types,
                                                 std::size_t limit) {
  database_.commit(database_.begin(), true);
  std::vector<Claimed> claimed;
  for (const store::SubscriptionRow& subscription : catalog_.rows()) {
    if (subscription.state != store::SubscriptionState::active) continue;
    std::vector<std::string> active(types.begin(), types.end());
    for (const std::string& paused : subscription.paused_types) std::erase(active, paused);
    const std::vector<std::int64_t> seqs =
        parked(subscription.id).ready(active, limit - claimed.size());
    change_parked(subscription.id,
                  [seqs, worker](ParkedTable& table) { table.claim(seqs, worker); });
    for (const std::int64_t seq : seqs)
      claimed.push_back(
          {.subscription = subscription.id, .row = parked(subscription.id).rows().at(seq)});
  }
  return claimed;
}

/// finish_tasks()
void Tables::finish(const store::TaskFinish& finish) {
  if (task_ends_.insert(finish.id).second) ++told_[finish.id];
}

void Tables::claim(std::int32_t subscription, store::LaneMask lanes, std::int64_t generation) {
  store::Settlement row;
  row.subscription = subscription;
  row.kind = store::SettlementKind::claim;
  row.generation = generation;
  add_cursors(std::move(row), strands(subscription, lanes));
}

bool Tables::begin_beside(store::LaneMask lanes, std::int64_t generation) {
  if (!members_.owns(lanes, generation)) return false;
  store::LaneMask without = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    if (newest(kOfType, lane) == nullptr) without |= bit(lane);
  }
  store::Settlement row;
  row.subscription = kOfType;
  row.kind = store::SettlementKind::reset;
  row.generation = generation;
  add_cursors(std::move(row), strands(kSubscription, lanes & without));
  return true;
}

/// In one transaction.
void Tables::add_cursors(store::Settlement like, const std::vector<store::Strand>& strands) {
  const std::uint64_t w = database_.begin();
  database_.commit(w, true);
  for (const store::Strand& strand : strands) {
    const bool begun = !strand.cursor.drained();
    store::Settlement row = like;
    row.lanes = strand.lanes;
    row.s1 = strand.cursor.s1;
    row.s2 = begun ? strand.cursor.s2 : strand.cursor.s1;
    row.from_position = strand.cursor.position;
    if (begun) row.position = strand.cursor.position;
    row.bound = strand.cursor.bound;
    add({.row = std::move(row), .w = w});
  }
}

std::optional<store::Holding> Tables::change(const EventId& relay, store::LaneMask wanted,
                                             relay::TimePoint now,
                                             std::chrono::milliseconds lease) {
  return members_.change(relay, wanted, now, lease,
                         [&](store::LaneMask lanes, std::int64_t generation) {
                           for (const store::SubscriptionRow& row : catalog_.rows())
                             claim(row.id, lanes, generation);
                         });
}

void Tables::mark(std::uint64_t xid, std::int64_t l) {
  database_.commit(xid, true);
  SettlementRow mark{.w = xid, .has_mark = true};
  mark.row.kind = store::SettlementKind::mark;
  mark.row.lanes = 0;
  mark.row.bound = l;
  add(std::move(mark));
}

std::vector<std::pair<std::uint64_t, std::int64_t>> Tables::marks() const {
  std::vector<std::pair<std::uint64_t, std::int64_t>> marks;
  for (const SettlementRow& row : rows_) {
    if (row.has_mark) marks.emplace_back(row.w, row.row.bound);
  }
  return marks;
}

bool Tables::is_settled(std::int32_t subscription, const WrittenEvent& event) const {
  const SettlementRow* const cursor = newest(subscription, event.lane);
  return cursor != nullptr && is_before(event, *cursor);
}

bool Tables::is_before(const WrittenEvent& event, const SettlementRow& cursor) const {
  if (!cursor.row.position) return database_.sees(*cursor.s2, event.xid);
  return database_.sees(*cursor.s1, event.xid) ||
         (event.view.seq <= *cursor.row.position && database_.sees(*cursor.s2, event.xid));
}

void Tables::crash() {
  std::erase_if(rows_,
                [this](const SettlementRow& row) { return row.written_at > database_.flushed(); });
  for (Kept& kept : kept_) {
    std::erase_if(kept.changes,
                  [this](const auto& change) { return change.first > database_.flushed(); });
    kept.parked = ParkedTable(dead_blocks_);
    for (const auto& [at, change] : kept.changes) change(kept.parked);
    kept.newest = {};
  }
  std::erase_if(replay_changes_,
                [this](const auto& change) { return change.first > database_.flushed(); });
  replay_ = {};
  for (const auto& [at, change] : replay_changes_) change(replay_);
  for (std::size_t row = 0; row < rows_.size(); ++row) note_newest(row);
}

// ---- replays

/// settle_replay()
void ReplayRecord::settle(const store::ReplayProgress& progress) {
  if (progress.replay != replay.id) return;
  bool done = true;
  for (unsigned lane = 0; lane < 64; ++lane) {
    if ((progress.lanes & bit(lane)) != 0)
      positions[lane] = std::max(positions[lane], progress.position);
    done = done && positions[lane] >= replay.last;
  }
  skips.insert(skips.end(), progress.skips.begin(), progress.skips.end());
  // Also one that is being stopped: there is nothing left of it to resume.
  if (done) replay.state = store::ReplayState::done;
}

void Tables::change_record(const ReplayChange& change) {
  change(replay_);
  replay_changes_.emplace_back(database_.inserted(), change);
}

void Tables::start_replay(std::int64_t first, std::int64_t last) {
  database_.commit(database_.begin(), true);
  change_record([id = replay_.replay.id + 1, first, last](ReplayRecord& record) {
    record = {};
    record.replay = {.id = id,
                     .subscription = kSubscription,
                     .first = first,
                     .last = last,
                     .filter = "{}",
                     .state = store::ReplayState::running};
    record.positions.fill(first - 1);
  });
}

void Tables::change_replay(store::ReplayState state) {
  database_.commit(database_.begin(), true);
  change_record([state](ReplayRecord& record) { record.replay.state = state; });
}

store::ReplayPage Tables::page(const store::ReplayRequest& request) const {
  store::ReplayPage page{.position = request.position, .ended = true};
  const auto s1 = snapshot_of(request.live.s1);
  const auto s2 = request.live.drained() ? s1 : snapshot_of(request.live.s2);
  for (const std::size_t number : database_.rows()) {
    const WrittenEvent& event = database_.event(number);
    const std::int64_t seq = event.view.seq;
    const bool passed =
        database_.sees(*s1, event.xid) ||
        (!request.live.drained() && seq <= request.live.position && database_.sees(*s2, event.xid));
    if (!passed || (request.lanes & bit(event.lane)) == 0 || seq <= request.position ||
        seq > request.last)
      continue;
    if (page.events.size() == request.rows) {
      page.ended = false;
      break;
    }
    const ParkedTable& parked = this->parked();
    const auto row = parked.rows().find(seq);
    const bool held = (row != parked.rows().end() && row->second.event.id == event.view.id) ||
                      parked.discarded().contains(seq);
    page.events.push_back(event.view);
    page.held.push_back(held ? 1 : 0);
    page.position = seq;
  }
  return page;
}

}  // namespace outbox::sim
