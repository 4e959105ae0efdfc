#include "store/sqlite/parking.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"
#include "event/task.hpp"
#include "store/settlement.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/event_insert.hpp"
#include "store/sqlite/key_row.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/subscription_queries.hpp"
#include "store/stored_subscription.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

/// The most blocked keys that are released in one transaction.
constexpr std::int64_t kMostUnblocked = 1000;

std::int64_t due_at(std::int64_t now_us, std::chrono::milliseconds due_in) {
  return now_us + std::chrono::microseconds(due_in).count();
}

}  // namespace

Status check_owner(Connection& connection, std::int64_t subscription, std::int64_t generation) {
  OUTBOX_TRY(const Statement row, connection.query(query::kGenerationOf, subscription));
  if (row.has_row() && row.integer(0) == generation) return {};
  return fail(Errc::lease_lost, Remedy::reconnect,
              "sqlite: " + connection.file() + " has another owner");
}

namespace {

Result<bool> dead_block(Connection& connection, std::int64_t subscription) {
  OUTBOX_TRY(const Statement row, connection.query(query::kDeadBlock, subscription));
  return row.has_row();
}

/// The tally of the delivered events of each subscription and generation.
using Delivered = std::map<std::pair<std::int32_t, std::int64_t>, Tally>;

Status append_delivered(Connection& connection, const Delivered& delivered, std::int64_t now) {
  for (const auto& [owner, tally] : delivered) {
    if (tally.count == 0) continue;
    OUTBOX_TRY(connection.run(query::kAppendRetry, owner.first, owner.second, tally.count,
                              static_cast<std::int64_t>(tally.hash), now));
  }
  return {};
}

/// Notes that the task does not run any more. `over` says that it does not hold its unique key any
/// more, either.
Status release_unique(Connection& connection, const EventId& id, bool over) {
  Status status = over ? Status{} : connection.run(query::kEndReplaced, to_bytes(id), wall_us());
  if (status)
    status = connection.run(over ? query::kPassReplaced : query::kSetReplacedAside, to_bytes(id),
                            wall_us());
  if (status) status = connection.run(query::kStopUnique, to_bytes(id));
  if (status && over) status = connection.run(query::kEndUnique, to_bytes(id));
  if (status && over) status = connection.run(query::kHandBackUnique, to_bytes(id));
  return status;
}

/// Releases the unique key of a parked task that has one.
Status drop_unique(Connection& connection, std::int64_t subscription, std::int64_t seq) {
  EventId id;
  {
    OUTBOX_TRY(const Statement row, connection.query(query::kUniqueParked, subscription, seq));
    if (!row.has_row()) return {};
    id = to_id(row.bytes(0));
  }
  return release_unique(connection, id, true);
}

/// Handles that an event has become dead: a task gives up its unique key and writes the event that
/// it was asked to write then.
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
    if (const auto on_dead = event::read_on_dead(headers, arena)) {
      told = event::make_event(*on_dead, {.id = to_id(task.bytes(0)),
                                          .queue = event::parse_task_place(aggregate_type).queue,
                                          .type = type,
                                          .key = key,
                                          .attempts = static_cast<std::size_t>(task.integer(4)),
                                          .error = error});
    }
  }
  if (told) {
    OUTBOX_TRY(insert_event(connection, *told));
  }
  return drop_unique(connection, subscription, seq);
}

/// A parked event, and the row of its key.
struct Place {
  std::int64_t subscription{0};
  std::int64_t seq{0};
  ParkedFacts event;
  KeyRow key;

  [[nodiscard]] law::Key* key_or_null() { return key.key() ? &*key.key() : nullptr; }
};

/// Nullopt if the event is not parked.
Result<std::optional<Place>> find(Connection& connection, std::int64_t subscription,
                                  std::int64_t seq) {
  OUTBOX_TRY(auto event, read_facts(connection, subscription, seq));
  if (!event) return std::nullopt;
  OUTBOX_TRY(KeyRow key, KeyRow::read(connection, subscription, event->key));
  return Place{subscription, seq, std::move(*event), std::move(key)};
}

/// Removes an event whose end has been noted.
Status remove(Connection& connection, Place& place, bool by_person, std::int64_t now) {
  OUTBOX_TRY(connection.run(query::kRemoveParked, place.subscription, place.seq));
  OUTBOX_TRY(place.key.release(place.seq));
  return place.key.left(place.seq, place.event.facts.dead, by_person, now);
}

