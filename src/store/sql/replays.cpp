// Replays: what both stores do in the same way.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/time_text.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store {

tl::unexpected<Error> begins_too_early(std::int64_t first, const RetainedLog& log) {
  std::string retained = "everything from seq " + std::to_string(log.first) + " on";
  if (log.first_us != 0) retained += ", written at " + event::time_text(log.first_us);
  return fail(Errc::not_found,
              "the replay begins at seq " + std::to_string(first) +
                  ", before what the log still has: " + retained,
              "begin there, or send what was removed from its archive with --archive DIR");
}

tl::unexpected<Error> another_is_running() {
  return fail(Errc::already_exists, "another replay of this subscription is running",
              "outbox replay --list shows it, outbox replay --stop ID ends it");
}

tl::unexpected<Error> not_stopped(std::int64_t replay) {
  return fail(Errc::not_found, "replay " + std::to_string(replay) + " is not stopped",
              "outbox replay --list shows its state");
}

std::vector<ReplayPlace> resume_places(const std::vector<ReplayPlace>& rows, std::int64_t start,
                                       LaneMask lanes) {
  std::map<std::int64_t, LaneMask> at;
  for (unsigned lane = 0; lane < 64; ++lane) {
    const LaneMask bit = LaneMask{1} << lane;
    if ((lanes & bit) == 0) continue;
    std::int64_t position = start;
    for (const ReplayPlace& row : rows) {
      if ((row.lanes & bit) != 0) position = std::max(position, row.position);
    }
    at[position] |= bit;
  }
  std::vector<ReplayPlace> places;
  places.reserve(at.size());
  for (const auto& [position, mask] : at) places.push_back({.lanes = mask, .position = position});
  return places;
}

namespace sql {
namespace {

Replay read_replay(Row row) {
  Replay replay;
  std::string state;
  row.read(replay.id, replay.subscription, replay.first, replay.last, replay.filter,
           replay.archived, state, replay.actor, replay.reason, replay.started_at_us,
           replay.ended_at_us, replay.position, replay.sent, replay.skipped);
  replay.state = parse_replay_state(state);
  return replay;
}

}  // namespace

Result<RetainedLog> Replays::retained() {
  OUTBOX_TRY(const Rows rows, db_->exec(&Statements::retained));
  RetainedLog log;
  rows[0].read(log.first, log.removed, log.first_us, log.last);
  return log;
}

Status Replays::loaded(std::int64_t replay) {
  auto begun = change_one(&Statements::replay_loaded, {replay});
  return begun ? Status{} : Status(pass(begun));
}

Result<bool> Replays::stop(std::int64_t replay, std::string_view reason) {
  OUTBOX_TRY(const bool stopped, change_one(&Statements::stop_replay, {replay, reason}));
  if (stopped) return true;
  if (!reason.empty()) return change_one(&Statements::drop_replay, {replay});
  OUTBOX_TRY(const Rows dropped, db_->exec(&Statements::drop_replay, {replay}));
  return !dropped.empty();
}

Status Replays::start_recorded(const Replay& replay, std::optional<std::int64_t> id,
                               const std::function<Result<std::int64_t>()>& start) {
  if (!replay.archived || id) return change_recorded(*db_, {.id = replay.subscription}, start);
  auto started = start();
  return started ? Status{} : Status(pass(started));
}

/// The statement returns the subscription of the replay that it changed, or nothing.
Result<bool> Replays::change_one(Named statement, const Params& params) {
  bool changed = false;
  ChangedSubscription of;
  OUTBOX_TRY(change_recorded(*db_, of, [&]() -> Result<std::int64_t> {
    OUTBOX_TRY(const Rows rows, db_->exec(statement, params));
    changed = !rows.empty();
    of.id = rows.first<std::int32_t>();
    return std::int64_t{changed};
  }));
  return changed;
}

Status Replays::resume(std::int64_t replay) {
  OUTBOX_TRY(const auto found, find(replay));
  if (!found) return not_stopped(replay);
  OUTBOX_TRY(const std::int64_t id, begin(*found, replay));
  return id == 0 ? Status(not_stopped(replay)) : Status{};
}

Result<std::optional<Replay>> Replays::find(std::int64_t replay) {
  OUTBOX_TRY(auto all, read_list(replay, 0, 1));
  return all.empty() ? std::nullopt : std::optional(std::move(all.front()));
}

Result<std::vector<Replay>> Replays::read_list(Param id, std::int32_t subscription,
                                               std::size_t limit) {
  OUTBOX_TRY(const Rows rows, db_->exec(&Statements::list_replays,
                                        {id, subscription, static_cast<std::int64_t>(limit)}));
  return rows.list(read_replay);
}

Result<std::vector<ReplaySkip>> Replays::skips(std::int64_t replay, std::size_t limit) {
  OUTBOX_TRY(const Rows rows,
             db_->exec(&Statements::replay_skips, {replay, static_cast<std::int64_t>(limit)}));
  return rows.list([](Row row) {
    ReplaySkip skip;
    row.read(skip.seq, skip.id, skip.error, skip.aggregate_type, skip.aggregate_id);
    return skip;
  });
}

Result<std::vector<ReplayPlace>> Replays::places(const Replay& replay, LaneMask lanes) {
  OUTBOX_TRY(const Rows rows, db_->exec(&Statements::replay_places, {replay.id}));
  const auto all = rows.list([](Row row) {
    ReplayPlace place;
    row.read(place.lanes, place.position);
    return place;
  });
  return resume_places(all, replay.first - 1, lanes);
}

}  // namespace sql
}  // namespace outbox::store
