#include "support/child_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "support/eventually.hpp"
#include "support/failure.hpp"

namespace outbox::test {
namespace {

[[noreturn]] void cannot(const std::string& what) {
  give_up(Errc::internal, "cannot " + what + ": " + std::strerror(errno));
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> make_environment(const ChildProcess::Options& options) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const bool left_out = !options.without.empty() && text.starts_with(options.without);
    if (!left_out && !options.environment.contains(text.substr(0, text.find('='))))
      all.push_back(text);
  }
  for (const auto& [name, value] : options.environment)
    all.push_back(std::string(name).append("=").append(value));
  return all;
}

/// What the child needs. It is prepared before fork(), since only async-signal-safe calls are
/// allowed after it.
struct Plan {
  const char* program;
  char* const* command;
  char* const* environment;
  const passwd* user;
  int input;
  int output;
  int on_our_death;
  pid_t parent;
};

[[noreturn]] void become(const Plan& plan) {
  // The child has a process group of its own, so that Ctrl-C reaches only us.
  (void)setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan.user != nullptr && (setgroups(0, nullptr) != 0 || setgid(plan.user->pw_gid) != 0 ||
                               setuid(plan.user->pw_uid) != 0))
    _exit(126);
  // This comes after setuid(), which clears the setting. If the parent died before this call,
  // getppid() has changed.
  if (plan.on_our_death != 0 &&
      (prctl(PR_SET_PDEATHSIG, plan.on_our_death) != 0 || getppid() != plan.parent))
    _exit(126);
  const int input = plan.input >= 0 ? plan.input : ::open("/dev/null", O_RDONLY);
  if (dup2(input, 0) < 0 || dup2(plan.output, 1) < 0 || dup2(plan.output, 2) < 0) _exit(126);
  execve(plan.program, plan.command, plan.environment);
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const Options& options) {
  const bool as_other = !options.user.empty() && geteuid() == 0;
  const passwd* const user = as_other ? getpwnam(options.user.c_str()) : nullptr;
  if (as_other && user == nullptr) give_up(Errc::not_found, "no such user: " + options.user);
  std::vector<std::string> command = options.command;
  std::vector<std::string> environment = make_environment(options);
  const auto command_pointers = pointers(command);
  const auto environment_pointers = pointers(environment);
  const std::string& program = options.program.empty() ? command.front() : options.program;
  const int output =
      ::open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (output < 0) cannot("write " + options.output);
  const Plan plan{.program = program.c_str(),
                  .command = command_pointers.data(),
                  .environment = environment_pointers.data(),
                  .user = user,
                  .input = options.input,
                  .output = output,
                  .on_our_death = options.on_our_death,
                  .parent = getpid()};
  pid_ = fork();
  if (pid_ == 0) become(plan);
  ::close(output);
  if (pid_ < 0) cannot("start " + program);
}

bool ChildProcess::reap(int options) {
  int status = 0;
  pid_t reaped = 0;
  while (!status_ && (reaped = waitpid(pid_, &status, options)) < 0 && errno == EINTR) {
  }
  if (reaped == pid_) status_ = status;
  return status_.has_value();
}

void ChildProcess::signal(int number) const {
  if (!status_) (void)::kill(pid_, number);
}

bool ChildProcess::running() { return !reap(WNOHANG); }

std::optional<int> ChildProcess::wait(std::chrono::milliseconds limit) {
  (void)eventually([this] { return reap(WNOHANG); }, limit);
  return status_;
}

void ChildProcess::kill() {
  signal(SIGKILL);
  (void)reap(0);
}

std::string ChildProcess::ended_with() const {
  if (!status_) return {};
  if (WIFSIGNALED(*status_)) return "signal " + std::to_string(WTERMSIG(*status_));
  return "exit status " + std::to_string(WEXITSTATUS(*status_));
}

std::string program_beside_us(const std::string& name) {
  std::error_code failed;
  const auto us = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::string path = us.parent_path() / name;
  if (failed || ::access(path.c_str(), X_OK) != 0)
    give_up(Errc::unavailable, "there is no program " + path, "install it beside this one");
  return path;
}

}  // namespace outbox::test
