// Text in header fields of a mail: lines that no server cuts, and characters other than ASCII as encoded words (RFC 2047). Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace outbox::sink::smtp {

/// RFC 5322, 2.1.1: lines should not be longer.
inline constexpr std::size_t kLineBytes = 76;

/// Why the text can be in no header field: a line break, NUL or another control character, or it is not UTF-8. None: it can.
[[nodiscard]] std::optional<std::string> fault_of(std::string_view text);

/// "Name: text" and CR LF, for a text without fault. It is written as it is where it is short printable ASCII, else in encoded words, which
/// give exactly this text when they are decoded.
[[nodiscard]] std::string field(std::string_view name, std::string_view text);

/// Encoded words with folds between them, to be continued on a line that has `used` bytes.
[[nodiscard]] std::string encoded_words(std::string_view text, std::size_t used);

}  // namespace outbox::sink::smtp
