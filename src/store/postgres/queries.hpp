// Every SQL statement of the program on PostgreSQL, by name; those of the reader are in read_queries.hpp, those of the
// settler in progress.cpp. The text, with the purpose and the index of each, is in queries.cpp. Parameters are cast where
// they stand ($1::bigint), results are asked for in binary.
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
  Query
      flushed;  ///< This transaction's commit waits for the disk, whatever the database's default is.

  // Schema (schema.cpp).
  Query find_schema;
  Query migrations;
  Query lock_migration;
  Query record_migration;
  Query condition;

  // Writing (insert.cpp).
  Query insert_event;
  Query insert_event_unlocked;
  Query insert_events;
  Query lock_keys;
  Query backend;

  // Catalog.
  Query subscriptions;
  Query find_subscription;
  Query create_subscription;
  Query first_settlement;
  Query change_subscription;
  Query pause;
  Query resume;
  Query stop;
  Query cursors;
  Query counting_settings;
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

  // Maintenance.
  Query make_partitions;
};

}  // namespace outbox::store::postgres
