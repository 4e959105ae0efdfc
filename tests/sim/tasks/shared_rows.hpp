// The connection of a keeper of runs, as far as tasks for any worker are concerned. It may break at any statement, before or behind it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/groups/shared.hpp"
#include "store/tasks.hpp"

namespace outbox::sim {

class SimSharedRows final : public store::TaskRuns {
 public:
  explicit SimSharedRows(GroupShared& world) : world_(world) {}

  [[nodiscard]] Status announce_free_threads(
      const EventId& worker, const std::map<std::string, std::size_t>& free) override {
    if (breaks()) return lost();
    world_.tables.announce_free_threads(worker, free.begin()->second);
    return breaks() ? lost() : Status{};
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
    if (breaks()) return lost();
    const auto rows = world_.tables.claim_ready(worker, types, limit);
    store::ClaimedTasks claimed;
    for (const auto& [subscription, row] : rows) {
      world_.runs.claimed(number_of(row.event.id));
      claimed.tasks.push_back({.subscription = subscription,
                               .subscription_name = {},
                               .attempts = row.attempts,
                               .token = row.token,
                               .event = row.event});
    }
    if (breaks()) return lost();
    return claimed;
  }

  // What the exchange does not call.
  [[nodiscard]] Result<std::int64_t> beat(const EventId& /*worker*/, std::string_view /*name*/,
                                          std::string_view /*note*/) override {
    return unused();
  }
  [[nodiscard]] Status leave(const EventId& /*worker*/) override { return unused(); }
  [[nodiscard]] Result<std::vector<store::TaskRunRow>> runs_of(
      const EventId& /*worker*/, std::span<const std::string> /*subscriptions*/,
      std::size_t /*limit*/) override {
    return unused();
  }
  [[nodiscard]] Result<std::vector<store::OtherWorker>> others(
      const EventId& /*me*/, std::span<const std::string> /*subscriptions*/) override {
    return unused();
  }
  [[nodiscard]] Status end(std::span<const store::TaskRunEnd> /*ends*/,
                           std::span<const store::TaskFinish> /*finishes*/) override {
    return unused();
  }
  [[nodiscard]] Result<std::vector<store::MayBegin>> begin_unique(
      std::span<const store::UniqueTask> /*tasks*/) override {
    return unused();
  }
  [[nodiscard]] Result<std::vector<store::ReplacedTask>> replaced(
      std::span<const std::string> /*subscriptions*/) override {
    return unused();
  }
  [[nodiscard]] Result<bool> wait(const EventFd& /*bell*/,
                                  std::chrono::steady_clock::time_point /*until*/) override {
    return unused();
  }
  [[nodiscard]] Status report(const EventId& /*worker*/,
                              std::span<const store::TaskProgress> /*progress*/) override {
    return unused();
  }

 private:
  [[nodiscard]] bool breaks() {
    return world_.options.lost_connections > 0 && !world_.healed && world_.random.below(200) == 0;
  }
  static tl::unexpected<Error> lost() { return fail(Errc::unavailable, "the connection is lost"); }
  static tl::unexpected<Error> unused() { return fail(Errc::internal, "not in this world"); }

  GroupShared& world_;
};

}  // namespace outbox::sim
