// The body of a mail as MIME (RFC 2045): bytes that any server passes on unchanged, in lines that none cuts. Not with libcurl's curl_mime:
// that makes a multipart body with a random boundary, and a mail that is sent again must have the same bytes. Pure.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::sink::smtp {

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
