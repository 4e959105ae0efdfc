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

void Batch::add(const Batch& other) {
  rows.insert(rows.end(), other.rows.begin(), other.rows.end());
  parked.insert(parked.end(), other.parked.begin(), other.parked.end());
  results.insert(results.end(), other.results.begin(), other.results.end());
  replays.insert(replays.end(), other.replays.begin(), other.replays.end());
}

Tables::Tables(Database& database, bool dead_blocks)
    : database_(database), dead_blocks_(dead_blocks) {
  SettlementRow first;
  first.row.subscription = kSubscription;
  first.row.kind = store::SettlementKind::reset;
  first.row.s1 = first.row.s2 = "3:3:";  // nothing is visible in it
  add(std::move(first));
}

// ---- settlements

void Tables::add(SettlementRow row) {
  row.id = next_id_++;
  row.written_at = database_.inserted();
  if (!row.row.s1.empty()) row.s1 = snapshot_of(row.row.s1);
  if (!row.row.s2.empty()) row.s2 = snapshot_of(row.row.s2);
  rows_.push_back(std::move(row));
  const SettlementRow& added = rows_.back();
  for (unsigned lane = 0; lane < 64; ++lane) {
    if ((added.row.lanes & bit(lane)) == 0) continue;
    const SettlementRow& before = rows_[newest_[lane]];
    if (added.row.generation >= before.row.generation) newest_[lane] = rows_.size() - 1;
  }
}

const SettlementRow& Tables::newest(unsigned lane) const { return rows_[newest_[lane]]; }

std::vector<store::Strand> Tables::strands(store::LaneMask lanes) const {
  std::vector<store::Strand> strands;
  std::vector<std::vector<std::int64_t>> ids;
  for (unsigned lane = 0; lane < 64; ++lane) {
    if ((lanes & bit(lane)) == 0) continue;
    const SettlementRow& row = newest(lane);
    const store::Cursor cursor = row.row.end();
    auto strand = std::find_if(strands.begin(), strands.end(),
                               [&](const store::Strand& known) { return known.cursor == cursor; });
    if (strand == strands.end()) {
      strands.push_back(
          {.lanes = 0, .cursor = cursor, .generation = row.row.generation, .rows = 0});
      ids.emplace_back();
      strand = strands.end() - 1;
    }
    auto& seen = ids[static_cast<std::size_t>(strand - strands.begin())];
    if (std::find(seen.begin(), seen.end(), row.id) == seen.end()) seen.push_back(row.id);
    strand->lanes |= bit(lane);
    strand->generation = std::min(strand->generation, row.row.generation);
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
    change_parked([event, view = written.view, lane = written.lane, now](ParkedTable& table) {
      table.park(event, view, lane, now);
    });
  }
  for (const store::RetryResult& result : batch.results)
    change_parked([result, now](ParkedTable& table) { table.settle(result, now); });
  for (const store::ReplayProgress& progress : batch.replays)
    change_record([progress](ReplayRecord& record) { record.settle(progress); });
  return w;
}

// ---- parked events

/// hold_lanes()
bool Tables::owns(const Batch& batch) const {
  const auto of_lane = [&](unsigned lane, std::int64_t generation) {
    return lanes_[lane].generation == generation;
  };
  const bool events =
      std::all_of(batch.parked.begin(), batch.parked.end(), [&](const store::ParkedEvent& event) {
        const WrittenEvent* const written = find(event.seq, event.id);
        return written != nullptr && of_lane(written->lane, event.generation);
      });
  for (const store::ReplayProgress& progress : batch.replays) {
    for (unsigned lane = 0; lane < 64; ++lane) {
      if ((progress.lanes & bit(lane)) != 0 && !of_lane(lane, progress.generation)) return false;
    }
  }
  return events && std::all_of(batch.results.begin(), batch.results.end(),
                               [&](const store::RetryResult& result) {
                                 const auto row = parked_.rows().find(result.seq);
                                 return row == parked_.rows().end() ||
                                        of_lane(row->second.lane, result.generation);
                               });
}

