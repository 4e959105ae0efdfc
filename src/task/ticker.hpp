// Enqueues the tasks of schedules: a thread with its own connection. Each worker has one, and any
// of them enqueues the task of a tick; the store lets one do it (store/tasks.hpp).
//
// Threads: one of its own; start() and stop() by one thread at a time.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <outbox/schedule.hpp>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/outage.hpp"
#include "store/store.hpp"

namespace outbox::task {

class Ticker {
 public:
  /// Applies `schedules`, which are valid, and ticks all schedules of `queues` and of their queues.
  Ticker(std::vector<Schedule> schedules, const std::set<std::string>& queues,
         store::StoreOptions store);
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;
  Ticker(Ticker&&) = delete;
  Ticker& operator=(Ticker&&) = delete;
  ~Ticker() = default;

  void start();
  void request_stop() noexcept { thread_.request_stop(); }
  /// Returns when no more ticks come from here.
  void stop();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void run(const std::stop_token& stop);
  /// Returns how long to wait.
  [[nodiscard]] Result<std::chrono::nanoseconds> work(const std::stop_token& stop);
  [[nodiscard]] Status connect();
  [[nodiscard]] Status apply();
  /// Returns false if no tick of the schedule was done here, for whatever reason.
  [[nodiscard]] Result<bool> tick(const store::ScheduleRow& row, std::int64_t now_us);
  void complain(const store::ScheduleRow& row, const Error& error);
  void note(const Status& status);

  const std::vector<Schedule> schedules_;
  const store::StoreOptions where_;
  std::vector<std::string> queues_;

  // These belong to the thread while it runs.
  std::unique_ptr<store::Schedules> rows_;
  bool applied_{false};
  int failures_{0};
  OutageLog outage_{"schedules cannot tick, retries", "schedules tick again"};
  std::map<std::string, Outage> faults_;  ///< The faults of single schedules.

  std::jthread thread_;
};

}  // namespace outbox::task
