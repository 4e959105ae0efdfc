#include "event/attribute_text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "event/id.hpp"
#include "event/time_text.hpp"

namespace outbox::event {

std::string_view seq_text(std::int64_t seq, Arena& arena) {
  constexpr std::size_t longest = std::numeric_limits<std::int64_t>::digits10 + 2;
  char* const to = arena.allocate(longest);
  return {to, static_cast<std::size_t>(std::to_chars(to, to + longest, seq).ptr - to)};
}

std::string_view id_text(const EventId& id, Arena& arena) {
  char* const to = arena.allocate(kIdChars);
  write_id(id, to);
  return {to, kIdChars};
}

std::string_view time_text(std::int64_t us, Arena& arena) {
  char* const to = arena.allocate(kTimeChars);
  write_time(us, to);
  return {to, kTimeChars};
}

std::string_view kept(std::string_view text, Arena& arena) {
  char* const to = arena.allocate(text.size());
  std::copy(text.begin(), text.end(), to);
  return {to, text.size()};
}

}  // namespace outbox::event
