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

// ---- What a worker reports with each heartbeat: its types, and how long their runs took.

struct WorkerNote {
  struct Type {
    std::string queue;
    std::string name;
    DurationCounts runs{};  ///< The runs of the last minutes; quick ones are estimated from
                            ///< samples.
  };
  std::chrono::milliseconds heartbeat{0};
  std::vector<Type> types{};
};

/// {"heartbeat_ms": 10000, "types": [{"queue": "pdf", "type": "pdf.make", "runs": {"54": 12}}]}
[[nodiscard]] std::string to_json(const WorkerNote& note);
/// Leaves out what it cannot read, since another version may have written it.
[[nodiscard]] WorkerNote parse_worker_note(std::string_view json);

// ---- Tasks in the state `running` (docs/design/tasks.md): what workers write about them.

/// One run of a task. It is over once the task's row has another token or another state.
struct TaskRunRow {
  std::int32_t subscription{0};
  std::string queue;  ///< The name of the subscription.
  std::int64_t seq{0};
  EventId id{};
  std::size_t attempts{0};  ///< Those before this run.
  std::int64_t token{0};
  std::string type;
  std::string headers;  ///< A JSON object.
  /// A person has cancelled it: its handler is told to stop, and unless the handler is done, the
  /// run ends as cancelled.
  bool cancelled{false};
};

/// The row of `task_end` about a task that has ended, which has at most one.
struct TaskFinish {
  enum class Outcome : std::uint8_t { done, cancelled };
  EventId id{};
  Outcome outcome{Outcome::done};
  std::optional<std::string> result{};
  std::string reason{};
  std::string unique_key{};      ///< The key that the task gives up; empty if it has none.
  std::optional<Event> event{};  ///< Enqueued in the same transaction.
};

/// How a run ended. `result.worker` is the worker of the run; `result.generation` is ignored.
struct TaskRunEnd {
  RetryResult result;
  std::int64_t token{0};
  std::optional<TaskFinish> finish{};  ///< Written if the run was not over before.
};

/// A parked task that was replaced by a newer task with the same unique key.
struct ReplacedTask {
  std::int32_t subscription{0};
  std::int64_t seq{0};
};

/// A task with a unique key that its worker wants to run.
struct UniqueTask {
  EventId id{};
  std::string queue;
  std::string unique_key;
};
enum class MayBegin : std::uint8_t {
  begin,
  replaced,  ///< It never begins, because another task has its key.
  later,     ///< It has to wait until the task that it replaces has ended.
  busy,      ///< The worker asks again soon.
};

struct TaskProgress {
  std::int32_t subscription{0};
  std::int64_t seq{0};
  std::int64_t token{0};
  std::size_t percent{0};
  std::string text;
};

/// Another worker that has runs.
struct OtherWorker {
  EventId id{};
  /// Its heartbeat counter; not set if the worker has left.
  std::optional<std::int64_t> beat;
  std::chrono::milliseconds heartbeat{0};  ///< How often it beats; 0 if unknown.
};

/// The other workers that are alive, and how many of their threads are free for a queue.
struct OtherThreads {
  std::int64_t workers{0};
  std::int64_t free{0};
};

/// A `ready` task that this worker took; its row is `running` now.
struct ClaimedTask {
  std::int32_t subscription{0};
  std::string subscription_name;
  std::size_t attempts{0};
  std::int64_t token{0};
  EventView event;
};
struct ClaimedTasks {
  std::vector<ClaimedTask> tasks;
  std::shared_ptr<const void> storage{};  ///< Owns the memory that the events refer to.
};

/// It is used by one thread at a time. Everything is committed and durable when a call returns.
class TaskRuns : public Interface {
 public:
  /// Counts a heartbeat of the worker. It is a count, not a time, so that observers judge it by
  /// their own clocks. `note` is a WorkerNote as JSON. Returns the store's time
  /// in microseconds since 1970.
  [[nodiscard]] virtual Result<std::int64_t> beat(const EventId& worker, std::string_view name,
                                                  std::string_view note) = 0;
  /// Removes a worker that has no runs any more, and workers that were silent for a day.
  [[nodiscard]] virtual Status leave(const EventId& worker) = 0;
  /// At most `limit` runs of a worker in these subscriptions.
  [[nodiscard]] virtual Result<std::vector<TaskRunRow>> runs_of(
      const EventId& worker, std::span<const std::string> subscriptions, std::size_t limit) = 0;
  /// The other workers that have runs in these subscriptions.
  [[nodiscard]] virtual Result<std::vector<OtherWorker>> others(
      const EventId& me, std::span<const std::string> subscriptions) = 0;
  /// Records, in one transaction, the ends of runs that are not over yet, whoever owns their lanes,
  /// and of tasks that ended without a row.
  [[nodiscard]] virtual Status end(std::span<const TaskRunEnd> ends,
                                   std::span<const TaskFinish> finishes) = 0;
  /// Answers in the order of `tasks`. A task that replaces a running one has to wait for its end.
  [[nodiscard]] virtual Result<std::vector<MayBegin>> begin_unique(
      std::span<const UniqueTask> tasks) = 0;
  /// Some of the replaced tasks of these subscriptions, which are never to run.
  [[nodiscard]] virtual Result<std::vector<ReplacedTask>> replaced(
      std::span<const std::string> subscriptions) = 0;
  // ---- Tasks that wait for a thread of any worker

