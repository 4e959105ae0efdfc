// The program `outbox`.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "cli/context.hpp"
#include "cli/exit.hpp"
#include "cli/verbs.hpp"

namespace outbox::cli {
namespace {

int run(int argc, const char* const* argv) {
  Program program("Transactional outbox: events written with the data they are about, delivered from there.", OUTBOX_VERSION);
  Context context;
  Command root = program.root();
  context.add_options(root);
  add_migrate(root, context);
  add_enqueue(root, context);
  add_relay(root, context);
  add_status(root, context);
  add_subscription(root, context);
  add_config(root, context);
  add_demo(root, context);
  add_version(root, context);
  return program.run(argc, argv);
}

int run_caught(int argc, const char* const* argv) {
  try {
    return run(argc, argv);
  } catch (const Failure& failure) {
    for (const std::string& line : failure.lines()) print_error(line);
    return failure.code();
  } catch (const Exception& exception) {
    print_error(exception.error().text());
  } catch (const std::bad_alloc&) {
    print_error("out of memory (hint: lower relay.window_bytes, or give the process more)");
  } catch (const std::exception& exception) {
    print_error(std::string("internal error: ") + exception.what() + " (hint: please report it with the command that you ran)");
  } catch (...) {
    print_error("internal error (hint: please report it with the command that you ran)");
  }
  return kError;
}

/// What could not be written was not delivered to whoever reads it. A reader that closed the pipe knows that itself.
int flush_output(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (errno != EPIPE) print_error(std::string("stdout: ") + std::strerror(errno) + " (hint: is the disk full?)");
  return code == kOk ? kError : code;
}

}  // namespace
}  // namespace outbox::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return outbox::cli::flush_output(outbox::cli::run_caught(argc, argv));
}
