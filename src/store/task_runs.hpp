// Tasks whose row is `running`: what their workers write, and how the runs of a dead worker are found (docs/design/tasks.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
};

/// How a run ended. `result.worker` is whose run it was; the generation does not matter.
struct TaskRunEnd {
  RetryResult result;
  std::int64_t token{0};
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
};

/// One thread at a time. All is committed, and flushed, on return.
class TaskRuns : public Part {
 public:
  /// The worker is alive. A count, not a time: whether it changes is judged by the clock of who looks.
  [[nodiscard]] virtual Status beat(const EventId& worker, std::string_view name) = 0;
  /// It has no runs any more.
  [[nodiscard]] virtual Status leave(const EventId& worker) = 0;
  /// The runs of a worker, at most `limit`, of these subscriptions.
  [[nodiscard]] virtual Result<std::vector<TaskRunRow>> runs_of(
      const EventId& worker, std::span<const std::string> subscriptions, std::size_t limit) = 0;
  /// Those with runs of these subscriptions.
  [[nodiscard]] virtual Result<std::vector<OtherWorker>> others(
      const EventId& me, std::span<const std::string> subscriptions) = 0;
  /// Those that are not over yet, whoever owns their lanes. One transaction.
  [[nodiscard]] virtual Status end(std::span<const TaskRunEnd> ends) = 0;
  [[nodiscard]] virtual Status report(const EventId& worker,
                                      std::span<const TaskProgress> progress) = 0;
};

}  // namespace outbox::store
