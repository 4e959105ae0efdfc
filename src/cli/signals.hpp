// SIGINT, SIGTERM and SIGHUP as something a verb can wait for. The first one asks, the second one ends the process at once: events
// in flight are then delivered again, as after a crash.
//
// Create it before anything that starts threads: they inherit the mask that keeps the signals for this object.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace outbox::cli {

class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  Signals(Signals&&) = delete;
  Signals& operator=(Signals&&) = delete;
  ~Signals();

  [[nodiscard]] bool asked() const noexcept { return asked_.load(); }
  /// Becomes readable with the first signal, and stays so; for poll().
  [[nodiscard]] int fd() const noexcept { return asked_fd_; }
  /// Waits for the first signal.
  void wait() const;
  /// The same, not longer than that. True: a signal came.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds longest) const;
  /// While nothing is in flight yet, the first signal ends the process.
  void first_ends(bool ends) noexcept { first_ends_.store(ends); }

 private:
  void watch(int signals) noexcept;

  std::atomic<bool> asked_{false};
  std::atomic<bool> first_ends_{false};
  int asked_fd_{-1};
  int done_fd_{-1};
  std::jthread watcher_;
};

}  // namespace outbox::cli
