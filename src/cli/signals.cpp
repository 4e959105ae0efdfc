#include "cli/signals.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "base/error.hpp"
#include "base/thread.hpp"
#include "cli/exit.hpp"

namespace outbox::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// timeout(1) and some supervisors signal the process and then its group: that is one wish, not two.
constexpr std::chrono::milliseconds kSameSignal{250};

/// By nohup(1): it wants us to go on when the terminal is closed.
bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

void ring(int fd) noexcept {
  const std::uint64_t one = 1;
  while (write(fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace

Signals::Signals() : asked_fd_(eventfd(0, EFD_CLOEXEC)), done_fd_(eventfd(0, EFD_CLOEXEC)) {
  const sigset_t set = watched();
  OUTBOX_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  const int signals = signalfd(-1, &set, SFD_CLOEXEC);
  OUTBOX_CHECK(asked_fd_ >= 0 && done_fd_ >= 0 && signals >= 0);
  watcher_ =
      start_thread("ob-signals", [this, signals](const std::stop_token&) { watch(signals); });
}

Signals::~Signals() {
  ring(done_fd_);
  watcher_.join();
  close(asked_fd_);
  close(done_fd_);
}

void Signals::wait() const {
  while (!wait_for(std::chrono::hours(1))) {
  }
}

bool Signals::wait_for(std::chrono::milliseconds longest) const {
  pollfd asked{.fd = asked_fd_, .events = POLLIN, .revents = 0};
  return poll(&asked, 1, static_cast<int>(longest.count())) > 0;
}

void Signals::watch(int signals) noexcept {
  std::array<pollfd, 2> fds{{{.fd = signals, .events = POLLIN, .revents = 0},
                             {.fd = done_fd_, .events = POLLIN, .revents = 0}}};
  Clock::time_point asked_at;
  while (true) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[1].revents != 0) break;
    // All kinds at once: what came while nobody looked is one wish.
    std::array<signalfd_siginfo, 3> pending{};
    if (read(signals, pending.data(), sizeof pending) < static_cast<ssize_t>(sizeof pending[0]))
      continue;
    const Clock::time_point now = Clock::now();
    if (asked_ && now - asked_at < kSameSignal) continue;
    if (asked_.exchange(true) || first_ends_.load()) std::_Exit(kInterrupted);
    asked_at = now;
    ring(asked_fd_);
  }
  close(signals);
}

}  // namespace outbox::cli
