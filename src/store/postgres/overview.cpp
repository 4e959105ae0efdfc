#include "store/postgres/overview.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "event/time_text.hpp"
#include "store/postgres/snapshot.hpp"
#include "store/postgres/strands.hpp"
#include "store/stored_subscription.hpp"

namespace outbox::store::postgres {
namespace {

/// Subscriptions at one place, as after their creation, have the same events ahead of them, which
/// are counted once.
using Place = std::tuple<LaneMask, std::string, std::string, std::int64_t>;

Place to_place(const Strand& strand) {
  const Cursor& cursor = strand.cursor;
  return {strand.lanes, cursor.s1, cursor.s2, cursor.drained() ? -1 : cursor.position};
}

using Counts = std::map<Place, Rows>;

/// The first answers after those of BEGIN and the settings.
constexpr std::size_t kFirstRead = 3;
constexpr std::size_t kFirstCount = 2;
constexpr std::size_t kPerSubscription = 3;  ///< The number of answers for each subscription.

/// Reads for each subscription its cursors with totals, its last settlements and its parked events.
Result<std::vector<Rows>> read_all(Connection& connection,
                                   const std::vector<SubscriptionRow>& rows) {
  connection.send(&Queries::begin);
  connection.send(&Queries::plan_settings);
  connection.send(&Queries::plan_once);
  for (const SubscriptionRow& row : rows) {
    connection.send(&Queries::standing, {row.id});
    connection.send(&Queries::last, {row.id});
    connection.send(connection.queries().of(&sql::Statements::count_parked), {row.id});
  }
  connection.send(&Queries::commit);
  return connection.finish();
}

Result<Counts> count_all(Connection& connection, const std::vector<std::vector<Strand>>& strands,
                         std::int64_t limit) {
  std::vector<Place> places;
  std::vector<PendingQuery> queries;
  Counts counts;
  for (const auto& of_subscription : strands) {
    for (const Strand& strand : of_subscription) {
      if (!counts.try_emplace(to_place(strand)).second) continue;
      places.push_back(to_place(strand));
      OUTBOX_TRY(queries.emplace_back(), pending_query(strand, limit));
    }
  }
  connection.send(&Queries::begin);
  connection.send(&Queries::plan_settings);
  for (PendingQuery& one : queries) connection.send(one.query, std::move(one.params));
  connection.send(&Queries::commit);
  OUTBOX_TRY(std::vector<Rows> answers, connection.finish());
  for (std::size_t i = 0; i < places.size(); ++i)
    counts[places[i]] = std::move(answers[kFirstCount + i]);
  return counts;
}

SubscriptionProgress to_progress(std::int32_t id, const std::vector<Strand>& strands,
                                 const Counts& counts, std::int64_t pending_limit) {
  SubscriptionProgress progress;
  progress.id = id;
  std::int64_t oldest_us = std::numeric_limits<std::int64_t>::max();
  for (const Strand& strand : strands) {
    progress.generation = std::max(progress.generation, strand.generation);
    add_pending(counts.at(to_place(strand)), progress, oldest_us);
  }
  progress.cap_pending(pending_limit);
  if (progress.pending > 0) progress.oldest_pending_at = event::time_text(oldest_us);
  return progress;
}

}  // namespace

Result<PendingQuery> pending_query(const Strand& strand, std::int64_t limit) {
  const Cursor& cursor = strand.cursor;
  OUTBOX_TRY(const Snapshot s1, parse_snapshot(cursor.s1));
  OUTBOX_TRY(const Snapshot s2, parse_snapshot(cursor.drained() ? cursor.s1 : cursor.s2));
  const auto lanes = static_cast<std::int64_t>(strand.lanes);
  if (cursor.drained()) {
    return PendingQuery{
        .query = &Queries::pending_drained,
        .params = {std::to_string(s1.xmax), Param::xid8_array(s1.xip), lanes, limit}};
  }
  return PendingQuery{.query = &Queries::pending_begun,
                      .params = {cursor.s1, std::to_string(s1.xmin), lanes, limit, cursor.position,
                                 std::to_string(s2.xmax), Param::xid8_array(s2.xip)}};
}

void add_pending(const Rows& counted, SubscriptionProgress& progress, std::int64_t& oldest_us) {
  progress.pending += counted.int8(0, 0);
  if (counted.is_null(0, 1)) return;
  oldest_us = std::min(oldest_us, counted.time_us(0, 1));
  progress.lag = std::max(progress.lag, std::chrono::microseconds(counted.int8(0, 2)));
}

void add_totals(const Rows& cursors, const Rows& last, SubscriptionProgress& progress) {
  enum Column : int { kAcked = 7, kFiltered, kSettledAt };  // behind those of strands.cpp
  progress.acked = last.int8(0, 0);
  progress.filtered = 0;
  progress.last_settled_at = last.text(0, 1);
  for (int row = 0; row < cursors.size(); ++row) {
    progress.acked += cursors.int8(row, kAcked);
    progress.filtered += cursors.int8(row, kFiltered);
    progress.last_settled_at = std::max(progress.last_settled_at, cursors.text(row, kSettledAt));
  }
}

Result<std::vector<SubscriptionOverview>> make_overview(Connection& connection,
                                                        std::vector<SubscriptionRow> rows,
                                                        std::int64_t pending_limit) {
  OUTBOX_TRY(const std::vector<Rows> read, read_all(connection, rows));
  std::vector<std::vector<Strand>> strands;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Rows& cursors = read[kFirstRead + kPerSubscription * i];
    if (cursors.empty()) return no_cursor(rows[i].spec.name);
    OUTBOX_TRY(strands.emplace_back(), to_strands(cursors));
  }
  OUTBOX_TRY(const auto counts, count_all(connection, strands, pending_limit + 1));
  std::vector<SubscriptionOverview> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SubscriptionOverview& one = all.emplace_back();
    one.row = std::move(rows[i]);
    one.progress = to_progress(one.row.id, strands[i], counts, pending_limit);
    add_totals(read[kFirstRead + kPerSubscription * i], read[kFirstRead + kPerSubscription * i + 1],
               one.progress);
    const Rows& parked = read[kFirstRead + kPerSubscription * i + 2];
    one.parked = {
        .retrying = parked.int8(0, 0), .waiting = parked.int8(0, 1), .dead = parked.int8(0, 2)};
  }
  return all;
}

}  // namespace outbox::store::postgres
