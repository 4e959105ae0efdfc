// A log line after time and level: a constant message and named fields. Whatever a value holds
// (names, messages of databases and brokers), the line stays one line and JSON stays valid.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace outbox::log {

/// A literal of the program, so that values can go only into fields.
class Constant {
 public:
  consteval Constant(const char* text) : text_(text) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

/// A named value. It borrows a text for the duration of the call.
struct Field {
  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view>;

  template <class T>
  Field(Constant name, const T& given) : key(name.text()), value(to_value(given)) {}

  std::string_view key;
  Value value;

 private:
  template <class T>
  static Value to_value(const T& given) {
    if constexpr (std::is_same_v<T, bool>) {
      return given;
    } else if constexpr (std::floating_point<T>) {
      return static_cast<double>(given);
    } else if constexpr (std::unsigned_integral<T>) {
      return static_cast<std::uint64_t>(given);
    } else if constexpr (std::signed_integral<T>) {
      return static_cast<std::int64_t>(given);
    } else {
      return std::string_view(given);
    }
  }
};

/// The line `message key=value key="another value"`. A value that is not one plain word is quoted
/// and escaped as in JSON.
[[nodiscard]] std::string text_line(std::string_view message, std::span<const Field> fields);

/// The line {"msg":"message","key":"value"} in ASCII. Invalid UTF-8 is replaced, as in text_line().
[[nodiscard]] std::string json_line(std::string_view message, std::span<const Field> fields);

}  // namespace outbox::log
