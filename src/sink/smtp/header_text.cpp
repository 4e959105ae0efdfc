#include "sink/smtp/header_text.hpp"

#include <algorithm>

#include "event/utf8.hpp"
#include "sink/base64_text.hpp"

namespace outbox::sink::smtp {
namespace {

constexpr std::string_view kBegin = "=?UTF-8?B?";
constexpr std::string_view kEnd = "?=";
constexpr std::string_view kFold = "\r\n ";
/// RFC 2047, 2: an encoded word has at most 75 characters.
constexpr std::size_t kWordBytes = 75;
/// Room for one character of any length.
constexpr std::size_t kShortestWord = kBegin.size() + 8 + kEnd.size();

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20U || byte == 0x7fU;
}

/// As much of the text as has a place in an encoded word of this length, whole characters only (RFC 2047, 5).
std::string_view first_part(std::string_view text, std::size_t word) {
  const std::size_t room = (word - kBegin.size() - kEnd.size()) / 4 * 3;
  std::size_t size = std::min(room, text.size());
  const auto continues = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
  };
  while (size > 0 && continues(size)) --size;
  return text.substr(0, size);
}

/// Whether readers give back exactly this text without any encoding: they trim it, and decode what looks like an encoded word.
bool is_plain(std::string_view text) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  const bool trimmed = text.empty() || (text.front() != ' ' && text.back() != ' ');
  return printable && trimmed && text.find("=?") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> fault_of(std::string_view text) {
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
    const std::string word = std::string(kBegin) + base64_text(part) + std::string(kEnd);
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

}  // namespace outbox::sink::smtp
