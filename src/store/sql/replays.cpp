// Replays: what both stores do in the same way.
#include <utility>

#include "store/common/replay.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::sql {
namespace {

Replay replay_of(Row row) {
  Replay replay;
  std::string state;
  row.read(replay.id, replay.subscription, replay.first, replay.last, replay.filter,
           replay.archived, state, replay.actor, replay.reason, replay.started_at_us,
           replay.ended_at_us, replay.position, replay.sent, replay.skipped);
  replay.state = replay_state_of(state);
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
  return db_->run(&Statements::replay_loaded, {replay});
}

Result<bool> Replays::stop(std::int64_t replay, std::string_view reason) {
  OUTBOX_TRY(const Rows stopped, db_->exec(&Statements::stop_replay, {replay, reason}));
  if (!stopped.empty()) return true;
  OUTBOX_TRY(const Rows dropped, db_->exec(&Statements::drop_replay, {replay}));
  return !dropped.empty();
}

Status Replays::resume(std::int64_t replay) {
  OUTBOX_TRY(const auto found, find(replay));
  if (!found) return not_stopped(replay);
  OUTBOX_TRY(const std::int64_t id, begin(*found, replay));
  return id == 0 ? Status(not_stopped(replay)) : Status{};
}

Result<std::optional<Replay>> Replays::find(std::int64_t replay) {
  OUTBOX_TRY(auto all, list_of(replay, 0, 1));
  return all.empty() ? std::nullopt : std::optional(std::move(all.front()));
}

Result<std::vector<Replay>> Replays::list_of(Param id, std::int32_t subscription,
                                             std::size_t limit) {
  OUTBOX_TRY(const Rows rows, db_->exec(&Statements::list_replays,
                                        {id, subscription, static_cast<std::int64_t>(limit)}));
  return rows.list(replay_of);
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
  return places_of(all, replay.first - 1, lanes);
}

}  // namespace outbox::store::sql
