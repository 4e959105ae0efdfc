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
  /// What its handler does; by the dice of the task, and how often it has run.
  enum class Way : std::uint8_t {
    ends,
    hangs,  ///< Until it is told to stop.
    kills,  ///< Its process.
  };

  std::shared_ptr<task::RunnerCore::Slot> slot{};
  std::stop_token stop{};
  task::Source source{0};  ///< Of the subscription that sent it.
  std::size_t number{0};   ///< Of the event.
  std::int64_t seq{0};
  unsigned key{0};
  unsigned lane{0};
  EventId worker{};
  std::int64_t generation{0};  ///< Under which it was sent.
  Way way{Way::ends};
  int left{0};  ///< Steps.
  TaskEnd end{TaskEnd::done()};
  bool hears{false};  ///< That it was told to stop.
  bool counts{true};  ///< Its end is reported, as it was at its last step.
  bool taken{false};  ///< Its worker counts as dead, or a person has decided.

  /// As its worker knows it. Until its end.
  [[nodiscard]] task::RunnerCore::Run state() const {
    return task::RunnerCore::run_of(*slot).value_or(task::RunnerCore::Run{});
  }
};

}  // namespace outbox::sim
