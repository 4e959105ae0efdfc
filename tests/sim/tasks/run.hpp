// A run of a task: a handler that is busy with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <outbox/worker.hpp>
#include <stop_token>

#include "task/runner_core.hpp"

namespace outbox::sim {

struct SimRun {
  /// What the handler does. It depends on the number of the task and on how often it has run.
  enum class Way : std::uint8_t {
    ends,
    hangs,  ///< It goes on until it is told to stop.
    kills,  ///< It kills its process.
  };

  std::shared_ptr<task::RunnerCore::Slot> slot{};
  std::stop_token stop{};
  task::Source source{0};  ///< The subscription that sent it.
  std::size_t number{0};   ///< The number of the event.
  std::int64_t seq{0};
  unsigned key{0};
  unsigned lane{0};
  EventId worker{};
  std::int64_t generation{0};  ///< The generation under which it was sent.
  Way way{Way::ends};
  int left{0};  ///< How many steps are left.
  TaskEnd end{TaskEnd::done()};
  bool hears{false};  ///< Whether it knows that it was told to stop.
  bool counts{true};  ///< Whether its end is reported, as of its last step.
  bool taken{false};  ///< Whether its worker counts as dead, or a person has decided.

  /// The run as its worker knows it; only valid until its end.
  [[nodiscard]] task::RunnerCore::Run state() const {
    return task::RunnerCore::run_of(*slot).value_or(task::RunnerCore::Run{});
  }
};

}  // namespace outbox::sim
