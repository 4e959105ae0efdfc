#include "sink/smtp/content.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/utf8.hpp"

namespace outbox::sink::smtp {
namespace {

constexpr std::string_view kBegin = "=?UTF-8?B?";
constexpr std::string_view kEnd = "?=";
constexpr std::string_view kFold = "\r\n ";
/// An encoded word has at most 75 characters (RFC 2047, 2).
constexpr std::size_t kWordBytes = 75;
/// The length of a word with room for one character of any length.
constexpr std::size_t kShortestWord = kBegin.size() + 8 + kEnd.size();

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20U || byte == 0x7fU;
}

/// The beginning of the text, in whole characters, that fits into such a word (RFC 2047, 5).
std::string_view first_part(std::string_view text, std::size_t word) {
  const std::size_t room = (word - kBegin.size() - kEnd.size()) / 4 * 3;
  std::size_t size = std::min(room, text.size());
  const auto continues = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
  };
  while (size > 0 && continues(size)) --size;
  return text.substr(0, size);
}

/// Whether readers return exactly this text without any encoding: they trim it, and decode what
/// looks like an encoded word.
bool is_plain(std::string_view text) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  const bool trimmed = text.empty() || (text.front() != ' ' && text.back() != ' ');
  return printable && trimmed && text.find("=?") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> find_fault(std::string_view text) {
  if (std::any_of(text.begin(), text.end(), [](char c) { return is_control(c) && c != '\t'; }))
    return "has a line break or another control character";
  if (!event::is_utf8(text)) return "is not UTF-8";
  return std::nullopt;
}

std::string encoded_words(std::string_view text, std::size_t used) {
  std::string out;
  while (!text.empty()) {
    const std::size_t left = kLineBytes - std::min(used, kLineBytes);
    if (left < kShortestWord) {
      out += kFold;
      used = 1;
      continue;
    }
    const std::string_view part = first_part(text, std::min(left, kWordBytes));
    const std::string word = std::string(kBegin) + event::base64_text(part) + std::string(kEnd);
    out += word;
    text.remove_prefix(part.size());
    used = kLineBytes;
  }
  return out;
}

std::string field(std::string_view name, std::string_view text) {
  std::string line(name);
  line += ": ";
  const bool fits = line.size() + text.size() <= kLineBytes;
  line += fits && is_plain(text) ? std::string(text) : encoded_words(text, line.size());
  return line += "\r\n";
}

namespace {

/// The number of bytes that make a line of 76 characters.
constexpr std::size_t kBase64Bytes = 57;

bool is_readable(char c) { return (c >= ' ' && c <= '~') || c == '\t' || c == '\r' || c == '\n'; }

/// Whether base64, four characters for three, beats three for each that is not readable.
bool is_shorter_in_base64(std::string_view text) {
  const auto other =
      std::count_if(text.begin(), text.end(), [](char c) { return !is_readable(c); });
  return static_cast<std::size_t>(other) > text.size() / 6;
}

constexpr std::string_view kCharset = "charset=";

bool has_charset(std::string_view content_type) {
  return to_lower(content_type).find(kCharset) != std::string::npos;
}

/// Whether the charset is UTF-8 or ASCII. In UTF-16 a line feed is not a byte of its own.
bool is_utf8_or_ascii(std::string_view content_type) {
  const std::string lower = to_lower(content_type);
  const std::size_t at = lower.find(kCharset);
  if (at == std::string::npos) return true;
  std::string_view charset = std::string_view(lower).substr(at + kCharset.size());
  if (charset.starts_with('"')) charset.remove_prefix(1);
  return charset.starts_with("utf-8") || charset.starts_with("us-ascii");
}

/// Lines of quoted-printable (RFC 2045, 6.7).
class Lines {
 public:
  /// Adds one encoded character, after a soft line break if it does not fit into the line.
  void add(std::string_view encoded) {
    if (used_ + encoded.size() > kLineBytes - 1) soft_break();  // One character is for its =.
    // With this nothing depends on how SMTP doubles a dot at the beginning of a line.
    if (used_ == 0 && encoded == ".") encoded = "=2E";
    out_ += encoded;
    used_ += encoded.size();
  }
  void end_line() {
    out_ += "\r\n";
    used_ = 0;
  }
  /// Returns the text. A mail ends with a line break, which must not become part of the text.
  [[nodiscard]] std::string take() {
    if (used_ > 0) soft_break();
    return std::move(out_);
  }

 private:
  void soft_break() {
    out_ += '=';
    end_line();
  }

  std::string out_;
  std::size_t used_{0};
};

std::string encoded(char c) {
  std::string out = "=";
  append_hex(out, c, kUpperHexDigits);
  return out;
}

std::string part(std::string_view type, std::string_view encoding, std::string body) {
  return "Content-Type: " + std::string(type) +
         "\r\nContent-Transfer-Encoding: " + std::string(encoding) + "\r\n\r\n" + std::move(body);
}

std::string text_part(std::string type, std::string_view body) {
  if (!has_charset(type)) type += "; charset=utf-8";
  const std::string text = with_crlf(body);
  if (is_shorter_in_base64(text)) return part(type, "base64", base64_lines(text));
  return part(type, "quoted-printable", quoted_printable(text));
}

}  // namespace

std::string with_crlf(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) out += '\r';
    out += text[i];
  }
  return out;
}

std::string quoted_printable(std::string_view text) {
  Lines lines;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool line_ends = text.substr(i).starts_with("\r\n");
    if (line_ends) {
      lines.end_line();
      ++i;
      continue;
    }
    const std::string_view rest = text.substr(i + 1);
    const bool blank = c == ' ' || c == '\t';
    const bool last = rest.empty() || rest.starts_with("\r\n");
    const bool plain = blank ? !last : c > ' ' && c <= '~' && c != '=';
    lines.add(plain ? std::string(1, c) : encoded(c));
  }
  return lines.take();
}

std::string base64_lines(std::string_view bytes) {
  std::string out;
  out.reserve(event::base64_length(bytes.size()) / kLineBytes * 2 +
              event::base64_length(bytes.size()) + 2);
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, kBase64Bytes);
    out += event::base64_text(line) + "\r\n";
    bytes.remove_prefix(line.size());
  }
  return out;
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

Result<std::string> content(std::string_view content_type, std::string_view body) {
  const std::string type = to_lower(event::media_type(content_type));
  if (type.starts_with("multipart/") || type.starts_with("message/")) {
    return fail(Errc::unsupported,
                "smtp: the event cannot be sent: a body of the type " + in_quotes(type) +
                    " cannot be a part of a mail that this sink makes",
                "write the mail with smtp.body, or enqueue such events with another content type");
  }
  const bool printable = std::all_of(content_type.begin(), content_type.end(),
                                     [](char c) { return c >= ' ' && c <= '~'; });
  if (!printable) {
    return fail(Errc::invalid_argument,
                "smtp: the event cannot be sent: its content type has a line break or another "
                "character that cannot be there",
                "send it corrected: outbox parked edit");
  }
  const bool utf8 = event::is_utf8(body);
  const bool typeless = type.empty() || event::is_json_type(content_type);
  if (utf8 && typeless) return text_part("text/plain", body);
  if (utf8 && type.starts_with("text/") && is_utf8_or_ascii(content_type))
    return text_part(std::string(trimmed(content_type)), body);
  const std::string_view kept =
      type.empty() ? std::string_view("application/octet-stream") : trimmed(content_type);
  return part(kept, "base64", base64_lines(body));
}

}  // namespace outbox::sink::smtp
