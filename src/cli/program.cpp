#include "cli/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "cli/exit.hpp"
#include "cli/output.hpp"

namespace outbox::cli {
namespace {

/// Whether the other end of the pipe was closed, as by `outbox ... | head`.
bool reader_left() {
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

/// The next file or connection would get a standard descriptor that is closed (`<&-`), and would be
/// used as stdin, stdout or stderr. /dev/null is opened so that reading from it as stdin, or
/// writing to it, fails.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // open() returns the lowest free descriptor, which is `fd`.
    (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// It is an error if not everything could be written. The error is reported unless the reader
/// closed the pipe, or another error was already reported.
int flush_output(int code) {
  if (flush_out()) return code;
  if (code != kError && !reader_left())
    print_error("stdout: not everything could be written (hint: is the disk full?)");
  return code == kOk ? kError : code;
}

}  // namespace

Ended run_caught(const Program& program, int argc, const char* const* argv) {
  try {
    return {.code = run(program, argc, argv)};
  } catch (const Failure& failure) {
    for (const std::string& line : failure.lines()) print_error(line);
    return {.code = failure.code()};
  } catch (const Exception& exception) {
    print_error(exception.error().text());
    return {.code = kError};
  } catch (const std::bad_alloc&) {
    print_error("out of memory (hint: lower relay.window_bytes, or give the process more)");
  } catch (const std::exception& exception) {
    print_error(std::string("internal error: ") + exception.what() +
                " (hint: please report it with the command that you ran)");
  } catch (...) {
    print_error("internal error (hint: please report it with the command that you ran)");
  }
  return {.code = kError, .unexpected = true};
}

int run_program(const Program& program, int argc, const char* const* argv) {
  occupy_standard_descriptors();
  (void)std::signal(SIGPIPE, SIG_IGN);
  name_program(program.name);
  return flush_output(run_caught(program, argc, argv).code);
}

}  // namespace outbox::cli
