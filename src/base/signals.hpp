// SIGINT, SIGTERM and SIGHUP as something a program can wait for. The first signal asks it to stop;
// the second one ends the process at once: events in flight are then delivered again, as after a
// crash.
//
// Create it before anything that starts threads, which inherit the mask that reserves the signals.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"

namespace outbox {

class Signals {
 public:
  /// `exit_status` is that of a process that a signal ends.
  explicit Signals(int exit_status);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  /// Lets signals from the `number`-th on end the process at once; with 0 none does. Default: 2.
  /// Use 1 while nothing is in flight.
  void end_at(int number) noexcept { end_at_.store(number); }

  /// The number of signals so far.
  [[nodiscard]] int count() const noexcept { return count_.load(); }
  [[nodiscard]] bool asked() const noexcept { return count() > 0; }
  /// A descriptor for poll(), readable from the first signal on.
  [[nodiscard]] int fd() const noexcept { return asked_.fd(); }
  /// Waits for the first signal.
  void wait() const;
  /// Waits until count() exceeds `seen`, at most for `longest`. Returns whether it does.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds longest, int seen = 0) const;

 private:
  void watch(int signals) noexcept;

  const int exit_status_;
  std::atomic<int> end_at_{2};
  EventFd asked_;
  EventFd done_;
  /// Changed with the mutex held, so that no waiting thread misses it.
  std::atomic<int> count_{0};
  mutable Mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::jthread watcher_;
};

}  // namespace outbox
