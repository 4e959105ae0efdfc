// A queue of a worker, as far as workers hand each other tasks (docs/design/tasks.md, "Sharing"). A runner is one; tests/sim has another.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "store/tasks.hpp"
#include "task/type_limit.hpp"

namespace outbox::task {

class SharedQueue {
 public:
  SharedQueue() = default;
  SharedQueue(const SharedQueue&) = delete;
  SharedQueue& operator=(const SharedQueue&) = delete;
  SharedQueue(SharedQueue&&) = delete;
  SharedQueue& operator=(SharedQueue&&) = delete;
  virtual ~SharedQueue() = default;

  [[nodiscard]] virtual const std::string& queue() const = 0;
  [[nodiscard]] virtual std::vector<std::string> subscriptions() const = 0;
  /// It has handlers for them.
  [[nodiscard]] virtual std::vector<std::string> types_to_claim() const = 0;
  /// Nothing is taken for them.
  [[nodiscard]] virtual std::size_t free_threads() const = 0;
  /// No thread is free, and a sink has left tasks where they are.
  [[nodiscard]] virtual bool is_starved(TimePoint now) const = 0;
  /// So many threads of other workers are free.
  virtual void set_elsewhere(std::size_t threads) = 0;
  /// They are kept runs from the beginning.
  virtual void add_claimed(const store::ClaimedTasks& claimed) = 0;
};

}  // namespace outbox::task