/// Removes a delivered event and counts it.
Status end_delivered(Connection& connection, const RetryResult& result, Place& place,
                     std::int64_t now, Tally& tally) {
  OUTBOX_TRY(connection.run(query::kEndParked, result.subscription, result.seq, "delivered",
                            static_cast<std::int64_t>(result.attempts), "", "", now));
  tally.add(event::id_hash(result.id));
  return remove(connection, place, false, now);
}

/// An event that waits has had no attempts.
Result<std::size_t> read_attempts(Place& place) {
  const law::Key* const key = place.key_or_null();
  if (place.event.facts.dead || key == nullptr) return place.event.facts.attempts;
  if (key->run_seq == place.seq) return key->attempts;
  OUTBOX_TRY(const auto first, place.key.first());
  return first == place.seq ? key->attempts : 0;
}

Status end_discarded(Connection& connection, Place& place, std::string_view actor,
                     std::string_view reason, bool by_person, std::int64_t now) {
  OUTBOX_TRY(const std::size_t attempts, read_attempts(place));
  Status status = drop_unique(connection, place.subscription, place.seq);
  if (status) {
    status = connection.run(query::kEndParked, place.subscription, place.seq, "discarded",
                            static_cast<std::int64_t>(attempts), actor, reason, now);
  }
  return status ? remove(connection, place, by_person, now) : status;
}

Status die(Connection& connection, const RetryResult& result, Place& place, std::int64_t now) {
  OUTBOX_TRY(const bool blocks, dead_block(connection, place.subscription));
  law::died(*place.key.key(), place.event.facts, place.seq, result.attempts,
            storable_text(result.error), blocks);
  Status status = write_facts(connection, place.subscription, place.seq, place.event.facts);
  if (status) status = place.key.left(place.seq, false, false, now);
  return status ? after_death(connection, place.subscription, place.seq) : status;
}

/// `counts` says whether a result other than an ack counts.
Status settle_one(Connection& connection, const RetryResult& result, Place& place, bool counts,
                  std::int64_t now, Tally& tally) {
  if (!result.state) return end_delivered(connection, result, place, now, tally);
  const law::Key* const key = place.key_or_null();
  const bool ends_run = key != nullptr && key->run_seq == place.seq &&  // else it runs on
                        *result.state != ParkedState::running;
  if (ends_run && key->cancelled_by) {
    const std::string by = *key->cancelled_by;
    const std::string reason = key->cancel_reason.value_or("");
    return end_discarded(connection, place, by, reason, false, now);
  }
  if (!counts) return {};
  if (*result.state == ParkedState::dead) return die(connection, result, place, now);
  OUTBOX_TRY(const auto first, place.key.first());
  law::reschedule(*place.key.key(), place.seq, first.value_or(place.seq), *result.state,
                  result.attempts, due_at(now, result.due_in), storable_text(result.error),
                  result.worker, now);
  Status status = place.key.write();
  if (status && *result.state == ParkedState::retrying)
    status = release_unique(connection, result.id, false);
  return status;
}

/// The key may have another event already, of which the relay did not know.
Status park_alive(Connection& connection, const ParkedEvent& event, KeyRow& key, std::int64_t now) {
  law::park(key.key(), event.seq, event.state, event.attempts, due_at(now, event.due_in),
            storable_text(event.error), event.worker, now);
  Status status = key.write();
  if (status && event.state == ParkedState::retrying)
    status = release_unique(connection, event.id, false);
  return status;
}

Status park_dead(Connection& connection, const ParkedEvent& event, bool blocks, KeyRow& key,
                 std::int64_t now) {
  law::park_dead(key.key(), event.seq, blocks);
  Status status = key.left(event.seq, true, false, now);
  return status ? after_death(connection, event.subscription, event.seq) : status;
}

