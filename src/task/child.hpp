// A child process for one run of a task: its input is written, its output is kept up to a limit,
// and it ends when it is told to. This needs Linux with pidfd (5.3); close_range with
// CLOSE_RANGE_CLOEXEC (5.11) is used if there is one.
//
// Threads: the one that starts the child. When that thread ends, the kernel kills the child
// (PR_SET_PDEATHSIG).
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
  std::vector<std::string> command;  ///< The program's path and its arguments. No shell runs it.
  std::vector<std::string> environment{};           ///< "NAME=value", beside that of this process.
  std::size_t most_output{std::size_t{64} << 10U};  ///< Bytes of output, and of errors.
  /// The time from SIGTERM to SIGKILL.
  std::chrono::milliseconds patience{std::chrono::seconds(5)};
};

struct ChildEnd {
  int status{0};       ///< The status that waitpid(2) gives.
  bool told{false};    ///< Whether the stop token told it to end.
  std::string output;  ///< The beginning of its output.
  std::string errors;  ///< The end of its errors: a program says last why it failed.
};

/// Runs the program until it ends. It is the leader of a process group; what is left of the group
/// when the program ends is killed. On a stop the group gets SIGTERM, and after `patience` SIGKILL.
/// Returns an error if the program could not be started.
[[nodiscard]] Result<ChildEnd> run_child(const ChildOptions& options, std::string_view input,
                                         std::stop_token stop);

}  // namespace outbox::task
