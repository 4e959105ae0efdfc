#include "sink/asynq/names.hpp"

#include <algorithm>

#include "event/utf8.hpp"

namespace outbox::sink::asynq {

void append_prefix(std::string& out, std::string_view queue) {
  out.append("asynq:{").append(queue).append("}:");
}

bool is_blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
}

std::string_view wrong_queue_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (is_blank(name)) return "is blank";
  if (name.find_first_of("{}") != std::string_view::npos) return "has a brace";
  if (!event::is_utf8(name)) return "is not UTF-8";
  return {};
}

}  // namespace outbox::sink::asynq
