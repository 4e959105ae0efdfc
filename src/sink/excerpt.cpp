#include "sink/excerpt.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "event/utf8.hpp"

namespace outbox::sink {
namespace {

constexpr std::size_t kExcerptBytes = 200;

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  if (what.empty()) return;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

/// A character, or no bytes: no UTF-8.
bool is_shown(std::string_view character) {
  return !character.empty() && character != " " && !has_control(character);
}

}  // namespace

std::string excerpt(std::string_view whole, const std::vector<std::string>& secrets) {
  std::string text(whole);
  for (const std::string& secret : secrets) replace_all(text, secret, "***");
  std::string line;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const std::size_t size = event::utf8_length(at, end);
    if (is_shown({at, size})) {
      line.append(at, size);
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
    at += std::max<std::size_t>(size, 1);
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() <= kExcerptBytes) return line;
  std::size_t cut = kExcerptBytes;
  while ((static_cast<unsigned char>(line[cut]) & 0xc0U) == 0x80U) --cut;  // not within a character
  return line.substr(0, cut) + "...";
}

}  // namespace outbox::sink
