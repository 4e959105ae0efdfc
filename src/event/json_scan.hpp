// A strict JSON reader (RFC 8259) that reports positions instead of building values: whether a text
// is JSON, where its first fault is, and which bytes are the members of an object. It is our own,
// because payloads are delivered byte for byte and parsers that build values do not keep how they
// were written. It does not recurse, so nested input cannot overflow the stack. Like most parsers
// it is stricter than the grammar in one point: \u surrogates must come in pairs. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace outbox::event {

/// Where a text stops being JSON, and why.
struct JsonFault {
  std::size_t offset{0};  ///< In bytes from 0.
  const char* what{""};
};

/// The characters between the quotes of a JSON string, undecoded.
struct JsonString {
  std::string_view raw;
  bool escaped{false};  ///< Whether it has escapes; see decode_json().
};

/// Reads tokens and whole values one by one.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) noexcept
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  void space() noexcept {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  [[nodiscard]] bool at_end() const noexcept { return at_ == end_; }
  /// The next byte; at the end NUL, with which no JSON token begins.
  [[nodiscard]] char peek() const noexcept { return at_ < end_ ? *at_ : '\0'; }
  /// Consumes the byte if it is next.
  bool take(char c) noexcept {
    if (peek() != c || at_end()) return false;
    ++at_;
    return true;
  }
  /// Reads a string. Returns false, with a fault, if there is none.
  bool string(JsonString& into) noexcept;
  /// Reads a value of any type, nested or not. `into` gets its bytes.
  bool value(std::string_view& into);
  bool fail(const char* what) noexcept {
    fault_ = {.offset = static_cast<std::size_t>(at_ - begin_), .what = what};
    return false;
  }
  /// The fault of the last call that returned false.
  [[nodiscard]] const JsonFault& fault() const noexcept { return fault_; }

 private:
  bool container();
  bool member_name() noexcept;
  bool scalar() noexcept;
  bool number() noexcept;
  bool word(std::string_view expected) noexcept;
  bool escape() noexcept;
  bool hex4(unsigned& into) noexcept;

  const char* begin_;
  const char* at_;
  const char* end_;
  JsonFault fault_{};
};

/// Returns nullopt if the whole text is one JSON value.
[[nodiscard]] std::optional<JsonFault> json_fault(std::string_view text);
[[nodiscard]] inline bool is_json(std::string_view text) { return !json_fault(text); }

/// Decodes the escapes; `raw` must come from JsonCursor::string. Returns the number of bytes
/// written, at most raw.size().
std::size_t decode_json(std::string_view raw, char* to) noexcept;
[[nodiscard]] std::string decode_json(const JsonString& text);
/// The characters of a value that is a string, or else its JSON text.
[[nodiscard]] std::string json_text(std::string_view value);

/// Calls visit(JsonString name, std::string_view value) for each member of the object that the
/// whole text is. After a fault the caller must discard the members that were visited.
template <class Visit>
std::optional<JsonFault> for_each_member(std::string_view text, Visit&& visit) {
  JsonCursor cursor(text);
  const auto fault = [&](const char* what) {
    cursor.fail(what);
    return cursor.fault();
  };
  cursor.space();
  if (!cursor.take('{')) return fault("expected '{'");
  cursor.space();
  bool more = !cursor.take('}');
  while (more) {
    JsonString name;
    std::string_view value;
    if (!cursor.string(name)) return cursor.fault();
    cursor.space();
    if (!cursor.take(':')) return fault("expected ':'");
    cursor.space();
    if (!cursor.value(value)) return cursor.fault();
    visit(name, value);
    cursor.space();
    more = cursor.take(',');
    if (!more && !cursor.take('}')) return fault("expected ',' or '}'");
    if (more) cursor.space();
  }
  cursor.space();
  if (!cursor.at_end()) return fault("something follows the value");
  return std::nullopt;
}

}  // namespace outbox::event
