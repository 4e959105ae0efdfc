#include "sink/message_id.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "event/arena.hpp"
#include "event/headers.hpp"

namespace outbox::sink {

std::string message_id(const EventView& event, std::string_view subscription) {
  std::string id = fmt::format("{}.{}.{}", event.id.str(), event.seq, subscription);
  event::Arena arena;
  const std::string_view replay = event::read_replay(event, arena);
  if (!replay.empty() && std::all_of(replay.begin(), replay.end(), is_alnum))
    id.append(".replay.").append(replay);
  return id;
}

}  // namespace outbox::sink
