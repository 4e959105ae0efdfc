#include "base/event_fd.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace outbox {

Result<EventFd> EventFd::create() {
  const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd >= 0) return EventFd(fd);
  return fail(Errc::unavailable, std::string("cannot create an eventfd: ") + std::strerror(errno),
              "raise the limit of open files");
}

EventFd::EventFd(EventFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

EventFd::~EventFd() {
  if (fd_ >= 0) ::close(fd_);
}

void EventFd::signal() const noexcept {
  const std::uint64_t one = 1;
  while (::write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

bool EventFd::clear() const noexcept {
  std::uint64_t count = 0;
  return ::read(fd_, &count, sizeof count) == sizeof count;
}

}  // namespace outbox
