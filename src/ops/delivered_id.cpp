#include "ops/delivered_id.hpp"

namespace outbox::ops {

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

}  // namespace outbox::ops
