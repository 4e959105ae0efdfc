// What the processes of a world of groups share.
#pragma once

#include <cstdint>

#include "relay/trust_deadline.hpp"
#include "sim/groups/checks.hpp"
#include "sim/groups/database.hpp"
#include "sim/groups/tables.hpp"
#include "sim/random.hpp"
#include "sim/result.hpp"
#include "sim/sink.hpp"
#include "sim/tasks/checks.hpp"
#include "sim/trace.hpp"

namespace outbox::sim {

inline constexpr std::chrono::milliseconds kLease{120};

struct GroupOptions {
  std::uint64_t seed{1};
  int steps{500};
  unsigned keys{8};
  std::size_t most_relays{3};
  bool gapless{true};
  /// Whether other relays see at once that a process is gone; otherwise they see it only by its
  /// lease.
  bool same_machine{true};
  unsigned filtered_percent{10};
  unsigned fail_percent{2};
  unsigned lie_percent{0};
  // These decide which events are parked; see SimOptions.
  unsigned reject_percent{0};
  unsigned sick_percent{0};
  unsigned slow_percent{0};
  bool dead_blocks{false};
  // In how many of 1000 steps these happen:
  unsigned joins{0};
  unsigned leaves{0};
  unsigned crashes{0};
  unsigned pauses{0};   ///< A process is stopped (SIGSTOP). Its clock goes on.
  unsigned freezes{0};  ///< A process is stopped with its clock.
  unsigned jumps{0};    ///< The server's clock jumps.
  unsigned lost_connections{0};
  unsigned database_crashes{0};
  unsigned outages{0};  ///< The destination is down for all relays.
  unsigned people{0};   ///< A person sends a parked event again, or discards it.
  unsigned replays{0};  ///< A replay is started, stopped, or resumed.
  bool exact{false};    ///< Nothing happens that excuses a duplicate.
  /// The relays are workers, and their sinks are handlers. Handlers that reject fail, slow ones
  /// take long, and sick ones do not return until they are told to stop.
  bool tasks{false};
  unsigned kill_percent{0};  ///< So many of 100 tasks kill the worker a few times.
  unsigned snooze_percent{0};
  bool clocks_differ{false};  ///< The clocks of half of the processes differ by an hour.
  bool once{false};  ///< Nothing happens that excuses a task which was done and runs again.
  /// Workers from this one on have a limit for a type, which gets a subscription of its own. If it
  /// is 0, no worker has one.
  unsigned limited_from{0};
  /// In so many of 1000 steps a person pauses the type, which sets it apart, or resumes it.
  unsigned pauses_of_type{0};
  bool trace{false};

  [[nodiscard]] bool parks() const {
    return tasks || reject_percent + sick_percent + slow_percent > 0;
  }
};

struct GroupShared {
  explicit GroupShared(const GroupOptions& options_) : options(options_), random(options_.seed) {}

  [[nodiscard]] relay::TimePoint server_now() const { return now + server_offset; }
  /// Executes a transaction of a relay, and checks the promises for it. Returns nullopt if it was
  /// refused.
  [[nodiscard]] std::optional<std::uint64_t> write(const Batch& batch, int incarnation,
                                                   bool durably) {
    const auto w = tables.append(batch, incarnation, durably, server_now());
    if (!w) return w;
    checks.follow(tables.rows());
    checks.follow(tables.replay());
    if (options.tasks) runs.wrote(batch);
    for (const auto& event : batch.parked) {
      if (event.state != store::ParkedState::waiting) checks.set_aside(number_of(event.id));
      if (event.state == store::ParkedState::dead) checks.died(number_of(event.id));
    }
    for (const auto& retried : batch.results) {
      if (retried.state == store::ParkedState::dead) checks.died(number_of(retried.id));
      // A person had discarded the event while it ran.
      if (tables.parked(retried.subscription).discarded().contains(retried.seq))
        checks.discarded(number_of(retried.id));
    }
    return w;
  }

  const GroupOptions options;
  Random random;
  relay::TimePoint now{std::chrono::seconds(1000)};
  relay::TimePoint::duration server_offset{};
  bool healed{false};  ///< There are no more faults.
  int down_for{0};     ///< For how many more steps the destination is down.
  Database database{random, options.keys, options.filtered_percent, options.tasks};
  Tables tables{database, options.tasks, options.dead_blocks};
  Topic topic;
  GroupChecks checks{database, topic, tables, options.exact, options.dead_blocks};
  RunChecks runs{checks, database, tables, options.once};
  const Trace trace{options.trace, now};
  SimResult result;
};

}  // namespace outbox::sim
