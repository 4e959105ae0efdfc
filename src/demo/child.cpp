#include "demo/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace outbox::demo {
namespace {

constexpr std::chrono::milliseconds kLookEvery{5};
constexpr int kCannotExecute = 127;

/// Between fork and exec of a program with threads only async-signal-safe calls are allowed.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment,
                         int input, int output, pid_t parent) {
  // Its own group: Ctrl-C reaches us alone, and we decide.
  (void)setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(kCannotExecute);
  if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(output, STDERR_FILENO) < 0) {
    _exit(kCannotExecute);
  }
  execve(program, arguments, environment);
  _exit(kCannotExecute);
}

int open_file(const char* path, int flags) {
  int fd = -1;
  do {
    fd = open(path, flags | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// Settings of ours in the environment are meant for us: they would overrule what we give the child.
std::vector<char*> environment_of_child() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "OUTBOX_", 7) != 0) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

tl::unexpected<Error> cannot(const std::string& what, int code) {
  return fail(Errc::internal, what + ": " + std::strerror(code));
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<Child> Child::start(const ChildOptions& options) {
  std::vector<char*> arguments;
  for (const std::string& argument : options.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> environment = environment_of_child();
  const int output = open_file(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  if (output < 0) return cannot("cannot write " + options.log.string(), errno);
  const int input = options.input >= 0 ? options.input : open_file("/dev/null", O_RDONLY);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0)
    become(options.program.c_str(), arguments.data(), environment.data(), input, output, parent);
  const int code = errno;
  (void)close(output);
  if (input != options.input) (void)close(input);
  if (pid < 0) return cannot("cannot start " + options.program, code);
  return Child(pid);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), ended_with_(std::move(other.ended_with_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, -1);
    ended_with_ = std::move(other.ended_with_);
  }
  return *this;
}

Child::~Child() { kill(); }

bool Child::reap(int options) {
  if (pid_ < 0) return true;
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(pid_, &status, options);
  } while (reaped < 0 && errno == EINTR);
  if (reaped == 0) return false;
  ended_with_ = reaped == pid_ ? describe(status) : "unknown status";
  pid_ = -1;
  return true;
}

bool Child::running() { return !reap(WNOHANG); }

void Child::kill() {
  if (reap(WNOHANG)) return;
  (void)::kill(pid_, SIGKILL);
  (void)reap(0);
}

bool Child::stop(std::chrono::milliseconds grace) {
  if (reap(WNOHANG)) return true;
  (void)::kill(pid_, SIGTERM);
  if (wait(grace)) return true;
  kill();
  return false;
}

bool Child::wait(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!reap(WNOHANG)) {
    if (std::chrono::steady_clock::now() >= until) return false;
    (void)poll(nullptr, 0, static_cast<int>(kLookEvery.count()));
  }
  return true;
}

}  // namespace outbox::demo
