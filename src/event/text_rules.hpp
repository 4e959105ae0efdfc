// The rules for names and values of events and subscriptions. Pure.
#pragma once

#include <cstddef>
#include <outbox/error.hpp>
#include <string_view>

namespace outbox::event {

/// The longest name, in bytes.
inline constexpr std::size_t kLongestName = 255;

/// Whether the text is a token of RFC 9110, 5.6.2: a header name, or half of a media type.
[[nodiscard]] bool is_token(std::string_view text) noexcept;

/// Checks for UTF-8, at most kLongestName bytes and no control characters. May be empty.
[[nodiscard]] Status check_name(std::string_view field, std::string_view text);
/// Checks the same, and that the text is neither empty nor blank; `hint` is for that error.
[[nodiscard]] Status check_required_name(std::string_view field, std::string_view text,
                                         std::string_view hint = {});
/// Checks the name of a subscription or schedule: letters, digits, '-', '_', '.', at most 63 bytes.
[[nodiscard]] Status check_plain_name(std::string_view field, std::string_view text);
/// Checks that the text is empty or type/subtype, perhaps with parameters, in printable ASCII.
[[nodiscard]] Status check_content_type(std::string_view field, std::string_view text);
/// Checks for a token of RFC 9110 that is not reserved.
[[nodiscard]] Status check_header_name(std::string_view field, std::string_view name);
/// Checks for UTF-8 without CR and LF, which could end the header at a destination, and without
/// NUL, which jsonb cannot hold.
[[nodiscard]] Status check_header_value(std::string_view field, std::string_view name,
                                        std::string_view value);

}  // namespace outbox::event
