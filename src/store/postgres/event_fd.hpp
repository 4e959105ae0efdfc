// A bell that poll() hears: an eventfd.
#pragma once

#include <outbox/error.hpp>

namespace outbox::store::postgres {

class EventFd {
 public:
  [[nodiscard]] static Result<EventFd> create();

  EventFd(EventFd&& other) noexcept;
  EventFd& operator=(EventFd&&) = delete;
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;
  ~EventFd();

  /// Any thread.
  void ring() const noexcept;
  /// Forgets that it rang.
  void silence() const noexcept;
  [[nodiscard]] int native() const noexcept { return fd_; }

 private:
  explicit EventFd(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace outbox::store::postgres
