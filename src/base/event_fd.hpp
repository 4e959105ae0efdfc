// An eventfd: one thread signals, and another that polls the descriptor wakes up.
#pragma once

#include <outbox/error.hpp>

namespace outbox {

class EventFd {
 public:
  [[nodiscard]] static Result<EventFd> create();

  EventFd(EventFd&& other) noexcept;
  EventFd& operator=(EventFd&&) = delete;
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;
  ~EventFd();

  /// May be called by any thread and in a signal handler.
  void signal() const noexcept;
  /// Resets the signal. Returns false if there was none.
  bool clear() const noexcept;
  /// A descriptor that is readable while there is a signal.
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  explicit EventFd(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace outbox
