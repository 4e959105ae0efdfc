// outbox/task.hpp: work to be done once the transaction commits, and how to enqueue it.
//
//   outbox::postgres::Transaction tx(connection);
//   ... INSERT INTO report ... on connection ...
//   const outbox::EventId id = tx.enqueue({.queue = "reports",
//                                          .type = "report.make",
//                                          .payload = R"({"month": "2026-10"})"});
//   tx.commit();                             // the task exists if and only if this succeeds
//   ...
//   const auto status = outbox::postgres::task_status(connection, id);
//   if (status && status->state == outbox::TaskState::running)
//     show(status->percent, status->progress);
//
// A task is an event that a worker's handler works off (outbox/worker.hpp) instead of a sink. It is
// written into the same log by the same rules. Subscriptions do not get it, unless their
// aggregate_types name the queue in full: "outbox-task:reports".
//
// Any program that can enqueue an event can enqueue a task: aggregate_type "outbox-task:QUEUE"
// ("outbox-task:QUEUE!1" for priority 1), aggregate_id the key, event_type the type, and the
// headers below. Unique keys need enqueue().
//
// Threads: values; Const methods from any thread.
// Lifetime: Task owns its strings.
// Errors: validate() names the field that is wrong.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox {

/// What the aggregate_type of a task begins with; the queue follows.
inline constexpr std::string_view kTaskPrefix = "outbox-task:";
/// The headers of its execute_at (RFC 3339), max_attempts and unique_key, and of on_done and
/// on_dead: {"aggregate_type": "report", "aggregate_id": "42", "event_type": "ReportMade"}.
inline constexpr std::string_view kExecuteAtHeader = "task-execute-at";
inline constexpr std::string_view kMaxAttemptsHeader = "task-max-attempts";
inline constexpr std::string_view kUniqueKeyHeader = "task-unique-key";
inline constexpr std::string_view kOnDoneHeader = "task-on-done";
inline constexpr std::string_view kOnDeadHeader = "task-on-dead";

/// An event that is enqueued in the transaction that notes the end of a task. Its payload says
/// which task has ended, and how: {"task": ID, "queue", "type", "key", "attempts", "result" or
/// "error"}. If its aggregate_type names a queue, it is a task itself.
struct TaskEvent {
  std::string aggregate_type;  ///< As the members of Event.
  std::string aggregate_id{};
  std::string event_type;
};

/// What enqueue() does when a task with the same unique key has not ended.
enum class OnConflict : std::uint8_t {
  skip,     ///< It enqueues nothing and returns the id of that task.
  replace,  ///< It enqueues the new task, and cancels the other one if that has not begun.
  error,    ///< It throws Errc::already_exists.
};

/// A task to enqueue.
struct Task {
  /// The queue, whose workers do the task. Letters, digits, '-', '_' and '.', at most 50 bytes.
  /// Default: default.
  std::string queue{"default"};
  /// The type, whose handler does the task ("report.make"). Required, not blank, at most 255 bytes,
  /// no control characters.
  std::string type{};
  /// What the handler gets, byte for byte. At most EventLimits::payload_bytes.
  std::string payload{};
  /// Tasks of one key run one at a time and in order, also through retries. At most 255 bytes. A
  /// task with an empty key has no order. Default: empty.
  std::string key{};
  /// From 1, the most urgent, to 4. Urgent tasks do not wait behind a backlog of less urgent ones.
  /// Tasks of one key should have one priority, because the order of a key holds within each.
  /// Default: 2.
  std::size_t priority{2};
  /// The task does not run before this time by the clock of the store. Default: at once.
  std::optional<Timestamp> execute_at{};
  /// After so many failed runs the task is dead; from 1 to 1000. Default: one more than its type
  /// has delays.
  std::optional<std::size_t> max_attempts{};
  /// The queue has at most one task with this key that has not ended. At most 255 bytes. Default:
  /// empty, which means no such key.
  std::string unique_key{};
  OnConflict on_conflict{OnConflict::skip};
  /// The events to enqueue when the task is done, or dead. Default: none.
  std::optional<TaskEvent> on_done{};
  std::optional<TaskEvent> on_dead{};
  /// As Event::headers. Default: none.
  std::vector<Header> headers{};
  /// The media type of the payload. When it is JSON the payload must parse as JSON. Default:
  /// application/json.
  std::string content_type{"application/json"};
  /// The caller's own id. Default: a new UUIDv7.
  std::optional<EventId> id{};
};

/// Where a task stands. These words do not change.
enum class TaskState : std::uint8_t {
  pending,    ///< No worker has taken it, or it has run for less than 1 s.
  scheduled,  ///< Its execute_at is ahead.
  running,    ///< It has been running for longer than 1 s.
  retrying,   ///< It runs again at next_attempt_at.
  waiting,    ///< It waits behind an earlier task of its key.
  completed,
  dead,       ///< It does not run again unless a person decides so.
  cancelled,  ///< By a person, by its handler, or for a newer task with its unique key.
};
[[nodiscard]] const char* to_string(TaskState state) noexcept;

/// What has become of a task.
struct TaskStatus {
  EventId id{};
  std::string queue;
  std::string type;
  std::string key;
  std::size_t priority{2};
  TaskState state{TaskState::pending};
  std::size_t attempts{0};  ///< Failed runs, which are counted as long as the task has a row.
  Timestamp enqueued_at{};
  std::optional<Timestamp> next_attempt_at{};  ///< Set if `scheduled` or `retrying`.
  std::optional<Timestamp> ended_at{};         ///< If `completed`: it was, at this time or earlier.
  // Set if it is `running`:
  std::string worker{};
  std::optional<Timestamp> running_since{};
  std::optional<std::size_t> percent{};  ///< What its handler reported.
  std::string progress{};
  std::string error{};  ///< The error of its last run, or why it was cancelled; may be empty.
  /// If `completed`: the result that its handler gave, if the worker kept it.
  std::optional<std::string> result{};
};

struct TaskRun;

/// A transaction of a run, which the worker opens in its own store: outbox/postgres.hpp and
/// outbox/sqlite.hpp specialise it for their Transaction.
template <class Transaction>
struct TaskTransaction;

/// Checks a task. The error names the field ("queue: is empty").
[[nodiscard]] Status validate(const Task& task, const EventLimits& limits = {});

/// The event that is written for a task. Throws Exception when a field is not valid; payload and
/// headers are checked when it is enqueued.
[[nodiscard]] Event to_event(Task task);

}  // namespace outbox
