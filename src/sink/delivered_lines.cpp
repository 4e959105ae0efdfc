#include "sink/delivered_lines.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/error.hpp"

namespace outbox::sink {

std::optional<EventId> delivered_id(std::string_view line) {
  constexpr std::string_view before = R"(,"id":")";
  constexpr std::size_t length = 36;
  if (!line.empty() && line.front() == '{') {
    const auto at = line.back() == '}' ? line.rfind(before) : std::string_view::npos;
    if (at == std::string_view::npos) return std::nullopt;
    line = line.substr(at + before.size(), length);
  }
  const auto id = EventId::parse(line);
  return id ? std::optional(*id) : std::nullopt;
}

Result<ReadPart> read_delivered(const std::string& path, std::uint32_t number, const TakeId& take) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(Errc::not_found,
                "cannot read " + path + ": " + std::generic_category().message(errno),
                "is it the file that the sink wrote, on this machine, and may this user read it?");
  }
  for (std::string line; std::getline(file, line);) {
    if (const auto id = delivered_id(line)) take(number, *id);
  }
  if (file.bad())
    return fail(Errc::unavailable, "cannot read " + path + " to its end", "check its disk");
  return ReadPart{.name = path};
}

}  // namespace outbox::sink
