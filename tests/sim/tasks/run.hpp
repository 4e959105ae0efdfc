// A run of a task: a handler that is busy with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/sink.hpp>
#include <outbox/worker.hpp>

#include "relay/trust_deadline.hpp"
#include "sink/run_owner.hpp"
#include "task/batch.hpp"
#include "task/type_limit.hpp"

namespace outbox::sim {

struct SimRun {
  /// What its handler does; by the dice of the task, and how often it has run.
  enum class Way : std::uint8_t {
    ends,
    hangs,  ///< Until it is told to stop.
    kills,  ///< Its process.
  };

  Token token{0};
  task::Source source{0};  ///< Of the subscription that sent it.
  std::size_t number{0};   ///< Of the event.
  std::int64_t seq{0};
  EventId id{};
  std::size_t attempt{1};
  unsigned key{0};
  unsigned lane{0};
  EventId worker{};
  std::int64_t generation{0};  ///< Under which it was sent.
  relay::TimePoint began{};    ///< Or was taken.
  Way way{Way::ends};
  int left{0};  ///< Steps.
  TaskEnd end{TaskEnd::done()};
  bool told{false};      ///< To stop.
  bool dropped{false};   ///< Its end is reported already, or does not count.
  bool replaced{false};  ///< Its thread is given up.
  bool taken{false};     ///< Its worker counts as dead, or a person has decided.
  std::optional<sink::KeptRun> kept{};
  task::Permit permit{};  ///< Of a type with a limit.
};

}  // namespace outbox::sim
