#include "store/postgres/parking.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"
#include "store/postgres/event_row.hpp"
#include "store/stored_subscription.hpp"
#include "store/text.hpp"

namespace outbox::store::postgres {
namespace {

/// The most bytes of payloads and headers that are read at once.
constexpr std::int64_t kDueBytes = std::int64_t{8} << 20U;

enum ParkedColumn : int { kParkedKey = kFirstExtra, kParkedVersion, kParkedAttempts, kParkedToken };
/// The most blocked keys that are released in one transaction.
constexpr std::int64_t kMostUnblocked = 1000;

/// The columns of the functions park_events() and settle_parked().
struct Columns {
  ArrayParam seqs{ArrayParam::Element::int8};
  ArrayParam states{ArrayParam::Element::text};
  ArrayParam attempts{ArrayParam::Element::int8};
  ArrayParam due{ArrayParam::Element::int8};
  ArrayParam errors{ArrayParam::Element::text};
  ArrayParam workers{ArrayParam::Element::uuid};
  ArrayParam keys{ArrayParam::Element::int8};
  ArrayParam hashes{ArrayParam::Element::int8};
  ArrayParam ids{ArrayParam::Element::uuid};

  template <class Entry>
  void add(const Entry& entry) {
    seqs.add(entry.seq);
    attempts.add(static_cast<std::int64_t>(entry.attempts));
    due.add(std::int64_t{entry.due_in.count()});
    errors.add(storable_text(entry.error));
    keys.add(static_cast<std::int64_t>(entry.key));
    hashes.add(static_cast<std::int64_t>(event::id_hash(entry.id)));
    ids.add(entry.id);
    entry.worker == EventId{} ? workers.add_null() : workers.add(entry.worker);
  }
  Params params(std::int32_t subscription, std::int64_t generation) {
    return {Param(subscription), Param(generation), seqs.take(),    states.take(), attempts.take(),
            due.take(),          errors.take(),     workers.take(), keys.take()};
  }
};

/// A subscription, and a generation.
using Owner = std::pair<std::int32_t, std::int64_t>;
using Owned = std::map<Owner, Columns>;

void hold_owned_lanes(Connection& connection, const std::set<Owner>& owners) {
  ArrayParam subscriptions(ArrayParam::Element::int8);
  ArrayParam generations(ArrayParam::Element::int8);
  for (const auto& [subscription, generation] : owners) {
    subscriptions.add(std::int64_t{subscription});
    generations.add(generation);
  }
  connection.send(&Queries::hold_own_lanes, {subscriptions.take(), generations.take()});
}

void ask_for_released(Connection& connection, std::span<const ParkedEvent> parked,
                      std::span<const RetryResult> results) {
  std::set<ReleasedKey> keys;
  for (const ParkedEvent& event : parked) keys.insert({event.subscription, event.key});
  for (const RetryResult& result : results) keys.insert({result.subscription, result.key});
  if (keys.empty()) return;
  ArrayParam subscriptions(ArrayParam::Element::int8);
  ArrayParam numbers(ArrayParam::Element::int8);
  for (const ReleasedKey& key : keys) {
    subscriptions.add(std::int64_t{key.subscription});
    numbers.add(static_cast<std::int64_t>(key.key));
  }
  connection.send(&Queries::released_keys, {subscriptions.take(), numbers.take()});
}

}  // namespace

void send_rows(Connection& connection, std::span<const ParkedEvent> parked,
               std::span<const RetryResult> results) {
  Owned to_park;
  for (const ParkedEvent& event : parked) {
    Columns& columns = to_park[{event.subscription, event.generation}];
    columns.add(event);
    columns.states.add(to_string(event.state));
  }
  struct Settled : Columns {
    ArrayParam versions{ArrayParam::Element::int8};
  };
  std::map<Owner, Settled> to_settle;
  for (const RetryResult& result : results) {
    Settled& columns = to_settle[{result.subscription, result.generation}];
    columns.add(result);
    columns.versions.add(result.version);
    result.state ? columns.states.add(to_string(*result.state)) : columns.states.add_null();
  }
  std::set<Owner> owners;
  for (const auto& [owner, columns] : to_park) owners.insert(owner);
  for (const auto& [owner, columns] : to_settle) owners.insert(owner);
  if (to_park.size() + to_settle.size() > 1) hold_owned_lanes(connection, owners);
  for (const Owner& owner : owners) {
    if (const auto park = to_park.find(owner); park != to_park.end())
      connection.send(&Queries::park, park->second.params(owner.first, owner.second));
    const auto settle = to_settle.find(owner);
    if (settle == to_settle.end()) continue;
    Params params = settle->second.params(owner.first, owner.second);
    params.push_back(settle->second.hashes.take());
    params.push_back(settle->second.ids.take());
    params.push_back(settle->second.versions.take());
    connection.send(&Queries::settle_parked, std::move(params));
  }
  ask_for_released(connection, parked, results);
}

std::vector<ReleasedKey> released_keys(const Rows& rows) {
  auto keys = rows.list([&](int row) {
    return ReleasedKey{.subscription = static_cast<std::int32_t>(rows.int8(row, 0)),
                       .key = static_cast<std::uint64_t>(rows.int8(row, 1))};
  });
  std::sort(keys.begin(), keys.end());
  return keys;
}

void send_run_ends(Connection& connection, std::span<const TaskRunEnd> ends) {
  struct Ends {
    Columns columns;
    ArrayParam tokens{ArrayParam::Element::int8};
  };
  ArrayParam subscriptions(ArrayParam::Element::int8);
  ArrayParam seqs(ArrayParam::Element::int8);
  std::map<std::int32_t, Ends> all;
  for (const TaskRunEnd& end : ends) {
    subscriptions.add(std::int64_t{end.result.subscription});
    seqs.add(end.result.seq);
    Ends& of = all[end.result.subscription];
    of.columns.add(end.result);
    end.result.state ? of.columns.states.add(to_string(*end.result.state))
                     : of.columns.states.add_null();
    of.tokens.add(end.token);
  }
  connection.send(&Queries::hold_lanes_of_runs, {subscriptions.take(), seqs.take()});
  for (auto& [subscription, of] : all) {
    Params params = of.columns.params(subscription, 0);
    params.erase(params.begin() + 1);  // no generation
    params.push_back(of.columns.hashes.take());
    params.push_back(of.columns.ids.take());
    params.push_back(of.tokens.take());
    connection.send(&Queries::end_runs, std::move(params));
  }
}

Result<ParkedKeys> read_parked_keys(Connection& connection, std::int32_t subscription,
                                    LaneMask lanes, bool dead_block) {
  const auto mask = static_cast<std::int64_t>(lanes);
  for (bool blocked = !dead_block; blocked;) {
    connection.send(&Queries::unblock_parked,
                    {Param(subscription), Param(mask), Param(kMostUnblocked)});
    OUTBOX_TRY(const auto results, connection.finish());
    blocked = results.back().int8(0, 0) > 0;
  }
  connection.send(&Queries::plan_settings);
  connection.send(&Queries::parked_keys, {Param(subscription), Param(mask)});
  connection.send(&Queries::count_live, {Param(subscription), Param(mask)});
  OUTBOX_TRY(const auto results, connection.finish());
  const Rows& rows = results[1];
  ParkedKeys keys{.keys = {}, .live = static_cast<std::size_t>(results.back().int8(0, 0))};
  keys.keys.reserve(static_cast<std::size_t>(rows.size()));
  for (int row = 0; row < rows.size(); ++row)
    keys.keys.push_back(
        {.key = static_cast<std::uint64_t>(rows.int8(row, 0)), .run_seq = rows.int8(row, 1)});
  return keys;
}

namespace {

std::vector<AskedState> read_states(const Rows& rows) {
  return rows.list([&](int row) {
    return AskedState{.seq = rows.int8(row, 0),
                      .state = rows.is_null(row, 1)
                                   ? std::nullopt
                                   : std::optional(parse_parked_state(rows.bytes(row, 1))),
                      .key_left = rows.boolean(row, 2)};
  });
}

Params make_params(std::int32_t subscription, std::span<const AskedRow> asked) {
  ArrayParam seqs(ArrayParam::Element::int8);
  ArrayParam keys(ArrayParam::Element::int8);
  for (const AskedRow& row : asked) {
    seqs.add(row.seq);
    keys.add(static_cast<std::int64_t>(row.key));
  }
  return {Param(subscription), seqs.take(), keys.take()};
}

}  // namespace

Result<DueEvents> read_due(Connection& connection, std::int32_t subscription,
                           const Holding& holding, const DueLimits& limits,
                           std::span<const AskedRow> asked) {
  const auto mask = static_cast<std::int64_t>(holding.lanes);
  // Compiling the statement would take longer than running it; and its plan must not depend on how
  // many rows there once were.
  connection.send(&Queries::plan_settings);
  // The states of runs are read before the rows: when another worker ends a run in between, its key
  // is among the due rows. In the other order it would be in neither answer.
  if (!asked.empty()) connection.send(&Queries::asked_parked, make_params(subscription, asked));
  connection.send(&Queries::due_parked,
                  {Param(subscription), Param(static_cast<std::int64_t>(limits.events)),
                   Param(static_cast<std::int64_t>(limits.behind)), Param(kDueBytes), Param(mask),
                   Param(holding.generation), Param(static_cast<std::int64_t>(limits.keys))});
  connection.send(&Queries::next_parked, {Param(subscription), Param(mask)});
  OUTBOX_TRY(auto results, connection.finish());
  DueEvents due;
  if (!asked.empty()) due.asked = read_states(results[1]);
  if (const Rows& next = results.back(); !next.empty())
    due.next_in = std::chrono::milliseconds(next.int8(0, 0));
  const auto rows = std::make_shared<const Rows>(std::move(results[results.size() - 2]));
  for (int row = 0; row < rows->size(); ++row) {
    ParkedRow parked{.event = read_view(*rows, row)};
    add_parts(parked.event, rows->bytes(row, kPayload), rows->bytes(row, kHeaders));
    parked.key = static_cast<std::uint64_t>(rows->int8(row, kParkedKey));
    parked.version = rows->int8(row, kParkedVersion);
    parked.attempts = static_cast<std::size_t>(rows->int4(row, kParkedAttempts));
    parked.token = rows->int8(row, kParkedToken);
    due.rows.push_back(parked);
  }
  due.storage = rows;
  return due;
}

}  // namespace outbox::store::postgres
