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

  /// Any thread; safe in a signal handler.
  void signal() const noexcept;
  /// Resets it. False: it was not signalled.
  bool clear() const noexcept;
  /// Readable while it is signalled.
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  explicit EventFd(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace outbox
