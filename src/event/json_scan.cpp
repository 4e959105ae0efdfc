#include "event/json_scan.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/text.hpp"
#include "event/utf8.hpp"

namespace outbox::event {
namespace {

/// Whether one of 8 bytes of a string needs a closer look: a quote, a backslash, a control
/// character, or not ASCII. Carries may report a byte above such a one, but none is missed.
bool any_special(std::uint64_t word) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101ULL;
  constexpr std::uint64_t tops = 0x8080808080808080ULL;
  const std::uint64_t quote = word ^ (ones * '"');
  const std::uint64_t slash = word ^ (ones * '\\');
  const std::uint64_t hit = (word - ones * 0x20U) | (quote - ones) | (slash - ones) | word;
  return (hit & tops) != 0;
}

bool is_high_surrogate(unsigned unit) noexcept { return unit >= 0xd800U && unit < 0xdc00U; }
bool is_low_surrogate(unsigned unit) noexcept { return unit >= 0xdc00U && unit < 0xe000U; }

/// The open brackets, one bit each. The first 256 levels need no allocation.
class Nesting {
 public:
  [[nodiscard]] bool empty() const noexcept { return depth_ == 0; }
  [[nodiscard]] bool in_object() const noexcept {
    return (word(depth_ - 1) >> ((depth_ - 1) % 64) & 1U) != 0;
  }
  void open(bool object) {
    if (depth_ / 64 >= near_.size() + far_.size()) far_.push_back(0);
    auto& bits = word(depth_);
    const std::uint64_t bit = std::uint64_t{1} << (depth_ % 64);
    bits = object ? bits | bit : bits & ~bit;
    ++depth_;
  }
  void close() noexcept { --depth_; }

 private:
  [[nodiscard]] std::uint64_t& word(std::size_t level) noexcept {
    const std::size_t at = level / 64;
    return at < near_.size() ? near_[at] : far_[at - near_.size()];
  }
  [[nodiscard]] const std::uint64_t& word(std::size_t level) const noexcept {
    const std::size_t at = level / 64;
    return at < near_.size() ? near_[at] : far_[at - near_.size()];
  }

  std::array<std::uint64_t, 4> near_{};
  std::vector<std::uint64_t> far_;
  std::size_t depth_{0};
};

unsigned read_hex4(const char* at) noexcept {
  unsigned unit = 0;
  for (int i = 0; i < 4; ++i) unit = unit << 4U | static_cast<unsigned>(hex_value(at[i]));
  return unit;
}

std::size_t encode_utf8(unsigned point, char* to) noexcept {
  constexpr std::array<unsigned, 5> leads{0, 0, 0xc0, 0xe0, 0xf0};
  std::size_t length = 1;
  if (point >= 0x80U) length = point < 0x800U ? 2 : 3;
  if (point >= 0x10000U) length = 4;
  for (std::size_t i = length - 1; i > 0; --i, point >>= 6U)
    to[i] = static_cast<char>(0x80U | (point & 0x3fU));
  to[0] = static_cast<char>(leads[length] | point);
  return length;
}

char unescaped(char c) noexcept {
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;  // The escaped character is a quote, a backslash or a slash.
  }
}

}  // namespace

bool JsonCursor::hex4(unsigned& into) noexcept {
  into = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const int value = at_ < end_ ? hex_value(*at_) : -1;
    if (value < 0) return fail("expected four hexadecimal digits after \\u");
    into = into << 4U | static_cast<unsigned>(value);
  }
  return true;
}

bool JsonCursor::escape() noexcept {
  ++at_;  // Skips the backslash.
  const char c = peek();
  if (c != 'u') {
    if (c == '\0' || std::strchr("\"\\/bfnrt", c) == nullptr) return fail("unknown escape");
    ++at_;
    return true;
  }
  ++at_;
  unsigned unit = 0;
  if (!hex4(unit)) return false;
  if (is_low_surrogate(unit)) return fail("\\u escape is half of a pair");
  if (!is_high_surrogate(unit)) return true;
  if (!take('\\') || !take('u')) return fail("\\u escape is half of a pair");
  if (!hex4(unit)) return false;
  return is_low_surrogate(unit) || fail("\\u escape is half of a pair");
}

