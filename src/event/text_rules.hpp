// What names and values may look like, for events and subscriptions alike; and how errors quote them. Pure.
#pragma once

#include <cstddef>
#include <outbox/error.hpp>
#include <span>
#include <string>
#include <string_view>

namespace outbox::event {

/// Unit: bytes.
inline constexpr std::size_t kLongestName = 255;

/// In quotes, cut to a length fit for one line, with everything but printable ASCII escaped.
[[nodiscard]] std::string in_quotes(std::string_view word);
/// A hint: "did you mean 'x'?", else the list of what is known.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string_view> known);

/// UTF-8, at most kLongestName bytes, no control characters. May be empty.
[[nodiscard]] Status check_name(std::string_view field, std::string_view text);
/// The same, and neither empty nor blank. `hint`: what is said when it is.
[[nodiscard]] Status check_required_name(std::string_view field, std::string_view text,
                                         std::string_view hint = {});
/// Empty, or type/subtype with or without parameters, in printable ASCII.
[[nodiscard]] Status check_content_type(std::string_view field, std::string_view text);
/// An RFC 9110 token that is not one of ours.
[[nodiscard]] Status check_header_name(std::string_view field, std::string_view name);
/// UTF-8 without CR, LF and NUL: what no destination can mistake for the end of the header, and jsonb can hold.
[[nodiscard]] Status check_header_value(std::string_view field, std::string_view name,
                                        std::string_view value);

}  // namespace outbox::event
