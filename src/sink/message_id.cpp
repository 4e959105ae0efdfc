#include "sink/message_id.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "event/headers.hpp"

namespace outbox::sink {
namespace {

/// The number of the replay that sends the event; empty: none does.
std::string replay_of(const EventView& event) {
  if (event.headers.find(event::kReplayHeader) == std::string_view::npos) return {};
  const auto headers = nlohmann::json::parse(event.headers, nullptr, false);
  if (!headers.is_object()) return {};
  const auto replay = headers.find(event::kReplayHeader);
  if (replay == headers.end() || !replay->is_string()) return {};
  const auto number = replay->get<std::string>();
  return std::all_of(number.begin(), number.end(), is_alnum) ? number : std::string();
}

}  // namespace

std::string message_id(const EventView& event, std::string_view subscription) {
  std::string id = fmt::format("{}.{}.{}", event.id.str(), event.seq, subscription);
  if (const std::string replay = replay_of(event); !replay.empty()) id += ".replay." + replay;
  return id;
}

}  // namespace outbox::sink