Status park_one(Connection& connection, const ParkedEvent& event, std::int64_t now) {
  OUTBOX_TRY(KeyRow key, KeyRow::read(connection, event.subscription, event.key));
  key.takes(event.seq);
  law::Facts facts;
  if (event.state == ParkedState::dead) {
    OUTBOX_TRY(const bool blocks, dead_block(connection, event.subscription));
    facts = {.dead = true,
             .blocks = blocks,
             .attempts = event.attempts,
             .error = storable_text(event.error)};
    if (key.key()) {
      facts.token = key.key()->token;
      facts.version = key.key()->version;
    }
  }
  OUTBOX_TRY(connection.run(query::kPark, event.subscription, event.seq,
                            static_cast<std::int64_t>(event.key), std::int64_t{facts.dead},
                            static_cast<std::int64_t>(facts.attempts), facts.token, facts.version,
                            facts.error, now, std::int64_t{facts.blocks}));
  if (connection.changes() == 0) {
    return fail(Errc::not_found, Remedy::reconnect,
                "sqlite: the event with seq " + std::to_string(event.seq) +
                    " that was to be parked is gone from the log",
                "reading starts again from the settlements, without what was deleted; never "
                "delete from the table outbox_event by hand");
  }
  return facts.dead ? park_dead(connection, event, facts.blocks, key, now)
                    : park_alive(connection, event, key, now);
}

/// Checks the owner once for many events in a row of the same subscription and generation.
class OwnerCheck {
 public:
  explicit OwnerCheck(Connection& connection) : connection_(connection) {}

  [[nodiscard]] Status operator()(std::int32_t subscription, std::int64_t generation) {
    if (subscription == subscription_ && generation == generation_) return {};
    subscription_ = subscription;
    generation_ = generation;
    return check_owner(connection_, subscription, generation);
  }

 private:
  Connection& connection_;
  std::int32_t subscription_{-1};
  std::int64_t generation_{-1};
};

}  // namespace

Status park_events(Connection& connection, std::span<const ParkedEvent> events) {
  const std::int64_t now = wall_us();
  OwnerCheck check(connection);
  // What the relay knows of a key is about the first of its events, so the events are parked in
  // order.
  std::vector<const ParkedEvent*> in_order;
  in_order.reserve(events.size());
  for (const ParkedEvent& event : events) in_order.push_back(&event);
  std::sort(in_order.begin(), in_order.end(), [](const auto* a, const auto* b) {
    return std::tie(a->subscription, a->seq) < std::tie(b->subscription, b->seq);
  });
  for (const ParkedEvent* event : in_order) {
    OUTBOX_TRY(check(event->subscription, event->generation));
    OUTBOX_TRY(park_one(connection, *event, now));
  }
  return {};
}

Status settle_parked(Connection& connection, std::span<const RetryResult> results) {
  const std::int64_t now = wall_us();
  OwnerCheck check(connection);
  Delivered delivered;
  for (const RetryResult& result : results) {
    OUTBOX_TRY(check(result.subscription, result.generation));
    OUTBOX_TRY(auto place, find(connection, result.subscription, result.seq));
    if (!place || place->event.id != result.id) continue;  // a person removed or edited it
    const bool counts = result.state && law::counts(place->key.key(), place->event.facts,
                                                    result.version, *result.state);
    Tally& tally = delivered[{result.subscription, result.generation}];
    OUTBOX_TRY(settle_one(connection, result, *place, counts, now, tally));
  }
  return append_delivered(connection, delivered, now);
}

Status insert_event(Connection& connection, const Event& event) {
  OUTBOX_TRY(const Statement insert, connection.statement(query::kInsertEvent));
  const EventId id = event.id.value_or(EventId::generate());
  return insert_events(insert.raw(), std::span(&event, 1), std::span(&id, 1));
}

namespace {

/// Whether the run has not ended yet. If it has, its event runs again, or does not run.
bool is_run(Place& place, const TaskRunEnd& end) {
  const law::Key* const key = place.key_or_null();
  return key != nullptr && key->runs(place.seq) && *key->worker == end.result.worker &&
         key->token == end.token;
}

Result<std::int64_t> read_generation(Connection& connection, std::int64_t subscription) {
  OUTBOX_TRY(const Statement owner, connection.query(query::kGenerationOf, subscription));
  return owner.has_row() ? owner.integer(0) : 0;
}

}  // namespace

Status end_runs(Connection& connection, std::span<const TaskRunEnd> ends) {
  const std::int64_t now = wall_us();
  Delivered delivered;
  for (const TaskRunEnd& end : ends) {
    const RetryResult& result = end.result;
    OUTBOX_TRY(auto place, find(connection, result.subscription, result.seq));
    if (!place || place->event.id != result.id || !is_run(*place, end)) continue;
    OUTBOX_TRY(const std::int64_t generation, read_generation(connection, result.subscription));
    Tally& tally = delivered[{result.subscription, generation}];
    Status status = settle_one(connection, result, *place, true, now, tally);
    if (status && end.finish) status = finish_task(connection, *end.finish);
    if (!status) return status;
  }
  return append_delivered(connection, delivered, now);
}

