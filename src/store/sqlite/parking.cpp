#include "store/sqlite/parking.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"
#include "event/task.hpp"
#include "store/common/subscription.hpp"
#include "store/settlement.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/event_insert.hpp"
#include "store/sqlite/event_row.hpp"
#include "store/sqlite/queries.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

/// Texts that are read at once.
constexpr std::size_t kDueBytes = std::size_t{8} << 20U;

enum ParkedColumn : int { kState = kFirstExtra, kAttempts, kToken };

struct Key {
  std::string aggregate_type;
  std::string aggregate_id;
};

std::int64_t due_at(std::int64_t now_us, std::chrono::milliseconds due_in) {
  return now_us + std::chrono::microseconds(due_in).count();
}

/// Empty: none.
std::string_view bytes_or_none(const EventId& worker) {
  return worker == EventId{} ? std::string_view() : bytes_of(worker);
}

}  // namespace

Status check_owner(Connection& connection, std::int64_t subscription, std::int64_t generation) {
  OUTBOX_TRY(const Statement row, connection.query(query::kGenerationOf, subscription));
  if (row.has_row() && row.integer(0) == generation) return {};
  return fail(Errc::lease_lost, Remedy::reconnect,
              "sqlite: " + connection.file() + " has another owner");
}

namespace {

Result<std::vector<Key>> keys_of(Statement row) {
  std::vector<Key> keys;
  while (row.has_row()) {
    keys.push_back({row.text(0), row.text(1)});
    if (Status status = row.next(); !status) return pass(status);
  }
  return keys;
}

/// The key of a parked event; none: its row is gone.
Result<std::vector<Key>> key_of(Connection& connection, std::int64_t subscription,
                                std::int64_t seq) {
  OUTBOX_TRY(Statement row, connection.query(query::kParkedKey, subscription, seq));
  return keys_of(std::move(row));
}

Status order_keys(Connection& connection, std::int64_t subscription, const std::vector<Key>& keys) {
  for (const Key& key : keys) {
    Status status =
        order_parked_key(connection, subscription, key.aggregate_type, key.aggregate_id);
    if (!status) return status;
  }
  return {};
}

/// After an event of these keys left. Events without a key stand alone.
Status wake_keys(Connection& connection, std::int64_t subscription, const std::vector<Key>& keys,
                 std::int64_t now) {
  for (const Key& key : keys) {
    if (key.aggregate_id.empty()) continue;
    Status status = connection.run(query::kWakeParkedKey, subscription, key.aggregate_type,
                                   key.aggregate_id, now);
    if (!status) return status;
  }
  return {};
}

/// Another one of the key may be there already, which the relay did not know; or those before it have gone.
Status place_new(Connection& connection, const ParkedEvent& event, std::int64_t now) {
  OUTBOX_TRY(const std::vector<Key> keys, key_of(connection, event.subscription, event.seq));
  for (const Key& key : keys) {
    if (key.aggregate_id.empty()) continue;
    Status status = connection.run(query::kWaitBehind, event.subscription, key.aggregate_type,
                                   key.aggregate_id, now, event.seq);
    if (!status) return status;
  }
  return wake_keys(connection, event.subscription, keys, now);
}

/// Removes a delivered event and counts it, unless a person removed it meanwhile.
Status end_delivered(Connection& connection, const RetryResult& result, std::int64_t now,
                     Tally& tally) {
  Status status = connection.run(query::kEndParked, result.subscription, result.seq, "delivered",
                                 static_cast<std::int64_t>(result.attempts), "", "", now);
  if (!status || connection.changes() == 0) return status;
  tally.add(event::id_hash(result.id));
  return connection.run(query::kRemoveParked, result.subscription, result.seq);
}

/// Of one subscription, under one generation.
using Delivered = std::map<std::pair<std::int32_t, std::int64_t>, Tally>;

Status append_delivered(Connection& connection, const Delivered& delivered, std::int64_t now) {
  for (const auto& [owner, tally] : delivered) {
    if (tally.count == 0) continue;
    Status status = connection.run(query::kAppendRetry, owner.first, owner.second, tally.count,
                                   static_cast<std::int64_t>(tally.hash), now);
    if (!status) return status;
  }
  return {};
}

/// The task does not run any more; over: nor does it have its unique key.
Status release_unique(Connection& connection, const EventId& id, bool over) {
  Status status = over ? Status{} : connection.run(query::kEndReplaced, bytes_of(id), wall_us());
  if (status)
    status = connection.run(over ? query::kPassReplaced : query::kSetReplacedAside, bytes_of(id),
                            wall_us());
  if (status) status = connection.run(query::kStopUnique, bytes_of(id));
  if (status && over) status = connection.run(query::kEndUnique, bytes_of(id));
  if (status && over) status = connection.run(query::kHandBackUnique, bytes_of(id));
  return status;
}

/// Of a parked task that has one.
Status drop_unique(Connection& connection, std::int64_t subscription, std::int64_t seq) {
  EventId id;
  {
    OUTBOX_TRY(const Statement row, connection.query(query::kUniqueParked, subscription, seq));
    if (!row.has_row()) return {};
    id = id_of(row.bytes(0));
  }
  return release_unique(connection, id, true);
}

/// What follows when an event has become dead: a task gives up its unique key, and tells who asked.
Status after_death(Connection& connection, std::int64_t subscription, std::int64_t seq) {
  std::optional<Event> told;
  {
    OUTBOX_TRY(const Statement task, connection.query(query::kDeadTask, subscription, seq));
    if (!task.has_row()) return {};
    event::Arena arena;
    const std::string headers = task.text(6);
    const std::string aggregate_type = task.text(1);
    const std::string type = task.text(3);
    const std::string key = task.text(2);
    const std::string error = task.text(5);
    if (const auto on_dead = event::on_dead_of(headers, arena)) {
      told = event::event_of(*on_dead, {.id = id_of(task.bytes(0)),
                                        .queue = event::place_of(aggregate_type).queue,
                                        .type = type,
                                        .key = key,
                                        .attempts = static_cast<std::size_t>(task.integer(4)),
                                        .error = error});
    }
  }
  if (told) {
    if (Status status = insert_event(connection, *told); !status) return status;
  }
  return drop_unique(connection, subscription, seq);
}

Status settle_one(Connection& connection, const RetryResult& result, std::int64_t now,
                  Tally& tally) {
  OUTBOX_TRY(Statement row, connection.query(query::kParkedKeyOf, result.subscription, result.seq,
                                             bytes_of(result.id)));
  if (!row.has_row()) return {};  // a person removed or edited it
  const bool cancelled = !row.is_null(2);
  const std::string by = row.text(2);
  const std::string reason = row.text(3);
  OUTBOX_TRY(const std::vector<Key> keys, keys_of(std::move(row)));
  Status status = {};
  if (result.state && cancelled) {
    status = discard_row(connection, result.subscription, result.seq, by, reason, now);
  } else if (result.state) {
    status = connection.run(query::kReschedule, result.subscription, result.seq,
                            to_string(*result.state), static_cast<std::int64_t>(result.attempts),
                            due_at(now, result.due_in), storable_text(result.error), now,
                            bytes_or_none(result.worker));
    if (status && *result.state == ParkedState::dead && connection.changes() > 0)
      status = after_death(connection, result.subscription, result.seq);
    if (status && *result.state == ParkedState::retrying)
      status = release_unique(connection, result.id, false);
  } else {
    status = end_delivered(connection, result, now, tally);
  }
  if (!status) return status;
  return wake_keys(connection, result.subscription, keys, now);
}

}  // namespace

