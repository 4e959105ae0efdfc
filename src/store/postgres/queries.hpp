// Every SQL statement of the program on PostgreSQL, by name. The text, with the purpose and the index of each, is in
// queries.cpp. Parameters are cast in the text ($1::bigint); results are binary.
#pragma once

#include <string_view>

#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

/// Made once per store; its parts share it.
struct Queries {
  /// `schema`: not quoted, checked by check_schema_name().
  explicit Queries(std::string_view schema);

  // Transactions.
  Query begin;
  Query commit;
  Query limits;     ///< How long this transaction may wait and be idle.
  Query no_limits;  ///< This transaction may last.
  Query flushed;    ///< This transaction waits for the disk, whatever the default is.

  // Schema (schema.cpp).
  Query find_schema;
  Query migrations;
  Query pin_search_path;  ///< For this transaction.
  Query lock_migration;
  Query record_migration;
  Query may_read;
  Query condition;

  // Writing (insert.cpp).
  Query insert_event;
  Query insert_event_unlocked;
  Query insert_events;
  Query lock_keys;
  Query backend;

  // Catalog.
  Query identity;
  Query subscriptions;
  Query find_subscription;
  Query create_subscription;
  Query first_settlement;
  Query change_subscription;
  Query pause;
  Query resume;
  Query stop;
  Query report_trouble;
  Query cursors;
  Query plan_settings;
  Query pending_drained;
  Query pending_begun;
  Query totals;
  Query relays;

  // Membership.
  Query join;
  Query heartbeat;
  Query heartbeat_by_id;
  Query owner;
  Query lock_owner;
  Query lock_lanes;
  Query remove_member;
  Query take_lanes;
  Query claim;
  Query release_lanes;

  // Wake-up.
  Query wake_channel;
  Query arm;
  Query disarm;
  Query ping;

  // Marks (mark.cpp).
  Query name_incarnation;  ///< Before it is first read.
  Query sequence;          ///< Its value, for a mark, and the incarnation of the server.
  Query mark;              ///< In a transaction that waits for the disk.

  // Settling (progress.cpp).
  Query flushed_here;     ///< This transaction's commit waits for the disk of this server.
  Query settle_settings;  ///< Whether it does; and this transaction reads by index.
  Query append;

  // Maintenance.
  Query make_partitions;
  Query remove_silent;
};

/// For a session of our own, as soon as it is opened.
[[nodiscard]] const Query& no_session_limits();

/// The channel's name cannot be a parameter.
[[nodiscard]] Query listen(std::string_view channel);

/// Reading the log (reader.cpp).
struct ReadQueries {
  // Page 1 of a pair that ends in the present: rows and S2 in one statement, so that its own snapshot is S2.
  Query present;       ///< S1 has transactions in progress: two streams, merged by seq.
  Query present_lean;  ///< S1 has none: one stream.
  // A page of a pair whose S2 is known, bounded above by xmax(S2) and by the value of the sequence taken with S2.
  Query bounded;
  Query bounded_lean;
  Query big_parts;  ///< Payloads and headers of events that a page left out because of their size.
  Query wal_positions;   ///< How far the WAL is inserted and flushed, and the incarnation.
  Query force_flush;     ///< A commit of our own, in a transaction that waits for the disk.
  Query marks;           ///< The newest marks of every subscription.
  Query settings_check;  ///< Whether the plan settings are in force already.
  Query settings;        ///< Puts them in force for one transaction.
};

/// `schema`: not quoted. Without `wal_functions` (some managed services refuse them) the positions are null and every barrier
/// is forced.
[[nodiscard]] ReadQueries read_queries(std::string_view schema, bool wal_functions = true);

/// Payloads and headers above this are left out of a page and fetched separately, so that it cannot be arbitrarily large.
inline constexpr int kBigPart = 16384;

}  // namespace outbox::store::postgres
