#include "base/signals.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "base/thread.hpp"

namespace outbox {
namespace {

using Clock = std::chrono::steady_clock;

/// Signals within this time count as one, because timeout(1) and some supervisors signal the
/// process and then its group.
constexpr std::chrono::milliseconds kSameSignal{250};

/// nohup(1) ignores SIGHUP so that we outlive the terminal.
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

EventFd event_fd() {
  auto made = EventFd::create();
  OUTBOX_CHECK(made.has_value());
  return std::move(*made);
}

}  // namespace

Signals::Signals(int exit_status)
    : exit_status_(exit_status), asked_(event_fd()), done_(event_fd()) {
  const sigset_t set = watched();
  OUTBOX_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  const int signals = signalfd(-1, &set, SFD_CLOEXEC);
  OUTBOX_CHECK(signals >= 0);
  watcher_ =
      start_thread("ob-signals", [this, signals](const std::stop_token&) { watch(signals); });
}

Signals::~Signals() {
  done_.signal();
  watcher_.join();
}

void Signals::wait() const {
  while (!wait_for(std::chrono::hours(1))) {
  }
}

bool Signals::wait_for(std::chrono::milliseconds longest, int seen) const {
  const MutexLock lock(mutex_);
  return changed_.wait_for(mutex_, longest, [&] { return count() > seen; });
}

void Signals::watch(int signals) noexcept {
  std::array<pollfd, 2> fds{{{.fd = signals, .events = POLLIN, .revents = 0},
                             {.fd = done_.fd(), .events = POLLIN, .revents = 0}}};
  Clock::time_point asked_at;
  while (true) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[1].revents != 0) break;
    // Signals that are pending together count as one.
    std::array<signalfd_siginfo, 3> pending{};
    if (read(signals, pending.data(), sizeof pending) < static_cast<ssize_t>(sizeof pending[0]))
      continue;
    const Clock::time_point now = Clock::now();
    if (asked() && now - asked_at < kSameSignal) continue;
    asked_at = now;
    {
      const MutexLock lock(mutex_);
      ++count_;
    }
    const int last = end_at_.load();
    if (last != 0 && count() >= last) std::_Exit(exit_status_);
    changed_.notify_all();
    asked_.signal();
  }
  close(signals);
}

}  // namespace outbox
