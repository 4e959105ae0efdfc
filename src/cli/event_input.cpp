#include "cli/event_input.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/text_file.hpp"
#include "base/units.hpp"
#include "cli/exit.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

constexpr std::size_t kLargestFile = std::size_t{64} << 20U;

}  // namespace

bool is_read(const std::string& payload) { return payload == "-" || payload.starts_with('@'); }

std::string read_payload(const std::string& given) {
  if (!is_read(given)) return given;
  const bool from_stdin = given == "-";
  const std::string path = from_stdin ? "stdin" : given.substr(1);
  auto file =
      from_stdin ? read_text(STDIN_FILENO, kLargestFile) : read_text_file(path, kLargestFile);
  if (!file)
    throw Failure(kError, "payload: " + file.error().message + ": " + path,
                  "@FILE reads a file, - stdin");
  return std::move(file->text);
}

std::int64_t parse_moment(const std::string& option, const std::string& text) {
  if (const auto time = event::read_time(text)) return *time;
  const auto ago = parse_duration(text);
  if (!ago)
    throw Failure(kUsage, option + " " + text + ": is not a time",
                  "2026-01-05T08:09:12Z, or how long ago: 15m");
  const auto now = std::chrono::system_clock::now() - *ago;
  return std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
}

std::int64_t bounded_number(std::uint64_t number) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(number, kMost));
}

std::pair<std::string, std::string> parse_key(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size())
    throw Failure(kUsage, "--key " + text + ": is not a key",
                  "AGGREGATE_TYPE/AGGREGATE_ID, for example order/42");
  return {text.substr(0, slash), text.substr(slash + 1)};
}

void event_not_found(const std::string& id, const std::string& what, bool complete) {
  if (complete)
    throw Failure(kError, id + ": no such " + what,
                  "it was never committed, or retention has removed it");
  throw Failure(
      kError, id + ": not found",
      "without an index an id of this program is looked for around its time, any other among the newest 100,000 "
      "events; outbox migrate --with-lookup-indexes makes one");
}

Header parse_header(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw Failure(kUsage, "--header " + text + ": no value", "--header name=value");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace outbox::cli
