// What the main() of a program does besides its command line.
#pragma once

#include "cli/command.hpp"

namespace outbox::cli {

/// Runs the program and returns its exit code. Errors become lines on stderr.
[[nodiscard]] int run_program(const Program& program, int argc, const char* const* argv);

}  // namespace outbox::cli
