#include "base/event_fd.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace outbox {
namespace {

bool readable(const EventFd& event, int wait_ms) {
  pollfd wanted{.fd = event.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&wanted, 1, wait_ms) > 0;
}

TEST(EventFd, is_readable_from_the_signal_until_it_is_cleared) {
  const EventFd event = std::move(EventFd::create().value());
  EXPECT_FALSE(readable(event, 0));
  EXPECT_FALSE(event.clear());
  event.signal();
  event.signal();
  EXPECT_TRUE(readable(event, 0));
  EXPECT_TRUE(event.clear());
  EXPECT_FALSE(readable(event, 0));
}

TEST(EventFd, wakes_a_thread_that_polls) {
  const EventFd event = std::move(EventFd::create().value());
  bool woken = false;
  std::jthread waiting([&] { woken = readable(event, 60'000); });
  event.signal();
  waiting.join();
  EXPECT_TRUE(woken);
}

}  // namespace
}  // namespace outbox