Status finish_task(Connection& connection, const TaskFinish& finish) {
  const char* const outcome = finish.outcome == TaskFinish::Outcome::done ? "done" : "cancelled";
  Status status = finish.result
                      ? connection.run(query::kNoteTaskEnd, to_bytes(finish.id), outcome,
                                       *finish.result, storable_text(finish.reason), wall_us())
                      : connection.run(query::kNoteTaskEndWithoutResult, to_bytes(finish.id),
                                       outcome, storable_text(finish.reason), wall_us());
  // A task whose end was noted before writes no event again.
  if (status && finish.event && connection.changes() > 0)
    status = insert_event(connection, *finish.event);
  if (!status || finish.unique_key.empty()) return status;
  return release_unique(connection, finish.id, true);
}

Result<bool> discard_event(Connection& connection, std::int64_t subscription, std::int64_t seq,
                           std::string_view actor, std::string_view reason, std::int64_t now) {
  OUTBOX_TRY(auto place, find(connection, subscription, seq));
  if (!place) return false;
  const law::Key* const key = place->key_or_null();
  const bool runs = key != nullptr && key->runs(seq);
  Status status = runs ? connection.run(query::kCancelRun, subscription,
                                        static_cast<std::int64_t>(place->event.key), actor, reason)
                       : end_discarded(connection, *place, actor, reason, true, now);
  return status ? Result<bool>(true) : pass(status);
}

Result<std::vector<ReleasedKey>> released_keys(Connection& connection,
                                               std::span<const ParkedEvent> parked,
                                               std::span<const RetryResult> results) {
  std::set<ReleasedKey> keys;
  for (const ParkedEvent& event : parked) keys.insert({event.subscription, event.key});
  for (const RetryResult& result : results) keys.insert({result.subscription, result.key});
  std::vector<ReleasedKey> released;
  for (const ReleasedKey& key : keys) {
    OUTBOX_TRY(const Statement row, connection.query(query::kHasParkedKey, key.subscription,
                                                     static_cast<std::int64_t>(key.key)));
    if (!row.has_row()) released.push_back(key);
  }
  return released;
}

Status forget_parked_after(Connection& connection, std::int64_t subscription, std::int64_t seq) {
  const std::int64_t now = wall_us();
  std::map<std::uint64_t, std::vector<std::int64_t>> removed;  // by key
  {
    OUTBOX_TRY(Statement row, connection.query(query::kParkedAfter, subscription, seq));
    while (row.has_row()) {
      removed[static_cast<std::uint64_t>(row.integer(0))].push_back(row.integer(1));
      OUTBOX_TRY(row.next());
    }
  }
  OUTBOX_TRY(connection.run(query::kForgetParkedAfter, subscription, seq));
  for (const auto& [number, seqs] : removed) {
    OUTBOX_TRY(KeyRow key, KeyRow::read(connection, subscription, number));
    for (const std::int64_t one : seqs) {
      OUTBOX_TRY(key.release(one));
      OUTBOX_TRY(key.left(one, false, true, now));
    }
  }
  return {};
}

Status unblock_keys(Connection& connection, std::int64_t subscription) {
  for (;;) {
    std::vector<std::uint64_t> blocked;
    {
      OUTBOX_TRY(Statement row,
                 connection.query(query::kKeysBlockedByDead, subscription, kMostUnblocked));
      while (row.has_row()) {
        blocked.push_back(static_cast<std::uint64_t>(row.integer(0)));
        OUTBOX_TRY(row.next());
      }
    }
    if (blocked.empty()) return {};
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection));
    const std::int64_t now = wall_us();
    for (const std::uint64_t number : blocked) {
      OUTBOX_TRY(KeyRow key, KeyRow::read(connection, subscription, number));
      OUTBOX_TRY(const auto first, key.first());
      law::unblock(key.key(), first, now);
      Status status = key.write();
      if (status) {
        status = connection.run(query::kUnblock, subscription, static_cast<std::int64_t>(number));
      }
      if (!status) return status;
    }
    OUTBOX_TRY(transaction.commit());
  }
}

}  // namespace outbox::store::sqlite
