#include "sim/groups/tables.hpp"

#include <algorithm>
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

Tables::Tables(Database& database) : database_(database) {
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

std::optional<std::uint64_t> Tables::append(const std::vector<store::Settlement>& rows,
                                            int incarnation, bool durably) {
  if (incarnation != database_.incarnation()) return {};
  const std::uint64_t w = database_.begin();
  database_.commit(w, durably);
  for (const store::Settlement& row : rows) add({.row = row, .w = w, .has_mark = true});
  return w;
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
  newest_ = {};
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (unsigned lane = 0; lane < 64; ++lane) {
      if ((rows_[i].row.lanes & bit(lane)) != 0 &&
          rows_[i].row.generation >= rows_[newest_[lane]].row.generation)
        newest_[lane] = i;
    }
  }
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
