// The statements that rename, reset and drop subscriptions (docs/design/subscriptions.md), as in
// queries.hpp.
#pragma once

#include <string_view>

namespace outbox::store::sqlite::query {

// ?1 id, ?2 now.
inline constexpr std::string_view kNoteDropped =
    "/* note a dropped subscription */ INSERT INTO outbox_dropped (subscription, at) VALUES (?1, ?2)";
// These two take a number that no subscription had before.
inline constexpr std::string_view kRaiseIds =
    "/* take a number */ UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'outbox_subscription'";
inline constexpr std::string_view kNewestId =
    "/* read a number */ SELECT seq FROM sqlite_sequence WHERE name = 'outbox_subscription'";

// ?1 id, ?2 the new one.
inline constexpr std::string_view kRenumber =
    "/* reset subscription */ UPDATE outbox_subscription SET id = ?2, config_version = config_version + 1, trouble = '',"
    " trouble_since = '', trouble_relay = '', changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?1";
inline constexpr std::string_view kMoveParked =
    "/* keep parked */ UPDATE outbox_parked SET subscription = ?2 WHERE subscription = ?1";
inline constexpr std::string_view kMoveParkedKeys =
    "/* keep parked keys */ UPDATE outbox_parked_key SET subscription = ?2 WHERE subscription = ?1";
inline constexpr std::string_view kMoveEnds =
    "/* keep ends */ UPDATE outbox_parked_end SET subscription = ?2 WHERE subscription = ?1";
inline constexpr std::string_view kMoveReplays =
    "/* keep replays */ UPDATE outbox_replay SET subscription = ?2 WHERE subscription = ?1";
inline constexpr std::string_view kMoveFormerNames =
    "/* keep former names */ UPDATE outbox_former_name SET subscription = ?2 WHERE subscription = ?1";

// ?1 id, ?2 seq. The events beyond it that are in the log are sent again. Primary keys.
inline constexpr std::string_view kParkedAfter =
    "/* list parked to be removed */ SELECT key, seq FROM outbox_parked WHERE subscription = ?1 AND seq > ?2"
    " AND EXISTS (SELECT 1 FROM outbox_event e WHERE e.seq = outbox_parked.seq) ORDER BY key, seq";
inline constexpr std::string_view kForgetParkedAfter =
    "/* remove parked */ DELETE FROM outbox_parked WHERE subscription = ?1 AND seq > ?2"
    " AND EXISTS (SELECT 1 FROM outbox_event e WHERE e.seq = outbox_parked.seq)";
inline constexpr std::string_view kForgetEndsAfter =
    "/* remove ends */ DELETE FROM outbox_parked_end WHERE subscription = ?1 AND seq > ?2"
    " AND EXISTS (SELECT 1 FROM outbox_event e WHERE e.seq = outbox_parked_end.seq)";

// ?1 id, ?2 position, ?3 now, ?4 to ?7 how many events are parked already, and how many were
// delivered by retries, each with its hash sum: the ledger begins with these.
inline constexpr std::string_view kBeginAgain =
    "/* write first cursor */ INSERT INTO outbox_settlement"
    " (subscription, kind, generation, config_version, from_position, position, at, parked, parked_hash, acked, acked_hash)"
    " SELECT id, 'reset', 0, config_version, ?2, ?2, ?3, ?4, ?5, ?6, ?7 FROM outbox_subscription WHERE id = ?1";

inline constexpr std::string_view kDropRun =
    "/* drop run */ DELETE FROM outbox_run WHERE subscription = ?1";

// ?1 from, ?2 to, ?3 whether headers are counted apart. By the rowid.
inline constexpr std::string_view kCountByType =
    "/* count events */ SELECT aggregate_type, event_type, CASE WHEN ?3 THEN headers ELSE '' END, count(*) FROM outbox_event"
    " WHERE seq > ?1 AND seq <= ?2 GROUP BY 1, 2, 3";
// ?1 id, ?2 seq.
inline constexpr std::string_view kCountParkedAfter =
    "/* count parked */ SELECT count(*) FILTER (WHERE again), count(*) FILTER (WHERE again AND corrected),"
    " count(*) FILTER (WHERE NOT again), (SELECT count(*) FROM outbox_parked_end d WHERE d.subscription = ?1"
    " AND d.outcome = 'discarded' AND d.seq > ?2 AND EXISTS (SELECT 1 FROM outbox_event e WHERE e.seq = d.seq))"
    " FROM (SELECT p.seq > ?2 AND EXISTS (SELECT 1 FROM outbox_event e WHERE e.seq = p.seq) AS again,"
    " EXISTS (SELECT 1 FROM outbox_parked_end x WHERE x.subscription = ?1 AND x.seq = p.seq AND x.outcome = 'edited') AS corrected"
    " FROM outbox_parked p WHERE p.subscription = ?1)";

// ?1 rows. They remove what dropped subscriptions have left: outbox_settlement_newest,
// outbox_parked_end_seq, primary key.
inline constexpr std::string_view kRemoveDropped =
    "/* remove dropped settlements */ DELETE FROM outbox_settlement WHERE id IN (SELECT t.id FROM outbox_dropped d"
    " CROSS JOIN outbox_settlement t ON t.subscription = d.subscription LIMIT ?1)";
inline constexpr std::string_view kRemoveDroppedEnds =
    "/* remove dropped ends */ DELETE FROM outbox_parked_end WHERE rowid IN (SELECT e.rowid FROM outbox_dropped d"
    " CROSS JOIN outbox_parked_end e ON e.subscription = d.subscription LIMIT ?1)";
inline constexpr std::string_view kRemoveDroppedSums =
    "/* remove dropped sums */ DELETE FROM outbox_pruned WHERE subscription IN (SELECT subscription FROM outbox_dropped LIMIT ?1)";
// ?1 rows, ?2 the time before which they were dropped. Nobody writes for these subscriptions any
// more, and nothing of them is left.
inline constexpr std::string_view kForgetDropped =
    "/* forget dropped */ DELETE FROM outbox_dropped WHERE subscription IN"
    " (SELECT d.subscription FROM outbox_dropped d WHERE d.at < ?2"
    " AND NOT EXISTS (SELECT 1 FROM outbox_settlement t WHERE t.subscription = d.subscription)"
    " AND NOT EXISTS (SELECT 1 FROM outbox_parked_end e WHERE e.subscription = d.subscription)"
    " AND NOT EXISTS (SELECT 1 FROM outbox_pruned p WHERE p.subscription = d.subscription) LIMIT ?1)";

}  // namespace outbox::store::sqlite::query