Status park_events(Connection& connection, std::span<const ParkedEvent> events) {
  const std::int64_t now = wall_us();
  for (const ParkedEvent& event : events) {
    if (Status status = check_owner(connection, event.subscription, event.generation); !status)
      return status;
    Status status =
        connection.run(query::kPark, event.subscription, event.seq, to_string(event.state),
                       static_cast<std::int64_t>(event.attempts), due_at(now, event.due_in),
                       storable_text(event.error), now, bytes_or_none(event.worker));
    if (!status) return status;
    if (connection.changes() == 0) {
      return fail(Errc::not_found, Remedy::reconnect,
                  "sqlite: the event with seq " + std::to_string(event.seq) +
                      " that was to be parked is gone from the log",
                  "reading starts again from the settlements, without what was deleted; never "
                  "delete from the table outbox_event by hand");
    }
    if (event.state == ParkedState::dead) {
      if (status = after_death(connection, event.subscription, event.seq); !status) return status;
    }
    if (event.state == ParkedState::retrying) {
      if (status = release_unique(connection, event.id, false); !status) return status;
    }
    if (status = place_new(connection, event, now); !status) return status;
  }
  return {};
}

Status settle_parked(Connection& connection, std::span<const RetryResult> results) {
  const std::int64_t now = wall_us();
  Delivered delivered;
  for (const RetryResult& result : results) {
    if (Status status = check_owner(connection, result.subscription, result.generation); !status)
      return status;
    Tally& tally = delivered[{result.subscription, result.generation}];
    if (Status status = settle_one(connection, result, now, tally); !status) return status;
  }
  return append_delivered(connection, delivered, now);
}

Status insert_event(Connection& connection, const Event& event) {
  OUTBOX_TRY(const Statement insert, connection.statement(query::kInsertEvent));
  const EventId id = event.id.value_or(EventId::generate());
  return insert_events(insert.raw(), std::span(&event, 1), std::span(&id, 1));
}

Status end_runs(Connection& connection, std::span<const TaskRunEnd> ends) {
  const std::int64_t now = wall_us();
  Delivered delivered;
  for (const TaskRunEnd& end : ends) {
    const std::int32_t subscription = end.result.subscription;
    {
      OUTBOX_TRY(const Statement run, connection.query(query::kIsRun, subscription, end.result.seq,
                                                       bytes_of(end.result.worker), end.token));
      if (!run.has_row()) continue;
    }
    RetryResult result = end.result;
    result.worker = {};
    OUTBOX_TRY(const Statement owner, connection.query(query::kGenerationOf, subscription));
    const std::int64_t generation = owner.has_row() ? owner.integer(0) : 0;
    Tally& tally = delivered[{subscription, generation}];
    Status status = settle_one(connection, result, now, tally);
    if (status && end.finish) status = finish_task(connection, *end.finish);
    if (!status) return status;
  }
  return append_delivered(connection, delivered, now);
}

