#include "support/child_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "support/eventually.hpp"

namespace outbox::test {
namespace {

struct Identity {
  uid_t user{0};
  gid_t group{0};
};

std::optional<Identity> identity_of(const std::string& user) {
  if (user.empty() || geteuid() != 0) return std::nullopt;
  const passwd* entry = getpwnam(user.c_str());
  if (entry == nullptr) throw std::runtime_error("no such user: " + user);
  return Identity{.user = entry->pw_uid, .group = entry->pw_gid};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Between fork and exec: only calls that are safe there.
[[noreturn]] void become(const ChildProcess::Options& options,
                         const std::optional<Identity>& identity, int output, char* const* command,
                         char* const* environment) {
  (void)setpgid(0, 0);
  if (identity &&
      (setgroups(0, nullptr) != 0 || setgid(identity->group) != 0 || setuid(identity->user) != 0))
    _exit(126);
  (void)prctl(PR_SET_PDEATHSIG, options.on_our_death);
  const int input = ::open("/dev/null", O_RDONLY);
  if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(126);
  execve(command[0], command, environment);
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const Options& options) {
  const auto identity = identity_of(options.user);
  std::vector<std::string> command = options.command;
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    if (!options.environment.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : options.environment) environment.push_back(name + "=" + value);
  const auto command_pointers = pointers(command);
  const auto environment_pointers = pointers(environment);
  const int output =
      ::open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (output < 0) throw std::system_error(errno, std::generic_category(), options.output);
  pid_ = fork();
  if (pid_ == 0)
    become(options, identity, output, command_pointers.data(), environment_pointers.data());
  ::close(output);
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
}

ChildProcess::~ChildProcess() { kill(); }

void ChildProcess::signal(int number) const {
  if (!status_) (void)::kill(pid_, number);
}

bool ChildProcess::running() { return !wait(std::chrono::milliseconds(0)); }

std::optional<int> ChildProcess::wait(std::chrono::milliseconds limit) {
  (void)eventually(
      [this] {
        int status = 0;
        if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
        return status_.has_value();
      },
      limit);
  return status_;
}

void ChildProcess::kill() {
  signal(SIGKILL);
  int status = 0;
  if (!status_ && waitpid(pid_, &status, 0) == pid_) status_ = status;
}

}  // namespace outbox::test