  /// Shows other workers how many threads are free by queue, until the next call.
  [[nodiscard]] virtual Status announce_free_threads(
      const EventId& worker, const std::map<std::string, std::size_t>& free) = 0;
  /// Counts workers whose last heartbeat is, by the store's clock, no older than `alive` or three
  /// of their own heartbeats.
  [[nodiscard]] virtual Result<OtherThreads> other_threads(const EventId& me,
                                                           std::string_view queue,
                                                           std::chrono::milliseconds alive) = 0;
  /// Takes `ready` tasks of these types, which become runs of this worker.
  [[nodiscard]] virtual Result<ClaimedTasks> claim(const EventId& worker,
                                                   std::span<const std::string> subscriptions,
                                                   std::span<const std::string> types,
                                                   std::size_t limit) = 0;
  /// Waits for the bell, for `ready` rows, or until `until`. True if there may be such rows.
  [[nodiscard]] virtual Result<bool> wait(const EventFd& bell,
                                          std::chrono::steady_clock::time_point until) = 0;

  [[nodiscard]] virtual Status report(const EventId& worker,
                                      std::span<const TaskProgress> progress) = 0;
};

// ---- Tasks and queues for people (docs/design/tasks.md). Rows are parked events
// (store/parked.hpp).

/// A task of the log without a row: no worker has taken it, or it has run for less than 1 s.
struct PendingTask {
  std::int64_t seq{0};
  EventId id{};
  std::string type;
  std::string key;
  std::int64_t created_at_us{0};  ///< Microseconds since 1970, UTC.
};

/// Selects pending tasks. A field that is empty does not restrict the selection.
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
  /// How long the first of them could have run by now, by the store's clock: the time since it was
  /// enqueued or its next run was due.
  std::chrono::microseconds waited{0};
};

struct WorkerRow {
  std::string name;
  std::chrono::microseconds silent{0};  ///< Since its last heartbeat, by the clock of the store.
  std::int64_t running{0};              ///< Counts only runs that have a row.
  WorkerNote note;

  /// Whether its last heartbeat is recent: it has missed at most two.
  [[nodiscard]] bool is_alive() const {
    return silent <= std::max<std::chrono::microseconds>(3 * note.heartbeat, kShortestSilence);
  }
  static constexpr std::chrono::seconds kShortestSilence{30};
};

struct QueueReport {
  std::vector<TaskCount> counts;
  std::set<std::int32_t> more;  ///< The subscriptions with more tasks than were counted.
  std::vector<WorkerRow> workers;
};

/// The most rows of a subscription that are counted.
inline constexpr std::int64_t kMostRowsCounted = 100'000;
/// The most events of a subscription that a search for pending tasks reads.
inline constexpr std::int64_t kMostPendingSearched = 100'000;

/// It is used by one thread at a time.
class TaskQueues : public Interface {
 public:
  /// Not set if there is no task with this id.
  [[nodiscard]] virtual Result<std::optional<TaskStatus>> task(const EventId& id) = 0;
  /// At most `limit` pending tasks of a subscription of a queue, the oldest first.
  [[nodiscard]] virtual Result<std::vector<PendingTask>> pending(
      const SubscriptionRow& subscription, const PendingFilter& filter, std::size_t limit) = 0;
  /// Counts tasks of subscriptions of queues, and lists all workers of the last hour. For pending
  /// tasks at most `limit` events per subscription are read.
  [[nodiscard]] virtual Result<QueueReport> look(std::span<const SubscriptionRow> subscriptions,
                                                 std::int64_t limit) = 0;
};

// ---- Stored schedules. The transaction that enqueues the task of a tick also moves the schedule
// to its next tick, so that each tick is enqueued once.

/// Times in microseconds since 1970, by the clock of the store.
struct ScheduleRow {
  Schedule schedule;
  bool paused{false};
  std::int64_t revision{0};  ///< Changes whenever the row does.
  std::int64_t next_at_us{0};
  std::optional<std::int64_t> last_at_us;  ///< The newest tick that enqueued a task.
  std::optional<EventId> last_task;
};

struct DueSchedules {
  std::int64_t now_us{0};
  /// Whether the queues have a schedule at all, which may be paused.
  bool any{false};
  /// When the next tick of any of the schedules is, due or not; not set if all of them are paused.
  std::optional<std::int64_t> next_at_us{};
  std::vector<ScheduleRow> due{};  ///< In the order of their ticks.
};

struct Tick {
  std::optional<Event> task{};  ///< Not set if the tick is skipped.
  std::int64_t at_us{0};        ///< The time of this tick.
  std::int64_t next_at_us{0};   ///< The time of the next tick.
};

/// It is used by one thread at a time. Everything is committed when a call returns.
class Schedules : public Interface {
 public:
  [[nodiscard]] virtual Result<std::int64_t> now_us() = 0;
  /// Stores a new schedule or replaces the one with its name, which stays paused if it is.
  /// `next_at_us` counts if the schedule is new or its ticks changed. False if nothing changed.
  [[nodiscard]] virtual Result<bool> apply(const Schedule& schedule, std::int64_t next_at_us) = 0;
  /// The schedules of these queues that are not paused.
  [[nodiscard]] virtual Result<DueSchedules> due(std::span<const std::string> queues) = 0;
  /// False if the row has changed since it was read, or another worker has locked it.
  [[nodiscard]] virtual Result<bool> tick(const ScheduleRow& row, const Tick& tick) = 0;
  /// All schedules, by name.
  [[nodiscard]] virtual Result<std::vector<ScheduleRow>> list() = 0;
  [[nodiscard]] virtual Status pause(std::string_view name) = 0;
  /// Resumes a paused schedule. False if the row has changed since it was read.
  [[nodiscard]] virtual Result<bool> resume(const ScheduleRow& row, std::int64_t next_at_us) = 0;
  /// False if there is no such schedule.
  [[nodiscard]] virtual Result<bool> remove(std::string_view name) = 0;
};

}  // namespace outbox::store