Status finish_task(Connection& connection, const TaskFinish& finish) {
  const char* const outcome = finish.outcome == TaskFinish::Outcome::done ? "done" : "cancelled";
  Status status = finish.result
                      ? connection.run(query::kNoteTaskEnd, bytes_of(finish.id), outcome,
                                       *finish.result, storable_text(finish.reason), wall_us())
                      : connection.run(query::kNoteTaskEndWithoutResult, bytes_of(finish.id),
                                       outcome, storable_text(finish.reason), wall_us());
  // Of a task that was noted before, no event again.
  if (status && finish.event && connection.changes() > 0)
    status = insert_event(connection, *finish.event);
  if (!status || finish.unique_key.empty()) return status;
  return release_unique(connection, finish.id, true);
}

Status discard_row(Connection& connection, std::int64_t subscription, std::int64_t seq,
                   std::string_view actor, std::string_view reason, std::int64_t now) {
  Status status = drop_unique(connection, subscription, seq);
  if (status) status = connection.run(query::kDiscardParked, subscription, seq, actor, reason, now);
  if (!status) return status;
  return connection.run(query::kRemoveParked, subscription, seq);
}

Status order_parked_key(Connection& connection, std::int64_t subscription,
                        std::string_view aggregate_type, std::string_view aggregate_id) {
  // Events without a key stand alone.
  if (aggregate_id.empty()) return {};
  return connection.run(query::kOrderParkedKey, subscription, aggregate_type, aggregate_id,
                        wall_us());
}

Status order_all_parked_keys(Connection& connection, std::int64_t subscription) {
  OUTBOX_TRY(Statement row, connection.query(query::kUnsettledKeys, subscription));
  OUTBOX_TRY(const std::vector<Key> keys, keys_of(std::move(row)));
  return order_keys(connection, subscription, keys);
}

Result<std::vector<BlockedKey>> read_blocked_keys(Connection& connection, std::int64_t subscription,
                                                  bool dead_block) {
  OUTBOX_TRY(Statement row, connection.query(query::kBlockedKeys, subscription,
                                             static_cast<std::int64_t>(dead_block)));
  std::vector<BlockedKey> keys;
  while (row.has_row()) {
    keys.push_back({.aggregate_type = row.text(0),
                    .aggregate_id = row.text(1),
                    .events = static_cast<std::size_t>(row.integer(2)),
                    .running = row.is_null(3) ? std::nullopt : std::optional(row.integer(3))});
    if (Status status = row.next(); !status) return pass(status);
  }
  return keys;
}

namespace {

/// The rows with these seqs.
Status read_running(Connection& connection, std::int64_t subscription,
                    const std::vector<std::int64_t>& seqs, std::vector<RunningRow>& running) {
  for (const std::int64_t seq : seqs) {
    OUTBOX_TRY(const Statement row, connection.query(query::kParkedAt, subscription, seq));
    if (row.has_row()) running.push_back({.seq = seq, .state = parked_state_of(row.bytes(0))});
  }
  return {};
}

}  // namespace

Result<DueEvents> read_due(Connection& connection, std::int64_t subscription,
                           std::int64_t generation, const DueLimits& limits,
                           const std::vector<std::int64_t>* runs) {
  const std::int64_t now = wall_us();
  DueEvents due;
  // First: what ends in between is looked at again.
  if (runs != nullptr) {
    if (Status status = read_running(connection, subscription, *runs, due.running); !status)
      return pass(status);
  }
  auto memory = std::make_shared<EventMemory>(kFirstPiece);
  std::size_t bytes = 0;
  {
    OUTBOX_TRY(Statement row, connection.query(query::kDueParked, subscription, now,
                                               static_cast<std::int64_t>(limits.events),
                                               static_cast<std::int64_t>(limits.behind), generation,
                                               static_cast<std::int64_t>(limits.keys)));
    while (row.has_row()) {
      ParkedRow parked{.event = view_of(row)};
      const std::size_t size = size_of_texts(parked.event);
      if (!due.rows.empty() && bytes + size > kDueBytes) break;
      bytes += size;
      keep(parked.event, size, *memory);
      parked.state = parked_state_of(row.bytes(kState));
      parked.attempts = static_cast<std::size_t>(row.integer(kAttempts));
      parked.token = row.integer(kToken);
      due.rows.push_back(parked);
      if (Status status = row.next(); !status) return pass(status);
    }
  }
  OUTBOX_TRY(const Statement next, connection.query(query::kNextParked, subscription));
  if (next.has_row())
    due.next_in =
        std::chrono::milliseconds(std::max<std::int64_t>(next.integer(0) - now, 0) / 1000);
  due.storage = std::move(memory);
  return due;
}

}  // namespace outbox::store::sqlite
