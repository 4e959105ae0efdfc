// A child process for one run of a task: its input is written, its output is kept, capped, and it
// ends when it is told to. Linux: pidfd (5.3), close_range (5.9).
//
// Threads: the one that starts it, which the kernel watches: when it ends, so does the child
//          (PR_SET_PDEATHSIG).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <outbox/error.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::task {

struct ChildOptions {
  std::vector<std::string> command;  ///< The program, by its path, and its arguments. No shell.
  std::vector<std::string> environment{};           ///< "NAME=value", beside that of this process.
  std::size_t most_output{std::size_t{64} << 10U};  ///< Of each kind.
  /// From SIGTERM to SIGKILL.
  std::chrono::milliseconds patience{std::chrono::seconds(5)};
};

struct ChildEnd {
  int status{0};       ///< As of waitpid(2).
  bool told{false};    ///< To end, by the stop token.
  std::string output;  ///< The beginning.
  std::string errors;  ///< The end: what a program says last is why it failed.
};

/// Runs it until it ends. It is the leader of a process group; what is left of that when it ends is
/// killed. On a stop it gets SIGTERM, and after a while SIGKILL. An error: it could not be started.
[[nodiscard]] Result<ChildEnd> run_child(const ChildOptions& options, std::string_view input,
                                         std::stop_token stop);

}  // namespace outbox::task