const WrittenEvent* Tables::find(std::int64_t seq, const EventId& id) const {
  for (auto number = database_.rows().rbegin(); number != database_.rows().rend(); ++number) {
    const WrittenEvent& event = database_.event(*number);
    if (event.view.seq == seq && event.view.id == id) return &event;
  }
  return nullptr;
}

void Tables::change_parked(const Change& change) {
  change(parked_);
  parked_changes_.emplace_back(database_.inserted(), change);
}

store::DueEvents Tables::due(const store::Holding& holding, relay::TimePoint now,
                             const std::vector<std::int64_t>* runs) const {
  store::LaneMask owned = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    if (lanes_[lane].generation == holding.generation) owned |= bit(lane);
  }
  store::DueEvents due = parked_.due(now, holding.lanes & owned);
  if (runs != nullptr) due.running = parked_.running(*runs);
  return due;
}

std::vector<ParkedTable::Row> Tables::blocking_rows(store::LaneMask lanes) const {
  std::vector<ParkedTable::Row> rows;
  for (const auto& [seq, row] : parked_.rows()) {
    if (parked_.blocks(row) && (lanes & bit(row.lane)) != 0) rows.push_back(row);
  }
  return rows;
}

void Tables::decide(bool discard, std::int64_t seq, relay::TimePoint now) {
  database_.commit(database_.begin(), true);
  change_parked([discard, seq, now](ParkedTable& table) {
    discard ? table.discard(seq, now) : table.retry(seq, now);
  });
  ++parked_version_;
}

// ---- runs of tasks

std::vector<store::TaskRunRow> Tables::runs_of(const EventId& worker) const {
  std::vector<store::TaskRunRow> runs;
  for (const auto& [seq, row] : parked_.rows()) {
    if (row.state == store::ParkedState::running && row.worker == worker)
      runs.push_back({.subscription = kSubscription,
                      .queue = "task.sim",
                      .seq = seq,
                      .id = row.event.id,
                      .attempts = row.attempts,
                      .token = row.token,
                      .type = std::string(row.event.event_type),
                      .headers = "{}",
                      .cancelled = row.cancelled});
  }
  return runs;
}

std::vector<store::OtherWorker> Tables::others(const EventId& me) const {
  std::map<EventId, std::optional<std::int64_t>> others;
  for (const auto& [seq, row] : parked_.rows()) {
    if (row.state != store::ParkedState::running || row.worker == me) continue;
    const auto beat = beats_.find(row.worker);
    others[row.worker] = beat == beats_.end() ? std::nullopt : std::optional(beat->second);
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
    change_parked([done, end, now](ParkedTable& table) { *done = table.end(end, now); });
    if (*done && end.finish) finish(*end.finish);
    written.push_back(*done);
  }
  for (const store::TaskFinish& one : finishes) finish(one);
  return written;
}

/// finish_tasks()
void Tables::finish(const store::TaskFinish& finish) {
  if (task_ends_.insert(finish.id).second) ++told_[finish.id];
}

void Tables::claim(store::LaneMask lanes, std::int64_t generation) {
  const std::uint64_t w = database_.begin();
  database_.commit(w, true);
  for (const store::Strand& strand : strands(lanes)) {
    const bool begun = !strand.cursor.drained();
    store::Settlement row;
    row.subscription = kSubscription;
    row.kind = store::SettlementKind::claim;
    row.lanes = strand.lanes;
    row.generation = generation;
    row.s1 = strand.cursor.s1;
    row.s2 = begun ? strand.cursor.s2 : strand.cursor.s1;
    row.from_position = strand.cursor.position;
    if (begun) row.position = strand.cursor.position;
    row.bound = strand.cursor.bound;
    add({.row = std::move(row), .w = w});
  }
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

bool Tables::is_settled(const WrittenEvent& event) const {
  const SettlementRow& cursor = newest(event.lane);
  if (!cursor.row.position) return database_.sees(*cursor.s2, event.xid);
  return database_.sees(*cursor.s1, event.xid) ||
         (event.view.seq <= *cursor.row.position && database_.sees(*cursor.s2, event.xid));
}

void Tables::crash() {
  std::erase_if(rows_,
                [this](const SettlementRow& row) { return row.written_at > database_.flushed(); });
  std::erase_if(parked_changes_,
                [this](const auto& change) { return change.first > database_.flushed(); });
  parked_ = ParkedTable(dead_blocks_);
  for (const auto& [at, change] : parked_changes_) change(parked_);
  std::erase_if(replay_changes_,
                [this](const auto& change) { return change.first > database_.flushed(); });
  replay_ = {};
  for (const auto& [at, change] : replay_changes_) change(replay_);
  newest_ = {};
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (unsigned lane = 0; lane < 64; ++lane) {
      if ((rows_[i].row.lanes & bit(lane)) != 0 &&
          rows_[i].row.generation >= rows_[newest_[lane]].row.generation)
        newest_[lane] = i;
    }
  }
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
    const auto row = parked_.rows().find(seq);
    const bool held = (row != parked_.rows().end() && row->second.event.id == event.view.id) ||
                      parked_.discarded().contains(seq);
    page.events.push_back(event.view);
    page.held.push_back(held ? 1 : 0);
    page.position = seq;
  }
  return page;
}

