// Tasks: those that run, those that wait, and schedules.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/schedule.hpp>
#include <outbox/task.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/duration_buckets.hpp"
#include "base/event_fd.hpp"
#include "store/interface.hpp"
#include "store/parked.hpp"
#include "store/subscriptions.hpp"

namespace outbox::store {

// ---- What a worker says about itself with each heartbeat: which types it has handlers for, and how long their runs took.

struct WorkerNote {
  struct Type {
    std::string queue;
    std::string name;
    DurationCounts runs{};  ///< Of the last minutes; quick ones are estimated from samples.
  };
  std::chrono::milliseconds heartbeat{0};
  std::vector<Type> types{};
};

/// {"heartbeat_ms": 10000, "types": [{"queue": "reports", "type": "report.make", "runs": {"54": 12}}]}
[[nodiscard]] std::string to_json(const WorkerNote& note);
/// What cannot be read is left out: another version may have written it.
[[nodiscard]] WorkerNote worker_note_of(std::string_view json);

// ---- Tasks whose row is `running`: what their workers write, and how the runs of a dead worker are found (docs/design/tasks.md).

/// One run: it is over when its row has another token, or another state.
struct TaskRunRow {
  std::int32_t subscription{0};
  std::string queue;  ///< The name of the subscription.
  std::int64_t seq{0};
  EventId id{};
  std::size_t attempts{0};  ///< Before this run.
  std::int64_t token{0};
  std::string type;
  std::string headers;  ///< A JSON object.
  /// By a person: its handler is told to stop, and unless it is done it ends so.
  bool cancelled{false};
};

/// What is written about a task that has ended, beside its settlement or row: a row of `task_end`, once per task.
struct TaskFinish {
  enum class Outcome : std::uint8_t { done, cancelled };
  EventId id{};
  Outcome outcome{Outcome::done};
  std::optional<std::string> result{};
  std::string reason{};
  std::string unique_key{};      ///< That it gives up; empty: none.
  std::optional<Event> event{};  ///< That is enqueued with that row.
};

/// How a run ended. `result.worker` is whose run it was; the generation does not matter.
struct TaskRunEnd {
  RetryResult result;
  std::int64_t token{0};
  std::optional<TaskFinish> finish{};  ///< If the run was not over before.
};

/// A parked task that another one with its unique key has replaced.
struct ReplacedTask {
  std::int32_t subscription{0};
  std::int64_t seq{0};
};

/// A task with a unique key that is to begin.
struct UniqueTask {
  EventId id{};
  std::string queue;
  std::string unique_key;
};
enum class MayBegin : std::uint8_t {
  begin,
  replaced,  ///< Another task has its key: it never begins.
  later,     ///< The one that it has replaced still runs.
  busy,      ///< Asked again soon.
};

struct TaskProgress {
  std::int32_t subscription{0};
  std::int64_t seq{0};
  std::int64_t token{0};
  std::size_t percent{0};
  std::string text;
};

/// Another worker, and its last heartbeat; none: it has left.
struct OtherWorker {
  EventId id{};
  std::optional<std::int64_t> beat;
  std::chrono::milliseconds heartbeat{0};  ///< How often it shows that it is alive; 0: not known.
};

/// Workers that are alive beside one, and how many of their threads are free for a queue.
struct OtherThreads {
  std::int64_t workers{0};
  std::int64_t free{0};
};

/// A task that any worker might have taken; its row is `running` now.
struct ClaimedTask {
  std::int32_t subscription{0};
  std::string subscription_name;
  std::size_t attempts{0};
  std::int64_t token{0};
  EventView event;
};
struct ClaimedTasks {
  std::vector<ClaimedTask> tasks;
  std::shared_ptr<const void> storage{};  ///< Owns what the events point into.
};

/// One thread at a time. All is committed, and flushed, on return.
class TaskRuns : public Interface {
 public:
  /// The worker is alive. A count, not a time: whether it changes is judged by the clock of who looks.
  /// `note`: a WorkerNote as JSON. Returns the time by the clock of the store, in microseconds since 1970.
  [[nodiscard]] virtual Result<std::int64_t> beat(const EventId& worker, std::string_view name,
                                                  std::string_view note) = 0;
  /// It has no runs any more. Workers that were silent for a day are forgotten, too.
  [[nodiscard]] virtual Status leave(const EventId& worker) = 0;
  /// The runs of a worker, at most `limit`, of these subscriptions.
  [[nodiscard]] virtual Result<std::vector<TaskRunRow>> runs_of(
      const EventId& worker, std::span<const std::string> subscriptions, std::size_t limit) = 0;
  /// Those with runs of these subscriptions.
  [[nodiscard]] virtual Result<std::vector<OtherWorker>> others(
      const EventId& me, std::span<const std::string> subscriptions) = 0;
  /// Those that are not over yet, whoever owns their lanes; and tasks that ended without a row. One transaction.
  [[nodiscard]] virtual Status end(std::span<const TaskRunEnd> ends,
                                   std::span<const TaskFinish> finishes) = 0;
  /// In the order of the tasks. One that replaces one that has begun begins after it.
  [[nodiscard]] virtual Result<std::vector<MayBegin>> begin_unique(
      std::span<const UniqueTask> tasks) = 0;
  /// Of these subscriptions, some of them: none of them ever runs.
  [[nodiscard]] virtual Result<std::vector<ReplacedTask>> replaced(
      std::span<const std::string> subscriptions) = 0;
  // ---- Tasks that wait for a thread, where several workers can share them