bool JsonCursor::string(JsonString& into) noexcept {
  if (!take('"')) return fail("expected '\"'");
  const char* const start = at_;
  into.escaped = false;
  for (;;) {
    std::uint64_t word = 0;
    while (end_ - at_ >= 8 && (std::memcpy(&word, at_, 8), !any_special(word))) at_ += 8;
    if (at_ == end_) return fail("string without end");
    const auto byte = static_cast<unsigned char>(*at_);
    if (byte == '"') break;
    if (byte == '\\') {
      into.escaped = true;
      if (!escape()) return false;
      continue;
    }
    if (byte < 0x20U) return fail("control character in a string");
    const std::size_t length = utf8_length(at_, end_);
    if (length == 0) return fail("not UTF-8");
    at_ += length;
  }
  into.raw = {start, static_cast<std::size_t>(at_ - start)};
  ++at_;
  return true;
}

bool JsonCursor::number() noexcept {
  take('-');
  if (!is_digit(peek())) return fail("expected a digit");
  if (!take('0')) {
    while (is_digit(peek())) ++at_;
  }
  if (take('.')) {
    if (!is_digit(peek())) return fail("expected a digit after '.'");
    while (is_digit(peek())) ++at_;
  }
  if (take('e') || take('E')) {
    if (!take('+')) take('-');
    if (!is_digit(peek())) return fail("expected a digit in the exponent");
    while (is_digit(peek())) ++at_;
  }
  return true;
}

bool JsonCursor::word(std::string_view expected) noexcept {
  const auto left = static_cast<std::size_t>(end_ - at_);
  if (left < expected.size() || std::memcmp(at_, expected.data(), expected.size()) != 0)
    return fail("expected a value");
  at_ += expected.size();
  return true;
}

bool JsonCursor::scalar() noexcept {
  JsonString ignored;
  switch (peek()) {
    case '"': return string(ignored);
    case 't': return word("true");
    case 'f': return word("false");
    case 'n': return word("null");
    default: break;
  }
  if (peek() == '-' || is_digit(peek())) return number();
  return fail(at_end() ? "it ends too early" : "expected a value");
}

bool JsonCursor::member_name() noexcept {
  JsonString ignored;
  if (!string(ignored)) return false;
  space();
  if (!take(':')) return fail("expected ':'");
  space();
  return true;
}

bool JsonCursor::value(std::string_view& into) {
  const char* const start = at_;
  const bool nested = peek() == '[' || peek() == '{';
  if (nested ? !container() : !scalar()) return false;
  into = {start, static_cast<std::size_t>(at_ - start)};
  return true;
}

bool JsonCursor::container() {
  Nesting open;
  for (;;) {
    // A value is expected here.
    const bool object = peek() == '{';
    const bool opened = object || peek() == '[';
    if (opened) {
      ++at_;
      open.open(object);
    } else if (!scalar()) {
      return false;
    }
    bool first = opened;
    for (space(); take(open.in_object() ? '}' : ']'); space()) {
      open.close();
      if (open.empty()) return true;
      first = false;
    }
    if (!first && !take(','))
      return fail(open.in_object() ? "expected ',' or '}'" : "expected ',' or ']'");
    space();
    if (open.in_object() && !member_name()) return false;
  }
}

std::optional<JsonFault> json_fault(std::string_view text) {
  JsonCursor cursor(text);
  std::string_view ignored;
  cursor.space();
  if (!cursor.value(ignored)) return cursor.fault();
  cursor.space();
  if (cursor.at_end()) return std::nullopt;
  cursor.fail("something follows the value");
  return cursor.fault();
}

std::size_t decode_json(std::string_view raw, char* to) noexcept {
  char* const start = to;
  const char* at = raw.data();
  const char* const end = at + raw.size();
  while (at < end) {
    const auto* slash =
        static_cast<const char*>(std::memchr(at, '\\', static_cast<std::size_t>(end - at)));
    const auto plain = static_cast<std::size_t>((slash != nullptr ? slash : end) - at);
    std::memcpy(to, at, plain);
    to += plain;
    if (slash == nullptr) break;
    at = slash + 2;
    if (slash[1] != 'u') {
      *to++ = unescaped(slash[1]);
      continue;
    }
    unsigned point = read_hex4(at);
    at += 4;
    if (is_high_surrogate(point)) {
      point = 0x10000U + ((point - 0xd800U) << 10U) + (read_hex4(at + 2) - 0xdc00U);
      at += 6;
    }
    to += encode_utf8(point, to);
  }
  return static_cast<std::size_t>(to - start);
}

std::string decode_json(const JsonString& text) {
  if (!text.escaped) return std::string(text.raw);
  std::string out(text.raw.size(), '\0');
  out.resize(decode_json(text.raw, out.data()));
  return out;
}

std::string json_text(std::string_view value) {
  if (value.front() != '"') return std::string(value);
  return decode_json(JsonString{.raw = value.substr(1, value.size() - 2), .escaped = true});
}

}  // namespace outbox::event
