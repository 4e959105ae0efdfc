// A program of ours, started, signalled and ended by its process id.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace outbox::test {

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> command;                  ///< The program's path first.
    std::map<std::string, std::string> environment{};  ///< Added to ours.
    std::string output{"/dev/null"};  ///< A file: stdout and stderr are appended to it.
    std::string user{};               ///< Run as this user, when we are root.
    int on_our_death{SIGKILL};        ///< What it gets when the test program dies.
  };

  explicit ChildProcess(const Options& options);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ChildProcess(ChildProcess&&) = delete;
  ChildProcess& operator=(ChildProcess&&) = delete;
  /// Kills it if it still runs.
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  [[nodiscard]] bool running();
  /// The status as of waitpid(2); nothing when it still runs after the limit.
  std::optional<int> wait(std::chrono::milliseconds limit = std::chrono::seconds(60));
  /// SIGKILL, and gone when this returns.
  void kill();

 private:
  pid_t pid_{-1};
  std::optional<int> status_;
};

}  // namespace outbox::test
