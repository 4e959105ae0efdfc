#include "sink/stdout/stdout_sink.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "sink/json_line.hpp"

namespace outbox::sink {
namespace {

/// When this many bytes wait for the reader, no more messages are taken.
constexpr std::size_t kMostWaiting = std::size_t{1} << 20U;
/// A pipe that poll(2) reports writable takes this much without blocking: pipe(7).
constexpr std::size_t kPipePieceBytes = 4096;
/// How long one call waits for the reader.
constexpr int kRoomWaitMs = 20;

/// Blocks SIGPIPE, whatever the application does with it: a reader's exit must not end the process.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t waiting;
    sigpending(&waiting);
    was_waiting_ = sigismember(&waiting, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const timespec now{};
    if (raised_ && !was_waiting_) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

  void raised() { raised_ = true; }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_waiting_{false};
  bool raised_{false};
};

Error trouble(int number) {
  if (number == EPIPE)
    return fail(Errc::unavailable, Remedy::retry_call, "stdout: its reader has exited",
                "restart the program that reads the pipe, and the relay")
        .value();
  return fail(Errc::unavailable, Remedy::retry_call,
              "stdout: " + std::generic_category().message(number))
      .value();
}

}  // namespace

Status StdoutSink::open() {
  if (::fcntl(file_, F_GETFD) < 0) return fail(trouble(errno));
  pollfd state{.fd = file_, .events = POLLOUT, .revents = 0};
  if (::poll(&state, 1, 0) < 0) return fail(trouble(errno));
  if ((state.revents & POLLERR) != 0) return fail(trouble(EPIPE));
  struct stat found {};
  whole_pieces_ = ::fstat(file_, &found) == 0 && S_ISREG(found.st_mode);
  failed_ = false;
  return {};
}

std::size_t StdoutSink::send(std::span<const Message> messages) {
  write_some();
  std::size_t taken = 0;
  for (; taken < messages.size() && !failed_ && lines_.size() < kMostWaiting; ++taken) {
    // The line that was cut short stays on its own line.
    if (std::exchange(cut_, false)) lines_.push_back('\n');
    append_json_line(lines_, messages[taken]);
    waiting_.push_back({.token = messages[taken].token, .end = lines_.size()});
  }
  write_some();
  return taken;
}

void StdoutSink::receive(std::vector<Outcome>& outcomes) {
  write_some();
  for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  ready_.clear();
  if (!waiting_.empty()) wake();  // This sink waits for the reader, not for the relay.
}

void StdoutSink::write_some() {
  NoSigpipe guard;
  while (!waiting_.empty()) {
    if (!wait_for_room()) return;
    const std::size_t left = lines_.size() - written_;
    const std::size_t piece = whole_pieces_ ? left : std::min(left, kPipePieceBytes);
    const ssize_t count = ::write(file_, lines_.data() + written_, piece);
    if (count >= 0) {
      wrote(static_cast<std::size_t>(count));
    } else if (errno != EINTR && errno != EAGAIN) {
      const int number = errno;
      if (number == EPIPE) guard.raised();
      return fail_all(Outcome::Kind::blocked, trouble(number));
    }
  }
}

/// Returns true for an error, too: the write reports it.
bool StdoutSink::wait_for_room() const {
  pollfd state{.fd = file_, .events = POLLOUT, .revents = 0};
  return ::poll(&state, 1, kRoomWaitMs) > 0;
}

void StdoutSink::wrote(std::size_t bytes) {
  if (bytes == 0) return;
  written_ += bytes;
  mid_line_ = lines_[written_ - 1] != '\n';
  while (!waiting_.empty() && waiting_.front().end <= written_) {
    ready_.push_back({.token = waiting_.front().token, .kind = Outcome::Kind::acked});
    waiting_.pop_front();
  }
  if (waiting_.empty()) {
    lines_.clear();
    written_ = 0;
  } else if (written_ >= kMostWaiting / 2) {
    lines_.erase(0, written_);
    for (Waiting& one : waiting_) one.end -= written_;
    written_ = 0;
  }
}

/// Fails all that waits. `first` is the outcome of the message whose line was next.
void StdoutSink::fail_all(Outcome::Kind first, const Error& error) {
  failed_ = true;
  cut_ = mid_line_;
  auto kind = first;
  for (const Waiting& one : waiting_) {
    ready_.push_back({.token = one.token, .kind = kind, .error = error});
    kind = Outcome::Kind::retry;
  }
  waiting_.clear();
  lines_.clear();
  written_ = 0;
}

void StdoutSink::purge() {
  if (waiting_.empty()) return;
  Error why = fail(Errc::cancelled, Remedy::retry_call,
                   "stdout: the relay gave up before the reader took it")
                  .value();
  why.effect = Effect::unknown;
  fail_all(Outcome::Kind::unknown, why);
}

SinkKind stdout_kind() {
  return make_kind<NoSettings>(
      {.name = "stdout",
       .help = "prints each event as a line of JSON",
       .make = [](NoSettings) -> Result<std::unique_ptr<Sink>> {
         return std::make_unique<StdoutSink>();
       },
       .inspect = [](NoSettings, const SubscriptionSpec&) -> Result<Inspection> {
         return Inspection{.destination = "the relay's standard output",
                           .acked = "the kernel has the line; its reader may not have read it",
                           .duplicates = "after a crash of the relay or a takeover",
                           .order = "of each key"};
       }});
}

}  // namespace outbox::sink
