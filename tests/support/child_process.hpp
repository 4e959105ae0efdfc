// A child process, which is signalled by its id and never left behind. The kernel ends it when the
// thread that started it ends (on_our_death).
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
    std::vector<std::string> command;  ///< Its name, then its arguments.
    std::string program{};             ///< Its path; if empty, the first of `command`.
    std::map<std::string, std::string> environment{};  ///< Variables in addition to ours.
    std::string without{};            ///< Variables of ours with this prefix are left out.
    std::string output{"/dev/null"};  ///< The file to which stdout and stderr are appended.
    int input{-1};                    ///< Becomes its stdin; /dev/null if it is -1.
    std::string user{};               ///< It runs as this user if we are root.
    /// The signal that it gets when the thread that started it ends; 0 for none.
    int on_our_death{SIGKILL};
  };

  explicit ChildProcess(const Options& options);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Kills it if it still runs.
  ~ChildProcess() { kill(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  [[nodiscard]] bool running();
  /// The status as of waitpid(2); nullopt if it still runs after the limit.
  std::optional<int> wait(std::chrono::milliseconds limit = std::chrono::seconds(60));
  /// Sends SIGKILL. The process is gone when this returns.
  void kill();
  /// How it ended, like "exit status 2" or "signal 9"; empty while it runs.
  [[nodiscard]] std::string ended_with() const;

 private:
  bool reap(int options);

  pid_t pid_{-1};
  std::optional<int> status_;
};

/// The path of a program that is in the same folder as ours. Throws if it is not there.
[[nodiscard]] std::string program_beside_us(const std::string& name);

}  // namespace outbox::test
