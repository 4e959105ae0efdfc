// Shares tasks among workers: those that find no thread here while another worker has one, and
// those that other workers have no thread for (docs/design/tasks.md, "Sharing"). The run tracker
// calls it, on its connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <utility>
#include <vector>

#include "store/tasks.hpp"
#include "task/runner_core.hpp"

namespace outbox::task {

struct ExchangeOptions {
  std::chrono::milliseconds heartbeat{std::chrono::seconds(10)};  ///< Of each worker.
  /// A queue tells others that it has, or no longer has, a free thread only after this has been so
  /// for this long.
  std::chrono::milliseconds settled{100};
  /// The time between turns while there are other workers. A turn costs no statement as long as
  /// nothing changes.
  std::chrono::milliseconds turn{100};
  /// The time between claims without a notification, since a pooler holds notifications back.
  std::chrono::milliseconds claim_every{std::chrono::seconds(1)};
};

class Exchange {
 public:
  Exchange(const EventId& worker, ExchangeOptions options) : worker_(worker), options_(options) {}

  void add(std::shared_ptr<RunnerCore> queue) { queues_.push_back({.tasks = std::move(queue)}); }
  /// The connection is a new one: nothing is announced, and rows may have been missed.
  void start_over();
  /// There may be tasks to claim.
  void told() { told_ = true; }
  /// The time at which it wants its next turn.
  [[nodiscard]] TimePoint next_at() const { return next_at_; }
  [[nodiscard]] Status turn(store::TaskRuns& rows, TimePoint now);

 private:
  struct Queue {
    std::shared_ptr<RunnerCore> tasks;
    bool free{false};   ///< Whether it had a free thread at the last turn.
    TimePoint since{};  ///< Since when `free` has its value.
    /// The number of free threads that the store was told; nullopt if it was told none on this
    /// connection.
    std::optional<std::size_t> announced{};
    TimePoint claim_at{};
    TimePoint look_at{};
  };

  [[nodiscard]] Status look_for_others(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Status announce(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Status claim(store::TaskRuns& rows, Queue& queue, TimePoint now);
  [[nodiscard]] Status look_for_threads(store::TaskRuns& rows, Queue& queue, TimePoint now);

  const EventId worker_;
  const ExchangeOptions options_;
  std::vector<Queue> queues_;
  bool told_{false};
  bool alone_{true};
  TimePoint others_at_{};
  TimePoint next_at_{};
};

}  // namespace outbox::task
