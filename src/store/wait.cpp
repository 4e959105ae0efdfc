#include "store/wait.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"

namespace outbox::store {

Result<bool> wait_for(const EventFd& interrupted, int fd,
                      std::chrono::steady_clock::time_point until) {
  const auto left = until - std::chrono::steady_clock::now();
  const auto ns = std::max<std::int64_t>(std::chrono::nanoseconds(left).count(), 0);
  const timespec timeout{.tv_sec = static_cast<time_t>(ns / 1'000'000'000),
                         .tv_nsec = static_cast<long>(ns % 1'000'000'000)};
  std::array<pollfd, 2> fds{{{.fd = interrupted.fd(), .events = POLLIN, .revents = 0},
                             {.fd = fd, .events = POLLIN, .revents = 0}}};
  const int ready = ::ppoll(fds.data(), fds.size(), &timeout, nullptr);
  if (ready < 0 && errno != EINTR) return fail(Errc::internal, "wait for a wake-up: poll failed");
  return ready > 0 && fds[0].revents != 0 && interrupted.clear();
}

}  // namespace outbox::store