  /// By queue. Shown to other workers until it is changed.
  [[nodiscard]] virtual Status announce_free_threads(
      const EventId& worker, const std::map<std::string, std::size_t>& free) = 0;
  /// Of workers whose last heartbeat is not older than this, or than three of theirs, by the clock of the store.
  [[nodiscard]] virtual Result<OtherThreads> other_threads(const EventId& me,
                                                           std::string_view queue,
                                                           std::chrono::milliseconds alive) = 0;
  /// Rows that are `ready`, of these types. They are this worker's runs from then on.
  [[nodiscard]] virtual Result<ClaimedTasks> claim(const EventId& worker,
                                                   std::span<const std::string> subscriptions,
                                                   std::span<const std::string> types,
                                                   std::size_t limit) = 0;
  /// Returns when `bell` is signalled, when rows have become `ready`, or at `until`. True: there may be such rows.
  [[nodiscard]] virtual Result<bool> wait(const EventFd& bell,
                                          std::chrono::steady_clock::time_point until) = 0;

  [[nodiscard]] virtual Status report(const EventId& worker,
                                      std::span<const TaskProgress> progress) = 0;
};

// ---- Tasks and their queues for people (docs/design/tasks.md). Rows of tasks are parked events (store/parked.hpp).

/// A task of the log that no worker has taken, or that has run for less than 1 s.
struct PendingTask {
  std::int64_t seq{0};
  EventId id{};
  std::string type;
  std::string key;
  std::int64_t created_at_us{0};  ///< Microseconds since 1970, UTC.
};

/// Which of them; what is not given does not matter.
struct PendingFilter {
  std::string type{};
  std::string key{};
};

/// How many tasks of a type are in a state.
struct TaskCount {
  std::int32_t subscription{0};
  std::string type;
  TaskState state{TaskState::pending};
  std::int64_t tasks{0};
  /// How long the first of them could have begun, by the clock of the store: since it was enqueued, or since its next run is due.
  std::chrono::microseconds waited{0};
};

struct WorkerRow {
  std::string name;
  std::chrono::microseconds silent{0};  ///< Since its last heartbeat, by the clock of the store.
  std::int64_t running{0};              ///< Runs that have a row.
  WorkerNote note;

  /// It has missed no more than two heartbeats.
  [[nodiscard]] bool is_alive() const {
    return silent <= std::max<std::chrono::microseconds>(3 * note.heartbeat, kShortestSilence);
  }
  static constexpr std::chrono::seconds kShortestSilence{30};
};

struct QueueReport {
  std::vector<TaskCount> counts;
  std::set<std::int32_t> more;  ///< Subscriptions of which not all were counted.
  std::vector<WorkerRow> workers;
};

/// Rows of a subscription that are counted, at most.
inline constexpr std::int64_t kMostRowsCounted = 100'000;
/// Events that are looked at, at most, for pending tasks of a subscription.
inline constexpr std::int64_t kMostPendingSearched = 100'000;

/// One thread at a time.
class TaskQueues : public Interface {
 public:
  /// None: there is no task with this id.
  [[nodiscard]] virtual Result<std::optional<TaskStatus>> task(const EventId& id) = 0;
  /// Those of a subscription of a queue, the oldest first, at most `limit`.
  [[nodiscard]] virtual Result<std::vector<PendingTask>> pending(
      const SubscriptionRow& subscription, const PendingFilter& filter, std::size_t limit) = 0;
  /// Of subscriptions of queues, and all workers of the last hour. `limit`: events that are looked at for pending tasks of each.
  [[nodiscard]] virtual Result<QueueReport> look(std::span<const SubscriptionRow> subscriptions,
                                                 std::int64_t limit) = 0;
};

// ---- Schedules of tasks as they are stored: who enqueues the task of a tick moves the schedule to its next one in the same transaction, so
// that each tick is enqueued once.

/// Times in microseconds since 1970, by the clock of the store.
struct ScheduleRow {
  Schedule schedule;
  bool paused{false};
  std::int64_t revision{0};  ///< Another one: the row has changed.
  std::int64_t next_at_us{0};
  std::optional<std::int64_t> last_at_us;  ///< The newest tick that enqueued a task.
  std::optional<EventId> last_task;
};

struct DueSchedules {
  std::int64_t now_us{0};
  /// The next tick of all of them, due or not. None: there are none.
  std::optional<std::int64_t> next_at_us{};
  std::vector<ScheduleRow> due{};  ///< In the order of their ticks.
};

struct Tick {
  std::optional<Event> task{};  ///< None: the tick is skipped.
  std::int64_t at_us{0};        ///< Of the task.
  std::int64_t next_at_us{0};   ///< The one that follows.
};

/// One thread at a time. All is committed on return.
class Schedules : public Interface {
 public:
  [[nodiscard]] virtual Result<std::int64_t> now_us() = 0;
  /// A new one, or another one in place of that with its name, which stays paused if it is. `next_at_us`: of a new one, and of one with
  /// other ticks. False: it is there as it is.
  [[nodiscard]] virtual Result<bool> apply(const Schedule& schedule, std::int64_t next_at_us) = 0;
  /// Of these queues, without paused ones.
  [[nodiscard]] virtual Result<DueSchedules> due(std::span<const std::string> queues) = 0;
  /// False: the row has changed since it was read, or another worker is at it.
  [[nodiscard]] virtual Result<bool> tick(const ScheduleRow& row, const Tick& tick) = 0;
  /// By name.
  [[nodiscard]] virtual Result<std::vector<ScheduleRow>> list() = 0;
  [[nodiscard]] virtual Status pause(std::string_view name) = 0;
  /// Of one that is paused. False: the row has changed since it was read.
  [[nodiscard]] virtual Result<bool> resume(const ScheduleRow& row, std::int64_t next_at_us) = 0;
  /// False: there is none.
  [[nodiscard]] virtual Result<bool> remove(std::string_view name) = 0;
};

}  // namespace outbox::store
