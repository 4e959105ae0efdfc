#include "task/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/event_fd.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace outbox::task {
namespace {

using Clock = std::chrono::steady_clock;

/// Owns a descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { close(); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

 private:
  int fd_{-1};
};

struct Pipe {
  Fd read;
  Fd write;
};

Error system_error(const std::string& what) {
  return fail(Errc::unavailable, Remedy::retry_call,
              what + ": " + std::strerror(errno))  // NOLINT(concurrency-mt-unsafe): glibc's is safe
      .value();
}

/// In a process without standard input or output a pipe may have their numbers, which the child
/// needs for itself.
Fd above_standard(Fd fd) {
  return fd.get() > 2 ? std::move(fd) : Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return tl::unexpected(system_error("pipe"));
  return Pipe{above_standard(Fd(ends[0])), above_standard(Fd(ends[1]))};
}

void set_nonblocking(const Fd& fd) {
  (void)::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

/// The pointers that execve() takes; they are valid as long as the texts.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  // execve() does not change the texts.
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> whole_environment(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  const auto is_given = [&](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    return std::any_of(more.begin(), more.end(),
                       [&](const std::string& one) { return one.starts_with(name); });
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_given(*entry)) all.emplace_back(*entry);
  }
  return all;
}

/// What the child needs before its program runs.
struct Birth {
  char* const* arguments;
  char* const* environment;
  int input;
  int output;
  int errors;
  int report;  ///< Gets errno if the program cannot be run.
  pid_t parent;
};

/// Runs in the child of a program with threads, so it makes only calls that are safe in a signal
/// handler (fork(2), signal-safety(7)).
[[noreturn]] void become(const Birth& birth) {
  const auto give_up = [&] {
    const int reason = errno;
    (void)!::write(birth.report, &reason, sizeof reason);
    ::_exit(127);
  };
  sigset_t none;
  sigemptyset(&none);
  for (int number = 1; number < SIGRTMIN; ++number) (void)::signal(number, SIG_DFL);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::setpgid(0, 0) != 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up();
  if (::getppid() != birth.parent) ::_exit(127);  // the parent has died before
  if (::dup2(birth.input, 0) < 0 || ::dup2(birth.output, 1) < 0 || ::dup2(birth.errors, 2) < 0)
    give_up();
  // Other descriptors have the flag close-on-exec only if those who opened them were careful, so
  // all of them get it.
  (void)::syscall(SYS_close_range, 3U, ~0U, 1U << 2U);  // CLOSE_RANGE_CLOEXEC
  ::execve(birth.arguments[0], birth.arguments, birth.environment);
  give_up();
  ::_exit(127);
}

class Child {
 public:
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        pidfd_(std::move(other.pidfd_)),
        input_(std::move(other.input_)),
        output_(std::move(other.output_)),
        errors_(std::move(other.errors_)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    (void)wait();
  }

  [[nodiscard]] static Result<Child> start(const ChildOptions& options);

  void signal(int number) const {
    if (pid_ > 0) (void)::kill(-pid_, number);
  }
  /// Waits until the child has ended, and kills what is left of its process group, which has no use
  /// any more.
  int wait() {
    // Until the child is reaped, no other process group can have its number.
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) < 0 &&
           errno == EINTR) {
    }
    (void)::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  [[nodiscard]] const Fd& pidfd() const { return pidfd_; }
  [[nodiscard]] Fd& input() { return input_; }
  [[nodiscard]] Fd& output() { return output_; }
  [[nodiscard]] Fd& errors() { return errors_; }

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  Fd pidfd_;
  Fd input_;
  Fd output_;
  Fd errors_;
};

