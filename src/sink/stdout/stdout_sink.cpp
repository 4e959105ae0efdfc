#include "sink/stdout/stdout_sink.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

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

constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

/// A reader that goes away must not end the process, whatever the application does with SIGPIPE.
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
  Error error{.code = Errc::unavailable,
              .remedy = Remedy::retry_call,
              .effect = Effect::none,
              .message = "stdout: " + std::generic_category().message(number),
              .hint = {},
              .origin = {}};
  if (number == EPIPE) {
    error.message = "stdout: nobody reads it any more";
    error.hint = "the program behind the pipe has ended; start both again";
  }
  return error;
}

struct Written {
  std::size_t bytes{0};
  int failure{0};
};

/// Waits for a slow reader as long as it takes: that is what a pipe is for.
Written write_all(int file, std::string_view text) {
  NoSigpipe guard;
  Written written;
  while (written.bytes < text.size()) {
    const ssize_t count = ::write(file, text.data() + written.bytes, text.size() - written.bytes);
    if (count >= 0) {
      written.bytes += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd room{.fd = file, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      written.failure = errno;
      if (written.failure == EPIPE) guard.raised();
      break;
    }
  }
  return written;
}

}  // namespace

Status StdoutSink::open() {
  if (::fcntl(file_, F_GETFD) < 0) return fail(trouble(errno));
  pollfd state{.fd = file_, .events = POLLOUT, .revents = 0};
  if (::poll(&state, 1, 0) < 0) return fail(trouble(errno));
  if ((state.revents & POLLERR) != 0) return fail(trouble(EPIPE));
  failed_ = false;
  return {};
}

std::size_t StdoutSink::deliver(std::span<const Message> batch, Outcome& failure) {
  if (failed_) {
    failure.kind = Outcome::Kind::retry;
    failure.error = trouble(EPIPE);
    return 0;
  }
  std::size_t delivered = 0;
  while (delivered < batch.size()) {
    lines_.clear();
    ends_.clear();
    if (torn_) lines_.push_back('\n');  // what was cut short stays a line of its own
    for (const Message& message : batch.subspan(delivered)) {
      append_json_line(lines_, message);
      ends_.push_back(lines_.size());
      if (lines_.size() >= kPieceBytes) break;
    }
    const Written written = write_all(file_, lines_);
    const auto after = std::upper_bound(ends_.begin(), ends_.end(), written.bytes);
    delivered += static_cast<std::size_t>(after - ends_.begin());
    if (written.bytes > 0) torn_ = lines_[written.bytes - 1] != '\n';
    if (written.failure == 0) continue;
    failed_ = true;
    failure.kind = Outcome::Kind::blocked;
    failure.error = trouble(written.failure);
    return delivered;
  }
  return delivered;
}

Kind stdout_kind() {
  return {.info = {.name = "stdout", .help = "prints each event as a line of JSON", .settings = {}},
          .check = {},
          .make = [](const Settings&) -> Result<std::unique_ptr<Sink>> {
            return std::make_unique<StdoutSink>();
          }};
}

}  // namespace outbox::sink
