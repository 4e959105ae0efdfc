// The connection of a run tracker. It executes statements by the rules of tables.cpp, and may break
// before or after any of them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/groups/shared.hpp"
#include "store/tasks.hpp"

namespace outbox::sim {

class SimTaskRuns final : public store::TaskRuns {
 public:
  SimTaskRuns(GroupShared& world, const EventId& worker) : world_(world), worker_(worker) {}

  // What the last statement was, for the checks.
  bool beaten{false};
  std::optional<std::vector<store::TaskRunRow>> own{};
  bool stops{false};  ///< Whether the worker stops.

  [[nodiscard]] Result<std::int64_t> beat(const EventId& worker, std::string_view /*name*/,
                                          std::string_view /*note*/) override {
    if (breaks()) return lost();
    world_.tables.beat(worker, world_.server_now());
    world_.runs.beats(worker, world_.now);
    beaten = true;
    return std::chrono::duration_cast<std::chrono::microseconds>(
               world_.server_now().time_since_epoch())
        .count();
  }
  [[nodiscard]] Status leave(const EventId& worker) override {
    if (worker == worker_ && world_.options.once && !world_.tables.runs_of(worker).empty())
      world_.checks.broke("a worker leaves, and a row says that it runs there");
    world_.tables.forget_worker(worker);
    return {};
  }
  [[nodiscard]] Result<std::vector<store::TaskRunRow>> runs_of(
      const EventId& worker, std::span<const std::string> /*subscriptions*/,
      std::size_t /*limit*/) override {
    if (breaks()) return lost();
    auto rows = world_.tables.runs_of(worker);
    if (worker == worker_) own = rows;
    return rows;
  }
  [[nodiscard]] Result<std::vector<store::OtherWorker>> others(
      const EventId& me, std::span<const std::string> /*subscriptions*/) override {
    if (breaks()) return lost();
    return world_.tables.others(me);
  }
  /// Writes all of these in one transaction.
  [[nodiscard]] Status end(std::span<const store::TaskRunEnd> ends,
                           std::span<const store::TaskFinish> finishes) override {
    const bool breaks =
        world_.options.lost_connections > 0 && !world_.healed && world_.random.chance(5);
    if (breaks && world_.random.chance(50)) return lost();
    const std::vector<store::TaskRunEnd> all(ends.begin(), ends.end());
    world_.runs.writes(all, worker_);
    const auto written =
        world_.tables.end_runs(all, {finishes.begin(), finishes.end()}, world_.server_now());
    world_.runs.written(written);
    for (std::size_t i = 0; i < all.size(); ++i) note(all[i], written[i]);
    if (breaks) return lost();
    return {};
  }
  [[nodiscard]] Status announce_free_threads(
      const EventId& worker, const std::map<std::string, std::size_t>& free) override {
    if (breaks()) return lost();
    world_.tables.announce_free_threads(worker, free.begin()->second);
    if (breaks()) return lost();
    return {};
  }
  [[nodiscard]] Result<store::OtherThreads> other_threads(
      const EventId& me, std::string_view /*queue*/, std::chrono::milliseconds alive) override {
    if (breaks()) return lost();
    return world_.tables.other_threads(me, world_.server_now(), alive);
  }
  [[nodiscard]] Result<store::ClaimedTasks> claim(const EventId& worker,
                                                  std::span<const std::string> /*subscriptions*/,
                                                  std::span<const std::string> types,
                                                  std::size_t limit) override {
    if (stops) world_.checks.broke("a worker claims tasks that stops");
    if (breaks()) return lost();
    const auto rows = world_.tables.claim_ready(worker, types, limit);
    const auto& subscriptions = world_.tables.catalog().rows();
    store::ClaimedTasks claimed;
    for (const auto& [subscription, row] : rows) {
      world_.runs.claimed(number_of(row.event.id));
      world_.trace("worker ", +worker_.bytes[0], " claims task ", number_of(row.event.id),
                   ", token ", row.token);
      claimed.tasks.push_back(
          {.subscription = subscription,
           .subscription_name = subscriptions[static_cast<std::size_t>(subscription - 1)].spec.name,
           .attempts = row.attempts,
           .token = row.token,
           .event = row.event});
    }
    world_.result.claimed += claimed.tasks.size();
    if (breaks()) return lost();
    return claimed;
  }

  // These worlds have no unique keys and no progress.
  [[nodiscard]] Result<std::vector<store::MayBegin>> begin_unique(
      std::span<const store::UniqueTask> tasks) override {
    return std::vector<store::MayBegin>(tasks.size(), store::MayBegin::begin);
  }
  [[nodiscard]] Result<std::vector<store::ReplacedTask>> replaced(
      std::span<const std::string> /*subscriptions*/) override {
    return std::vector<store::ReplacedTask>{};
  }
  [[nodiscard]] Result<bool> wait(const EventFd& /*bell*/,
                                  std::chrono::steady_clock::time_point /*until*/) override {
    return false;
  }
  [[nodiscard]] Status report(const EventId& /*worker*/,
                              std::span<const store::TaskProgress> /*progress*/) override {
    return {};
  }

 private:
  [[nodiscard]] bool breaks() {
    return world_.options.lost_connections > 0 && !world_.healed && world_.random.below(200) == 0;
  }
  static tl::unexpected<Error> lost() { return fail(Errc::unavailable, "the connection is lost"); }

  void note(const store::TaskRunEnd& end, bool written) {
    const std::size_t number = number_of(end.result.id);
    world_.trace("worker ", +worker_.bytes[0], " writes the end of task ", number, ", token ",
                 end.token, ": ", end.result.state ? store::to_string(*end.result.state) : "done",
                 written ? "" : ", refused");
    if (!written) return;
    if (world_.tables.parked(end.result.subscription).discarded().contains(end.result.seq)) {
      ++world_.result.cancelled;
      world_.checks.discarded(number);
    } else if (end.result.state == store::ParkedState::dead) {
      ++world_.result.dead;
      world_.checks.died(number);
    }
  }

  GroupShared& world_;
  const EventId worker_;
};

}  // namespace outbox::sim
