#include "store/postgres/event_fd.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace outbox::store::postgres {

Result<EventFd> EventFd::create() {
  const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0)
    return fail(Errc::unavailable,
                std::string("cannot create an eventfd: ") + std::strerror(errno));
  return EventFd(fd);
}

EventFd::EventFd(EventFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

EventFd::~EventFd() {
  if (fd_ >= 0) ::close(fd_);
}

void EventFd::ring() const noexcept {
  const std::uint64_t one = 1;
  // Fails only when it has rung 2^64 times and nobody looked.
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
}

void EventFd::silence() const noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(fd_, &count, sizeof count);
}

}  // namespace outbox::store::postgres
