#include "event/text_rules.hpp"

#include <algorithm>

#include "base/field_error.hpp"
#include "base/text.hpp"
#include "event/content_type.hpp"
#include "event/headers.hpp"
#include "event/utf8.hpp"

namespace outbox::event {
namespace {

bool is_printable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

bool is_token(std::string_view text) noexcept {
  const auto token_char = [](char c) {
    return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), token_char);
}

Status check_name(std::string_view field, std::string_view text) {
  if (text.size() > kLongestName) {
    return bad_field(field, "is " + std::to_string(text.size()) + " bytes long, at most " +
                                std::to_string(kLongestName) + " are allowed");
  }
  if (text.find('\0') != std::string_view::npos)
    return bad_field(field, "contains a NUL character");
  if (!is_utf8(text)) return bad_field(field, "is not UTF-8");
  if (has_control(text)) return bad_field(field, "contains a control character");
  return {};
}

Status check_plain_name(std::string_view field, std::string_view text) {
  constexpr std::size_t longest = 63;
  if (text.empty()) return bad_field(field, "is empty");
  if (text.size() > longest) return bad_field(field, "is longer than 63 bytes");
  const auto allowed = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; };
  if (std::all_of(text.begin(), text.end(), allowed)) return {};
  return bad_field(field, in_quotes(text) + " has characters that are not allowed",
                   "use letters, digits, '-', '_' and '.'");
}

Status check_required_name(std::string_view field, std::string_view text, std::string_view hint) {
  if (text.empty()) return bad_field(field, "is empty", std::string(hint));
  if (text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos)
    return bad_field(field, "is blank", std::string(hint));
  return check_name(field, text);
}

Status check_content_type(std::string_view field, std::string_view text) {
  if (auto status = check_name(field, text); !status || text.empty()) return status;
  const std::string_view type = media_type(text);
  const std::size_t slash = std::min(type.find('/'), type.size());
  const bool well_formed =
      is_token(type.substr(0, slash)) && slash < type.size() && is_token(type.substr(slash + 1));
  if (well_formed && std::all_of(text.begin(), text.end(), is_printable)) return {};
  return bad_field(field, "is not a media type",
                   "write type/subtype, for example application/json, or leave it empty");
}

Status check_header_name(std::string_view field, std::string_view name) {
  if (name.empty()) return bad_field(field, "a header has no name");
  if (name.size() > kLongestName)
    return bad_field(field, "the header name " + in_quotes(name) + " is longer than 255 bytes");
  if (!is_token(name)) {
    return bad_field(field, in_quotes(name) + " is not a header name",
                     "letters, digits and !#$%&'*+-.^_`|~ are allowed");
  }
  if (!is_reserved_header(name)) return {};
  return bad_field(
      field, in_quotes(name) +
                 " is reserved: names that begin with outbox- or outbox_ are set by outbox itself");
}

Status check_header_value(std::string_view field, std::string_view name, std::string_view value) {
  const std::string what = "the value of " + in_quotes(name);
  if (value.find('\0') != std::string_view::npos)
    return bad_field(field, what + " contains a NUL character");
  if (value.find_first_of("\r\n") != std::string_view::npos)
    return bad_field(field, what + " contains a line break");
  if (!is_utf8(value)) return bad_field(field, what + " is not UTF-8");
  return {};
}

}  // namespace outbox::event
