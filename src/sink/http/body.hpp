// The setting `body`: a template of what is sent instead of the message's own body. A field's value
// stays a value, whatever characters it has. Pure.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.hpp"
#include "event/arena.hpp"
#include "format/template_pieces.hpp"

namespace outbox::sink::http {

inline constexpr std::string_view kJsonBody = "application/json";
inline constexpr std::string_view kFormBody = "application/x-www-form-urlencoded";
inline constexpr std::string_view kTextBody = "text/plain";

class BodyTemplate {
 public:
  /// Adds an error under http.body and returns nullopt if it is wrong. `type` is one of the above.
  [[nodiscard]] static std::optional<BodyTemplate> parse(std::string_view text,
                                                         std::string_view type,
                                                         FieldErrors& errors);

  /// In JSON a value in quotes is escaped; elsewhere it must be JSON by itself, and a missing value
  /// becomes null. In a form values are percent-encoded. An error is the event's fault.
  [[nodiscard]] Result<std::string> render(const EventView& event, event::Arena& arena) const;
  /// The value of the header content-type.
  [[nodiscard]] std::string_view content_type() const;

 private:
  enum class Way : std::uint8_t { as_it_is, in_json_string, as_json, percent_encoded };
  struct Piece {
    format::TemplatePiece what;
    Way way{Way::as_it_is};  ///< How a field's value is written.
  };

  [[nodiscard]] bool find_strings();
  [[nodiscard]] std::string example() const;

  std::string type_;
  std::vector<Piece> pieces_;
};

}  // namespace outbox::sink::http
