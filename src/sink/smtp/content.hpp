// The texts of a mail: its header fields, and its body.
#pragma once

#include <cstddef>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::sink::smtp {

// ---- Text in header fields of a mail: lines that no server cuts, and other characters than ASCII
// as encoded words (RFC 2047). Pure.

/// The length that lines should not exceed (RFC 5322, 2.1.1).
inline constexpr std::size_t kLineBytes = 76;

/// Why no header field can have the text: a control character such as a line break or NUL, or
/// invalid UTF-8; nullopt if it is fine.
[[nodiscard]] std::optional<std::string> find_fault(std::string_view text);

/// "Name: text" and CR LF, for a text without fault. Short printable ASCII is written as it is;
/// other text in encoded words, which decode to exactly this text.
[[nodiscard]] std::string field(std::string_view name, std::string_view text);

/// Encoded words with folds between them, to continue a line that has `used` bytes.
[[nodiscard]] std::string encoded_words(std::string_view text, std::size_t used);

// ---- The body of a mail as MIME (RFC 2045): bytes that any server passes on unchanged, in lines
// that none cuts. libcurl's curl_mime is not used: it makes a multipart body with a random
// boundary, but a mail that is sent again must have the same bytes. Pure.

/// The header fields Content-Type and Content-Transfer-Encoding, an empty line and the encoded
/// body.
///
/// Text in UTF-8 stays readable (quoted-printable) unless most of it is not ASCII (base64); its
/// line breaks become CR LF, as in every mail. Anything else is base64 of exactly these bytes.
/// JSON, and text without a type, are text/plain. Types multipart and message are errors.
[[nodiscard]] Result<std::string> content(std::string_view content_type, std::string_view body);

[[nodiscard]] std::string quoted_printable(std::string_view text);
/// Base64 in lines of 76 characters.
[[nodiscard]] std::string base64_lines(std::string_view bytes);
/// The text with CR LF instead of each LF that has no CR.
[[nodiscard]] std::string with_crlf(std::string_view text);
/// The text for use within HTML, even within an attribute.
[[nodiscard]] std::string html_escaped(std::string_view text);

}  // namespace outbox::sink::smtp
