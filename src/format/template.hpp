// Templates for topics, keys and headers, such as {aggregate_type|lower}.events.
//
//   {FIELD}            aggregate_type, aggregate_id, event_type, id, seq, content_type,
//                      created_at and occurred_at (RFC 3339, UTC, microseconds), header:NAME and
//                      json:PATH (of the payload: customer.name, lines.0.sku); empty if missing
//   {FIELD|FILTER...}  lower, upper, kebab (OrderPlaced -> order-placed), snake (-> order_placed),
//                      default:TEXT (if the value is empty)
//   {{ and }}          the braces themselves
//
// A template is compiled once and rendered for each event. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "event/arena.hpp"

namespace outbox::format {

class Template {
 public:
  /// `what` names the setting in errors ("topic: unknown field ...").
  [[nodiscard]] static Result<Template> compile(std::string_view what, std::string_view text);

  /// A view into the template, the event or the arena, valid as long as all three are. Never null.
  [[nodiscard]] std::string_view render(const EventView& event, event::Arena& arena) const;

  /// The text if it is the same for all events.
  [[nodiscard]] std::optional<std::string> fixed() const;
  /// Whether some event might be rendered as this text, which then has the template's own
  /// characters, and in place of a field anything that the field's filters could leave.
  [[nodiscard]] bool may_make(std::string_view text) const;

 private:
  friend class TemplateParser;

  enum class Field : std::uint8_t {
    literal,
    aggregate_type,
    aggregate_id,
    event_type,
    id,
    seq,
    content_type,
    created_at,
    occurred_at,
    header,
    json,
  };
  enum class FilterKind : std::uint8_t { lower, upper, kebab, snake, otherwise };
  struct Filter {
    FilterKind kind{FilterKind::lower};
    std::string argument{};
  };

  struct Part {
    Field field{Field::literal};
    std::string text;  ///< The literal, the header's name or the path.
    std::vector<Filter> filters;
  };

  static std::string_view value(const Part& part, const EventView& event, event::Arena& arena);
  static std::string_view filtered(const Filter& filter, std::string_view text,
                                   event::Arena& arena);
  static bool may_have(const Part& part, char c) noexcept;
  static std::string_view part_text(const Part& part, const EventView& event, event::Arena& arena);

  [[nodiscard]] std::string_view joined(const EventView& event, event::Arena& arena) const;

  std::vector<Part> parts_;
};

}  // namespace outbox::format
