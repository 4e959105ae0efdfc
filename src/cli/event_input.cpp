#include "cli/event_input.hpp"

#include <unistd.h>

#include <cstddef>
#include <utility>

#include "cli/exit.hpp"
#include "config/text_file.hpp"

namespace outbox::cli {
namespace {

constexpr std::size_t kLargestFile = std::size_t{64} << 20U;

}  // namespace

bool is_read(const std::string& payload) { return payload == "-" || payload.starts_with('@'); }

std::string read_payload(const std::string& given) {
  if (!is_read(given)) return given;
  const bool from_stdin = given == "-";
  const std::string path = from_stdin ? "stdin" : given.substr(1);
  auto file = from_stdin ? config::read_text(STDIN_FILENO, kLargestFile)
                         : config::read_text_file(path, kLargestFile);
  if (!file)
    throw Failure(kError, "payload: " + file.error().message + ": " + path,
                  "@FILE reads a file, - stdin");
  return std::move(file->text);
}

Header parse_header(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw Failure(kUsage, "--header " + text + ": no value", "--header name=value");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace outbox::cli
