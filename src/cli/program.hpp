// What the main() of a program does besides its command line.
#pragma once

#include "cli/command.hpp"

namespace outbox::cli {

struct Ended {
  int code{0};
  bool unexpected{false};  ///< By an exception of which no verb knows.
};
/// Runs what the command line names. Errors become lines on stderr.
[[nodiscard]] Ended run_caught(const Program& program, int argc, const char* const* argv);

/// Runs the program and returns its exit code. Errors become lines on stderr.
[[nodiscard]] int run_program(const Program& program, int argc, const char* const* argv);

}  // namespace outbox::cli
