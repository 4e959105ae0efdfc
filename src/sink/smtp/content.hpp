// The texts of a mail: its header fields, and its body.
#pragma once

#include <cstddef>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::sink::smtp {

// ---- Text in header fields of a mail: lines that no server cuts, and characters other than ASCII as encoded words (RFC 2047). Pure.

/// RFC 5322, 2.1.1: lines should not be longer.
inline constexpr std::size_t kLineBytes = 76;

/// Why the text can be in no header field: a line break, NUL or another control character, or it is not UTF-8. None: it can.
[[nodiscard]] std::optional<std::string> fault_of(std::string_view text);

/// "Name: text" and CR LF, for a text without fault. It is written as it is where it is short printable ASCII, else in encoded words, which
/// give exactly this text when they are decoded.
[[nodiscard]] std::string field(std::string_view name, std::string_view text);

/// Encoded words with folds between them, to be continued on a line that has `used` bytes.
[[nodiscard]] std::string encoded_words(std::string_view text, std::size_t used);

// ---- The body of a mail as MIME (RFC 2045): bytes that any server passes on unchanged, in lines that none cuts. Not with libcurl's curl_mime:
// that makes a multipart body with a random boundary, and a mail that is sent again must have the same bytes. Pure.

/// The header fields Content-Type and Content-Transfer-Encoding, an empty line and the encoded body.
///
/// Text in UTF-8 stays readable (quoted-printable), unless most of it is not ASCII (base64); its line breaks become CR LF, as in every mail.
/// Anything else is base64 of exactly these bytes. JSON, and text of no type, are text/plain. The type of a single part of several or of a
/// mail in a mail is an error, which is the event's fault.
[[nodiscard]] Result<std::string> content(std::string_view content_type, std::string_view body);

[[nodiscard]] std::string quoted_printable(std::string_view text);
/// In lines of 76 characters.
[[nodiscard]] std::string base64_lines(std::string_view bytes);
/// With CR LF instead of each LF that has no CR.
[[nodiscard]] std::string with_crlf(std::string_view text);
/// For a text within HTML, also within an attribute.
[[nodiscard]] std::string html_escaped(std::string_view text);

}  // namespace outbox::sink::smtp
