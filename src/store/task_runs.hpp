// Tasks whose row is `running`: what their workers write, and how the runs of a dead worker are found (docs/design/tasks.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_fd.hpp"
#include "store/parked.hpp"
#include "store/part.hpp"

namespace outbox::store {

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
class TaskRuns : public Part {
 public:
  /// The worker is alive. A count, not a time: whether it changes is judged by the clock of who looks.
  /// `note`: store/worker_note.hpp, as JSON. Returns the time by the clock of the store, in microseconds since 1970.
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

}  // namespace outbox::store