Result<Child> Child::start(const ChildOptions& options) {
  OUTBOX_TRY(Pipe input, make_pipe());
  OUTBOX_TRY(Pipe output, make_pipe());
  OUTBOX_TRY(Pipe errors, make_pipe());
  OUTBOX_TRY(Pipe report, make_pipe());
  const auto arguments = pointers_to(options.command);
  const std::vector<std::string> texts = whole_environment(options.environment);
  const auto environment = pointers_to(texts);
  const Birth birth{.arguments = arguments.data(),
                    .environment = environment.data(),
                    .input = input.read.get(),
                    .output = output.write.get(),
                    .errors = errors.write.get(),
                    .report = report.write.get(),
                    .parent = ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return tl::unexpected(system_error("fork"));
  if (pid == 0) become(birth);
  Child child(pid);
  (void)::setpgid(pid, pid);  // both parent and child do so: either may be first
  report.write.close();
  int reason = 0;
  ssize_t size = 0;
  do size = ::read(report.read.get(), &reason, sizeof reason);
  while (size < 0 && errno == EINTR);
  if (size == sizeof reason) {
    errno = reason;
    return tl::unexpected(system_error(options.command.front()));
  }
  child.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!child.pidfd_.is_open()) return tl::unexpected(system_error("pidfd_open"));
  child.input_ = std::move(input.write);
  child.output_ = std::move(output.read);
  child.errors_ = std::move(errors.read);
  for (const Fd* fd : {&child.input_, &child.output_, &child.errors_}) set_nonblocking(*fd);
  return child;
}

/// Moves texts between this process and the child until the child ends.
class Conversation {
 public:
  Conversation(Child& child, const ChildOptions& options, std::string_view input,
               const EventFd& stopped)
      : child_(child), options_(options), input_(input), stopped_(stopped) {
    if (input_.empty()) child_.input().close();
  }

  ChildEnd run() {
    while (!step()) {
    }
    read(child_.output(), end_.output, false);
    read(child_.errors(), end_.errors, true);
    end_.status = child_.wait();
    return std::move(end_);
  }

 private:
  /// Returns true if the child has ended.
  bool step() {
    std::array<pollfd, 5> fds{{{child_.pidfd().get(), POLLIN, 0},
                               {end_.told ? -1 : stopped_.fd(), POLLIN, 0},
                               {child_.input().get(), POLLOUT, 0},
                               {child_.output().get(), POLLIN, 0},
                               {child_.errors().get(), POLLIN, 0}}};
    (void)::poll(fds.data(), fds.size(), time_left());
    if (fds[1].revents != 0) tell();
    if (kill_at_ && Clock::now() >= *kill_at_) {
      child_.signal(SIGKILL);
      kill_at_.reset();
    }
    if (fds[2].revents != 0) write();
    if (fds[3].revents != 0) read(child_.output(), end_.output, false);
    if (fds[4].revents != 0) read(child_.errors(), end_.errors, true);
    return fds[0].revents != 0;
  }

  [[nodiscard]] int time_left() const {
    if (!kill_at_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  void tell() {
    end_.told = true;
    child_.signal(SIGTERM);
    kill_at_ = Clock::now() + options_.patience;
  }

  /// A program may end, or close its input, without having read it.
  void write() {
    const ssize_t written = ::write(child_.input().get(), input_.data(), input_.size());
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    input_.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : input_.size());
    if (input_.empty()) child_.input().close();
  }

  void read(Fd& from, std::string& into, bool keeps_end) const {
    std::array<char, 16384> piece{};
    while (from.is_open()) {
      const ssize_t size = ::read(from.get(), piece.data(), piece.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) return from.close();
      into.append(piece.data(), static_cast<std::size_t>(size));
      if (into.size() <= options_.most_output) continue;
      keeps_end ? into.erase(0, into.size() - options_.most_output)
                : into.erase(options_.most_output);
    }
  }

  Child& child_;
  const ChildOptions& options_;
  std::string_view input_;
  const EventFd& stopped_;
  ChildEnd end_;
  std::optional<Clock::time_point> kill_at_;
};

/// Writing to a pipe that nobody reads must not end this process. SIGPIPE is blocked in this
/// thread, and a pending one is taken before it is unblocked.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    (void)::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  NoPipeSignal(NoPipeSignal&&) = delete;
  NoPipeSignal& operator=(NoPipeSignal&&) = delete;
  ~NoPipeSignal() {
    const timespec at_once{};
    while (::sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
    }
    (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace

Result<ChildEnd> run_child(const ChildOptions& options, std::string_view input,
                           std::stop_token stop) {
  OUTBOX_CHECK(!options.command.empty());
  OUTBOX_TRY(const EventFd stopped, EventFd::create());
  const NoPipeSignal no_signal;
  OUTBOX_TRY(Child child, Child::start(options));
  const std::stop_callback on_stop(std::move(stop), [&stopped] { stopped.signal(); });
  return Conversation(child, options, input, stopped).run();
}

}  // namespace outbox::task
