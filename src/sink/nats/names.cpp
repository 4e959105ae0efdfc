#include "sink/nats/names.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "event/utf8.hpp"

namespace outbox::sink::nats {
namespace {

/// A message to the API of JetStream or to the server itself is a command ($JS.API.STREAM.DELETE.orders): the fields of an event must not
/// make one. Keys of a bucket are messages of a stream.
bool is_command(std::string_view subject) noexcept {
  return subject.starts_with('$') && !subject.starts_with("$KV.");
}

}  // namespace

std::string_view wrong_subject(std::string_view subject) noexcept {
  if (subject.empty()) return "is empty";
  if (subject.size() > kMostSubjectBytes) return "is longer than 3800 bytes";
  if (!event::is_utf8(subject)) return "is not UTF-8";
  if (subject.find(' ') != std::string_view::npos) return "has a space";
  if (has_control(subject)) return "has a control character";
  if (subject.find_first_of("*>") != std::string_view::npos) return "has a wildcard (* or >)";
  const bool empty_part = subject.front() == '.' || subject.back() == '.' ||
                          subject.find("..") != std::string_view::npos;
  if (empty_part) return "has an empty part (a dot at an end, or two in a row)";
  if (is_command(subject)) return "begins with $, which addresses the server itself";
  return {};
}

std::string_view wrong_header(std::string_view name, std::string_view value) noexcept {
  constexpr std::string_view kCommands = "Nats-";
  const auto legal = [](char c) { return c > ' ' && c < '\x7f' && c != ':'; };
  if (name.empty()) return "has no name";
  if (!std::all_of(name.begin(), name.end(), legal))
    return "has a name with other characters than printable ASCII without space and colon";
  // Nats-Rollup would remove the messages of a stream, for instance.
  if (equal_ignoring_case(name.substr(0, kCommands.size()), kCommands))
    return "begins with Nats-, which is a command to JetStream";
  // NUL ends a text for the client.
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
    return "has a line break or a NUL, which no header of NATS can hold";
  return {};
}

std::string_view wrong_name(std::string_view name) noexcept {
  if (name.empty()) return "is empty";
  if (name.size() > 255) return "is longer than 255 bytes";
  if (!event::is_utf8(name) || has_control(name) ||
      name.find_first_of(" .*>/\\") != std::string_view::npos)
    return "has a space, a control character, or one of . * > / \\";
  return {};
}

}  // namespace outbox::sink::nats
