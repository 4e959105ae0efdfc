#include "sink/http/body.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/json_scan.hpp"
#include "event/json_write.hpp"

namespace outbox::sink::http {
namespace {

constexpr const char* kBodyField = "http.body";

std::string in_json_string(std::string_view value) {
  std::string out;
  event::append_json_string(out, value);
  return out.substr(1, out.size() - 2);
}

}  // namespace

std::optional<BodyTemplate> BodyTemplate::parse(std::string_view text, std::string_view type,
                                                FieldErrors& errors) {
  auto pieces = format::template_pieces(kBodyField, text);
  if (!pieces) {
    errors.add(pieces.error());
    return std::nullopt;
  }
  BodyTemplate body;
  body.type_ = type;
  const Way way = type == kFormBody ? Way::percent_encoded : Way::as_it_is;
  for (format::TemplatePiece& piece : *pieces)
    body.pieces_.push_back({.what = std::move(piece), .way = way});
  if (type != kJsonBody) return body;
  if (!body.find_strings()) {
    errors.add({kBodyField, "has a backslash before a field", "write \\\\ for a backslash"});
    return std::nullopt;
  }
  if (const auto fault = event::json_fault(body.example())) {
    errors.add(
        {kBodyField, fmt::format("is not JSON: {}", fault->what),
         "the braces of JSON are doubled, those of fields are not: {{\"id\": \"{id}\"}}; for another type set "
         "http.body_type"});
    return std::nullopt;
  }
  return body;
}

/// Finds the fields in quotes. Returns false if a backslash would change the start of a value.
bool BodyTemplate::find_strings() {
  bool in_string = false;
  bool escaped = false;
  for (Piece& piece : pieces_) {
    if (piece.what.field) {
      if (escaped) return false;
      piece.way = in_string ? Way::in_json_string : Way::as_json;
      continue;
    }
    for (const char c : piece.what.text) {
      const bool was_escaped = std::exchange(escaped, false);
      if (was_escaped) continue;
      escaped = in_string && c == '\\';
      if (c == '"') in_string = !in_string;
    }
  }
  return true;
}

/// The body with a value for each field.
std::string BodyTemplate::example() const {
  std::string text;
  for (const Piece& piece : pieces_) text += piece.what.field ? "0" : piece.what.text;
  return text;
}

Result<std::string> BodyTemplate::render(const EventView& event, event::Arena& arena) const {
  std::string body;
  for (const auto& [what, way] : pieces_) {
    if (!what.field) {
      body += what.text;
      continue;
    }
    const std::string_view value = what.field->render(event, arena);
    switch (way) {
      case Way::as_it_is: body += value; break;
      case Way::percent_encoded: body += percent_encoded(value, kUnreserved); break;
      case Way::in_json_string: body += in_json_string(value); break;
      case Way::as_json:
        if (!value.empty() && !event::is_json(value)) {
          return fail(Errc::invalid_argument,
                      "http: the event cannot be sent: its value for " + what.text +
                          " is not JSON, and in http.body it is not within quotes",
                      "write quotes around the field, if its values are text");
        }
        body += value.empty() ? "null" : value;
    }
  }
  return body;
}

std::string_view BodyTemplate::content_type() const {
  return type_ == kTextBody ? std::string_view("text/plain; charset=utf-8") : type_;
}

}  // namespace outbox::sink::http
