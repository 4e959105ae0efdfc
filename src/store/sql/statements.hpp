// The statements of the parts in store/sql. Each store has a table of them, with its own SQL
// (statements.cpp of the store).
#pragma once

#include <cstdint>
#include <string_view>

namespace outbox::store::sql {

/// How PostgreSQL runs a statement. SQLite keeps all of them prepared, and sets nothing.
enum class How : std::uint8_t {
  plainly,
  kept,  ///< Prepared, and kept by its name.
  // The next four run in a transaction of their own, with settings; inside another transaction they
  // run plainly.
  flushed,
  plan_settings,
  no_limits,
  settings,
};

struct Statement {
  How how{How::plainly};
  /// SQLite runs such a statement only for the owner that holds the lanes of a subscription ($1)
  /// under a generation ($3). PostgreSQL's functions check that themselves.
  bool for_owner{false};
  /// What the statement does, for PostgreSQL's error messages. SQLite's texts begin with it, as a
  /// comment.
  std::string_view what{};
  /// Empty if this store needs no such statement. On SQLite the text may be several statements,
  /// which are one transaction.
  std::string_view text{};
};

/// The parameters of a statement, and the columns of its rows, are the same in both stores.
struct Statements {
  // Changes of subscriptions.
  Statement flushed, find_subscription, lock_fleet, lock_lanes, change_group;
  // Audit.
  Statement begin_decision, record_decision, record_more, list_audit;
  // Catalog.
  Statement subscriptions, former_name, forget_former_name, create_subscription, first_settlement,
      change_subscription, pause, resume, stop, report_trouble;
  // SubscriptionChanges.
  Statement former_names, name_is_taken, rename, running_replay, drop;
  // Trials.
  Statement former_runs, begin_run, open_range, close_trial, end_run;
  // Verified.
  Statement list_verified, save_verified, forget_differences;
  // WorkHistory.
  Statement append_history, list_history, remove_history;
  // ConsoleTokens.
  Statement list_tokens, add_token, remove_token;
  // Inbox.
  Statement insert_received, received_again, latest_of_keys, note_latest, list_inbox, find_in_inbox,
      inbox_consumers, read_inbox;
  // Replays.
  Statement retained, replay_loaded, stop_replay, drop_replay, list_replays, replay_skips,
      replay_places;
  // TaskRuns.
  Statement beat_worker, remove_worker, runs_of_worker, other_workers, replaced_parked;
  // ParkedEvents.
  Statement list_parked, find_parked, count_parked;
  // Schedules.
  Statement clock, apply_schedule, next_tick, due_schedules, lock_schedule, move_schedule,
      list_schedules, pause_schedule, resume_schedule, remove_schedule;
};

using Named = Statement Statements::*;

}  // namespace outbox::store::sql
