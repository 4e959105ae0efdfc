#include "format/template.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "event/attribute_text.hpp"
#include "event/headers.hpp"
#include "event/time_text.hpp"
#include "format/json_path.hpp"

namespace outbox::format {
namespace {

std::string_view in_arena(event::Arena& arena, std::size_t size, auto&& write) {
  char* const to = arena.allocate(size);
  write(to);
  return {to, size};
}

/// Maps each character; a text that does not change is not copied.
template <class Map>
std::string_view mapped(std::string_view text, event::Arena& arena, Map map) {
  if (std::all_of(text.begin(), text.end(), [&](char c) { return map(c) == c; })) return text;
  return in_arena(arena, text.size(),
                  [&](char* to) { std::transform(text.begin(), text.end(), to, map); });
}

/// Whether a word of a CamelCase name begins at `at`: after a lower-case letter or digit, and at
/// the last capital of an abbreviation (HTTPServer: http-server).
bool word_begins(std::string_view text, std::size_t at) noexcept {
  if (at == 0 || !is_upper(text[at])) return false;
  const char before = text[at - 1];
  if (is_lower(before) || is_digit(before)) return true;
  return is_upper(before) && at + 1 < text.size() && is_lower(text[at + 1]);
}

/// The words in lower case, joined by `separator`. Spaces, '-' and '_' also separate; dots stay.
std::string_view words(std::string_view text, char separator, event::Arena& arena) {
  char* const start = arena.allocate(2 * text.size());
  char* to = start;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (word_begins(text, at)) *to++ = separator;
    *to++ = c == ' ' || c == '-' || c == '_' ? separator : to_lower(c);
  }
  return {start, static_cast<std::size_t>(to - start)};
}

}  // namespace

std::string_view Template::value(const Part& part, const EventView& event, event::Arena& arena) {
  switch (part.field) {
    case Field::literal: return part.text;
    case Field::aggregate_type: return event.aggregate_type;
    case Field::aggregate_id: return event.aggregate_id;
    case Field::event_type: return event.event_type;
    case Field::id: return event::id_text(event.id, arena);
    case Field::seq: return event::seq_text(event.seq, arena);
    case Field::content_type: return event.content_type;
    case Field::created_at: return event::time_text(event::to_us(event.created_at), arena);
    case Field::occurred_at: return event::time_text(event::happened_us(event), arena);
    case Field::header: return event::find_header(event.headers, part.text, arena);
    case Field::json: return find_json(event.payload, part.text, arena);
  }
  return {};
}

std::string_view Template::filtered(const Filter& filter, std::string_view text,
                                    event::Arena& arena) {
  switch (filter.kind) {
    case FilterKind::lower: return mapped(text, arena, [](char c) { return to_lower(c); });
    case FilterKind::upper: return mapped(text, arena, [](char c) { return to_upper(c); });
    case FilterKind::kebab: return words(text, '-', arena);
    case FilterKind::snake: return words(text, '_', arena);
    case FilterKind::otherwise: return text.empty() ? std::string_view(filter.argument) : text;
  }
  return text;
}

std::string_view Template::part_text(const Part& part, const EventView& event,
                                     event::Arena& arena) {
  std::string_view text = value(part, event, arena);
  for (const Filter& filter : part.filters) text = filtered(filter, text, arena);
  return text;
}

std::string_view Template::render(const EventView& event, event::Arena& arena) const {
  const std::string_view text =
      parts_.size() == 1 ? part_text(parts_.front(), event, arena) : joined(event, arena);
  // The result is never null, because some clients take a null pointer for "no key".
  return text.data() == nullptr ? std::string_view("") : text;
}

std::string_view Template::joined(const EventView& event, event::Arena& arena) const {
  // The parts are rendered first, since they may allocate from the arena, too.
  constexpr std::size_t kNear = 8;
  std::array<std::string_view, kNear> near;
  std::vector<std::string_view> far;
  if (parts_.size() > kNear) far.resize(parts_.size());
  std::string_view* const texts = far.empty() ? near.data() : far.data();
  std::size_t size = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    texts[i] = part_text(parts_[i], event, arena);
    size += texts[i].size();
  }
  char* to = arena.allocate(size);
  const std::string_view whole{to, size};
  for (std::size_t i = 0; i < parts_.size(); ++i)
    to = std::copy(texts[i].begin(), texts[i].end(), to);
  return whole;
}

std::optional<std::string> Template::fixed() const {
  std::string text;
  for (const Part& part : parts_) {
    if (part.field != Field::literal) return std::nullopt;
    text += part.text;
  }
  return text;
}

/// Whether the part may contain the character. Only the last filter decides about case, and no
/// filter removes other characters from what is left.
bool Template::may_have(const Part& part, char c) noexcept {
  if (part.filters.empty()) return true;
  const bool any_text = std::any_of(part.filters.begin(), part.filters.end(), [](const Filter& f) {
    return f.kind == FilterKind::otherwise;
  });
  if (any_text) return true;
  return part.filters.back().kind == FilterKind::upper ? !is_lower(c) : !is_upper(c);
}

bool Template::may_make(std::string_view text) const {
  // Marks the lengths of the beginnings of the text that the parts so far might make.
  std::vector<bool> ends(text.size() + 1, false);
  ends[0] = true;
  for (const Part& part : parts_) {
    std::vector<bool> next(ends.size(), false);
    for (std::size_t at = 0; at < ends.size(); ++at) {
      if (part.field == Field::literal) {
        if (ends[at] && text.substr(at).starts_with(part.text)) next[at + part.text.size()] = true;
      } else {
        next[at] = ends[at] || (at > 0 && next[at - 1] && may_have(part, text[at - 1]));
      }
    }
    ends = std::move(next);
  }
  return ends.back();
}

}  // namespace outbox::format