// ---- members and lanes

store::Fleet Tables::look(const EventId& asking, relay::TimePoint now,
                          std::chrono::milliseconds lease) const {
  store::Fleet fleet;
  for (const Member& member : members_) {
    fleet.members.push_back({.id = member.id,
                             .name = {},
                             .groups = {"*"},
                             .alive = member.id == asking || is_alive(member, now, lease)});
  }
  store::Group group{.name = "default", .has_subscriptions = true, .owners = {}};
  for (unsigned lane = 0; lane < 64; ++lane) {
    group.owners.push_back(
        {.owner = lanes_[lane].owner, .lanes = bit(lane), .generation = lanes_[lane].generation});
  }
  fleet.groups.push_back(std::move(group));
  return fleet;
}

bool Tables::keep(const EventId& relay, relay::TimePoint now) {
  for (Member& member : members_) {
    if (member.id != relay) continue;
    member.heartbeat = now;
    return true;
  }
  members_.push_back({.id = relay, .heartbeat = now});
  return false;
}

void Tables::leave(const EventId& relay) {
  for (Lane& lane : lanes_) {
    if (lane.owner == relay) lane.owner.reset();
  }
  std::erase_if(members_, [&](const Member& member) { return member.id == relay; });
}

void Tables::process_ended(const EventId& relay) {
  for (Member& member : members_) member.gone = member.gone || member.id == relay;
}

/// The lanes of the dead get a new generation all, also those that stay free: a late row counts for all of its lanes or for none.
std::optional<store::Holding> Tables::change(const EventId& relay, store::LaneMask wanted,
                                             relay::TimePoint now,
                                             std::chrono::milliseconds lease) {
  const auto is_living_other = [&](const EventId& owner) {
    return owner != relay &&
           std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
             return member.id == owner && is_alive(member, now, lease);
           });
  };
  const bool registered = std::any_of(members_.begin(), members_.end(),
                                      [&](const Member& member) { return member.id == relay; });
  if (!registered) return {};
  store::LaneMask free = 0;
  store::LaneMask used = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    const auto& owner = lanes_[lane].owner;
    if (owner && is_living_other(*owner)) continue;
    free |= bit(lane);
    if (lanes_[lane].generation > 0) used |= bit(lane);
    if (owner && *owner != relay)
      std::erase_if(members_, [&](const Member& member) { return member.id == *owner; });
  }
  store::Holding holding{.lanes = free & wanted};
  if (const store::LaneMask rest = used & ~holding.lanes; rest != 0) give({}, rest, ++generation_);
  if (holding.lanes != 0) {
    holding.generation = ++generation_;
    give(relay, holding.lanes, generation_);
  }
  return holding;
}

void Tables::give(std::optional<EventId> owner, store::LaneMask lanes, std::int64_t generation) {
  for (unsigned lane = 0; lane < 64; ++lane) {
    if ((lanes & bit(lane)) != 0) lanes_[lane] = {.owner = owner, .generation = generation};
  }
  claim(lanes, generation);
}

}  // namespace outbox::sim
