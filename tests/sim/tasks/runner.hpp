// The threads of a worker, and the handlers on them, one step at a time. What they know together,
// and the sinks before them, are the worker's own: src/task/runner_core.cpp and queue_sink.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/groups/shared.hpp"
#include "sim/tasks/run.hpp"
#include "sink/run_owner.hpp"
#include "task/queue_sink.hpp"
#include "task/runner_core.hpp"
#include "task/store_clock.hpp"

namespace outbox::sim {

/// A send that has a row for so long.
inline constexpr std::chrono::milliseconds kRowAfter{10};

class SimRunner final {
 public:
  /// `clock`: the local one of the process. `most`: so many tasks of the type that has a limit may
  /// run at once; 0: it has none.
  SimRunner(GroupShared& world, const EventId& worker, const relay::TimePoint::duration& clock,
            std::size_t most);

  // ---- the sinks; a source is one of their subscriptions

  [[nodiscard]] Status open(task::Source source) { return sinks_[source]->open(); }
  /// False: it stays where it is.
  [[nodiscard]] bool take(task::Source source, const Message& message, std::int64_t generation);
  [[nodiscard]] std::vector<Outcome> receive(task::Source source);
  /// The sink has called wake().
  [[nodiscard]] bool rings(task::Source source) const { return rung_[source]; }
  void purge(task::Source source) { sinks_[source]->purge(); }
  void follow(task::Source source, const sink::RunRules& rules) { sinks_[source]->follow(rules); }
  [[nodiscard]] const EventId& worker() const { return worker_; }
  [[nodiscard]] bool keep(task::Source source, Token token, const sink::KeptRun& run);
  [[nodiscard]] bool rows_changed(task::Source source) { return core_->rows_changed(source); }

  // ---- the threads

  void step();
  /// Everything is gone.
  void crash() { world_.runs.process_is_gone(worker_); }
  /// A handler has killed the process.
  [[nodiscard]] bool killed() const { return killed_; }
  [[nodiscard]] bool idle() const;
  [[nodiscard]] const std::shared_ptr<task::RunnerCore>& core() const { return core_; }
  [[nodiscard]] static const task::RetrySchedule& retries();

 private:
  using Run = std::shared_ptr<SimRun>;
  struct Thread {
    std::shared_ptr<task::RunnerCore::Slot> slot{};
    std::shared_ptr<task::Batch> batch{};  ///< Of which it takes the next task.
    Run run{};                             ///< Its handler is busy with it.
    bool waits{false};                     ///< Until it is woken.
  };
  /// What the relay waits for.
  struct Sent {
    std::size_t number{0};
    std::int64_t generation{0};
  };

  [[nodiscard]] relay::TimePoint now() const { return world_.now + clock_; }
  void wake(std::size_t tasks);
  void replace(std::size_t place);
  void step(Thread& thread);
  void begin(Thread& thread);
  void decide(SimRun& run) const;
  void run(Thread& thread);
  void end(Thread& thread);
  void check_bells();

  GroupShared& world_;
  const EventId worker_;
  const relay::TimePoint::duration& clock_;
  const std::shared_ptr<task::RunnerCore> core_;
  std::array<std::unique_ptr<task::QueueSink>, kSubscriptions> sinks_;
  std::array<bool, kSubscriptions> rung_{};
  std::map<std::pair<task::Source, Token>, Sent> sent_;
  std::vector<Thread> threads_;
  bool killed_{false};
};

}  // namespace outbox::sim
