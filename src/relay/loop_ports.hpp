// What the core of a loop has its driver do: a thread in a relay, dice in the simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/event.hpp>
#include <vector>

#include "relay/progress_work.hpp"
#include "relay/trust_deadline.hpp"
#include "store/ownership.hpp"
#include "store/parked.hpp"

namespace outbox::relay {

/// Called by LoopCore::step() only.
class LoopPorts {
 public:
  LoopPorts() = default;
  LoopPorts(const LoopPorts&) = delete;
  LoopPorts& operator=(const LoopPorts&) = delete;
  LoopPorts(LoopPorts&&) = delete;
  LoopPorts& operator=(LoopPorts&&) = delete;
  virtual ~LoopPorts() = default;

  /// The time after calls of the sink, which may have taken long.
  [[nodiscard]] virtual TimePoint now() = 0;
  /// Whether this relay certainly still owns its lanes.
  [[nodiscard]] virtual bool trusted(TimePoint now) = 0;
  /// The trust deadline has passed, and nothing more is sent.
  virtual void distrusted() = 0;
  /// The window may have room again.
  virtual void room() = 0;
  /// The replay is done on the lanes of this loop, and that is written.
  virtual void replay_done() = 0;

  /// Writes this; LoopCore::written() is the answer. `strand`: whose progress it is; none: these
  /// are the results of retries.
  virtual void write(ProgressWork work, std::optional<std::size_t> strand) = 0;
  /// Reads the parked events that are due, after everything before is written;
  /// LoopCore::due_read() is the answer. `besides`: so many more events are read, since so many
  /// cannot be sent now. `asked`: see store::Progress::due().
  virtual void read_due(std::size_t besides, const std::vector<store::AskedRow>& asked) = 0;
  /// Reads the keys of all parked events in the same way; LoopCore::keys_read() is the answer.
  virtual void read_keys() = 0;

  /// Records that these events are sent on trial next. Returns the generations of former runs that
  /// died; nothing if the store is lost.
  [[nodiscard]] virtual std::optional<std::vector<std::int64_t>> try_range(
      const store::Trials::Range& range) = 0;
  /// The relay has died so many times while it sent this event, which is not sent but parked.
  virtual void culprit_found(const EventView& event, std::size_t deaths) = 0;
  /// The trial is over, and these generations of former runs still matter. `tried`: how many events
  /// of the stream were sent on trial; none if the stream was not on trial.
  virtual void end_trial(const std::vector<std::int64_t>& keep,
                         std::optional<std::size_t> tried) = 0;
};

}  // namespace outbox::relay
