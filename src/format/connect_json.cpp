#include "format/connect_json.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "event/json_scan.hpp"
#include "event/json_write.hpp"

namespace outbox::format {
namespace {

/// Deeper values are copied as they are; Java would have given up, too.
constexpr int kDeepest = 200;

class Writer {
 public:
  Writer(std::string& out, const ConnectJson& rules) : out_(out), rules_(rules) {}

  void value(std::string_view json, int depth) {
    switch (json.front()) {
      case '{': return depth < kDeepest ? object(json, depth) : copy(json);
      case '[': return depth < kDeepest ? array(json, depth) : copy(json);
      case '"': return append_connect_string(out_, event::json_text(json));
      case '-':
      case '0':
      case '1':
      case '2':
      case '3':
      case '4':
      case '5':
      case '6':
      case '7':
      case '8':
      case '9': return number(json);
      default: return copy(json);  // The value is true, false or null.
    }
  }

 private:
  void copy(std::string_view json) { out_.append(json); }

  void object(std::string_view json, int depth) {
    out_.push_back('{');
    bool first = true;
    (void)event::for_each_member(json, [&](const event::JsonString& name, std::string_view member) {
      if (left_out(member)) return;
      if (!first) out_.push_back(',');
      first = false;
      append_connect_string(out_, event::decode_json(name));
      out_.push_back(':');
      value(member, depth + 1);
    });
    out_.push_back('}');
  }

  void array(std::string_view json, int depth) {
    event::JsonCursor cursor(json);
    (void)cursor.take('[');
    out_.push_back('[');
    cursor.space();
    std::string_view element;
    for (bool first = true; cursor.peek() != ']' && cursor.value(element); first = false) {
      if (!first) out_.push_back(',');
      value(element, depth + 1);
      cursor.space();
      if (!cursor.take(',')) break;
      cursor.space();
    }
    out_.push_back(']');
  }

  [[nodiscard]] bool left_out(std::string_view member) const {
    if (member == "null") return !rules_.keep_nulls;
    const bool empty_array =
        member.front() == '[' && member.find_first_not_of(" \t\r\n", 1) == member.size() - 1;
    return empty_array && !rules_.keep_empty_arrays;
  }

  /// Writes an integer that Java's long holds, or a double. A larger integer is copied.
  void number(std::string_view json) {
    if (json.find_first_of(".eE") != std::string_view::npos)
      return copy(java_double(std::strtod(std::string(json).c_str(), nullptr)));
    std::int64_t integer = 0;
    const auto read = std::from_chars(json.data(), json.data() + json.size(), integer);
    return copy(read.ec == std::errc() ? std::to_string(integer) : std::string(json));
  }

  std::string& out_;
  const ConnectJson& rules_;
};

/// Java writes at least two digits: the nearest of those that mean the same number (4.9E-324).
std::to_chars_result two_digits(double number, char (&text)[32], std::to_chars_result shortest) {
  char longer[32];
  const auto end =
      std::to_chars(longer, longer + sizeof longer - 1, number, std::chars_format::scientific, 1);
  *end.ptr = '\0';
  if (std::string_view(longer).find("0e") != std::string_view::npos) return shortest;
  if (std::strtod(longer, nullptr) != number) return shortest;
  const auto size = static_cast<std::size_t>(end.ptr - longer);
  std::memcpy(text, longer, size);
  return {text + size, std::errc()};
}

}  // namespace

void append_connect_string(std::string& out, std::string_view text) {
  event::append_json_string(out, text, kUpperHexDigits);
}

void append_connect_json(std::string& out, std::string_view json, const ConnectJson& rules) {
  const std::size_t begin = json.find_first_not_of(" \t\r\n");
  const std::size_t end = json.find_last_not_of(" \t\r\n");
  Writer(out, rules).value(json.substr(begin, end + 1 - begin), 0);
}

std::string java_double(double number) {
  if (number == 0) return std::signbit(number) ? "-0.0" : "0.0";
  char text[32];
  auto end = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
  if (std::memchr(text, '.', static_cast<std::size_t>(end.ptr - text)) == nullptr)
    end = two_digits(number, text, end);
  const std::string_view shortest(text, static_cast<std::size_t>(end.ptr - text));
  const std::size_t e = shortest.find('e');
  // Jackson cannot write a number that is not finite.
  if (e == std::string_view::npos) return "null";
  const int exponent = std::atoi(std::string(shortest.substr(e + 1)).c_str());
  std::string sign;
  std::string digits;
  for (const char c : shortest.substr(0, e)) {
    if (c == '-') sign = "-";
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  if (exponent < -3 || exponent >= 7) {
    const std::string rest = digits.size() > 1 ? digits.substr(1) : "0";
    return sign + digits.substr(0, 1) + "." + rest + "E" + std::to_string(exponent);
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole + 1) digits.resize(whole + 1, '0');
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace outbox::format
