// A process of our own: started, killed, never left behind. When we die without a word, it is killed by the kernel.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

namespace outbox::demo {

struct ChildOptions {
  std::string program;                 ///< Its path.
  std::vector<std::string> arguments;  ///< The first is how it is called.
  std::filesystem::path log;           ///< Its stdout and stderr are appended here.
  int input{-1};                       ///< Becomes its stdin; -1: /dev/null.
};

class Child {
 public:
  /// Call it from the main thread only: the kernel kills the child when the thread that started it ends.
  [[nodiscard]] static Result<Child> start(const ChildOptions& options);

  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  /// False once it has ended; how, says ended_with().
  [[nodiscard]] bool running();
  /// "exit status 2", "signal 9"; empty while it runs.
  [[nodiscard]] const std::string& ended_with() const { return ended_with_; }
  /// SIGKILL, and waits for its end.
  void kill();
  /// SIGTERM, and waits. False: it did not end in time and was killed.
  bool stop(std::chrono::milliseconds grace);
  /// Waits for its end without a signal. False: not in time.
  bool wait(std::chrono::milliseconds limit);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  bool reap(int options);

  pid_t pid_{-1};  ///< -1: none, or ended.
  std::string ended_with_;
};

}  // namespace outbox::demo
