#include "cli/terminal.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace outbox::cli {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

bool is_screen(int fd) {
  const std::string_view kind = variable("TERM");
  return isatty(fd) == 1 && !kind.empty() && kind != "dumb";
}

std::string alarming(const std::string& text) {
  const bool coloured = is_screen(STDOUT_FILENO) && variable("NO_COLOR").empty();
  return coloured ? "\x1b[31m" + text + "\x1b[0m" : text;
}

}  // namespace outbox::cli
