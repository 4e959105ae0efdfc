#include "demo/interrupt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace outbox::demo {
namespace {

std::atomic<int> caught{0};
std::array<int, 2> bell{-1, -1};  // a pipe that the handler writes to

void handle(int /*signal*/) {
  const int saved = errno;
  caught.fetch_add(1, std::memory_order_relaxed);
  const char byte = 0;
  [[maybe_unused]] const auto written = write(bell[1], &byte, 1);
  errno = saved;
}

}  // namespace

Interrupt::Interrupt() {
  caught = 0;
  // Without a pipe signals are still counted, only seen a little later.
  if (pipe2(bell.data(), O_CLOEXEC | O_NONBLOCK) != 0) bell = {-1, -1};
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) (void)sigaction(kSignals[i], &action, &old_[i]);
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) (void)sigaction(kSignals[i], &old_[i], nullptr);
  for (int& fd : bell) {
    if (fd >= 0) (void)close(fd);
    fd = -1;
  }
}

int Interrupt::wait(std::chrono::milliseconds longest) const {
  pollfd waiting{.fd = bell[0], .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, static_cast<int>(longest.count())) > 0) {
    std::array<char, 64> rung{};
    [[maybe_unused]] const auto taken = read(bell[0], rung.data(), rung.size());
  }
  return count();
}

int Interrupt::count() const { return caught.load(std::memory_order_relaxed); }

}  // namespace outbox::demo
