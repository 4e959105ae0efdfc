#include "base/text.hpp"

#include <cstddef>
#include <numeric>
#include <vector>

namespace outbox {
namespace {

constexpr std::size_t kLongestQuote = 64;

/// No name of ours is longer, and the table of distance() grows with the square.
constexpr std::size_t kLongestWord = 64;

/// Optimal string alignment distance: three rows of its table are enough.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = to_lower(a[i - 1]) == to_lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && to_lower(a[i - 1]) == to_lower(b[j - 2]) &&
                           to_lower(a[i - 2]) == to_lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

std::string percent_encoded(std::string_view text, std::string_view plain) {
  std::string out;
  for (const char c : text) {
    if (is_alnum(c) || plain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      append_hex(out.append("%"), c, kUpperHexDigits);
    }
  }
  return out;
}

std::string in_quotes(std::string_view word) {
  std::string text = "'";
  for (const char c : word.substr(0, kLongestQuote)) {
    if (c >= ' ' && c <= '~') {
      text.push_back(c);
    } else {
      append_hex(text.append("\\x"), c);
    }
  }
  if (word.size() > kLongestQuote) text.append("...");
  return text.append("'");
}

bool has_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20U || byte == 0x7fU) return true;
    if (byte == 0xc2U && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0U)
      return true;
  }
  return false;
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> known) {
  if (word.empty() || word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t fewest = 0;
  for (const std::string_view candidate : known) {
    if (candidate.size() > kLongestWord) continue;
    const std::size_t edits = distance(word, candidate);
    const std::size_t most = std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3);
    if (edits > most || (best && edits >= fewest)) continue;
    best = candidate;
    fewest = edits;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known,
                         std::string_view otherwise) {
  if (const auto meant = nearest(word, known))
    return std::string("did you mean ").append(*meant).append("?");
  if (!otherwise.empty()) return std::string(otherwise);
  std::string text = "known are";
  const char* separator = " ";
  for (const std::string_view one : known) {
    text.append(separator).append(one);
    separator = ", ";
  }
  return text;
}

}  // namespace outbox
