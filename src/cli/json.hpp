// Writing JSON for people's scripts, with two blanks per level.
//
//   Json json;
//   json.object().member("version", "0.1.0").key("sinks").array().value("file").end().end();
//   json.print();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace outbox::cli {

class Json {
 public:
  Json& object() { return open('{', '}'); }
  Json& array() { return open('[', ']'); }
  /// Ends the innermost object or array.
  Json& end();
  Json& key(std::string_view name);

  Json& value(std::string_view text);
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(bool truth) { return raw(truth ? "true" : "false"); }
  Json& value(double number);
  template <class Integer>
  requires std::is_integral_v<Integer> Json& value(Integer number) {
    return raw(std::to_string(number));
  }
  Json& null() { return raw("null"); }
  /// What is JSON already.
  Json& literal(std::string_view json) { return raw(json); }

  template <class T>
  Json& member(std::string_view name, const T& content) {
    key(name);
    return value(content);
  }
  /// An empty text becomes null.
  Json& member_or_null(std::string_view name, std::string_view text);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// To stdout, with a line end.
  void print() const;

 private:
  Json& open(char begin, char finish);
  Json& raw(std::string_view token);
  void separate();

  std::string text_;
  std::vector<char> open_;  ///< What closes the levels that are open.
  bool first_{true};        ///< Nothing stands yet on this level.
  bool after_key_{false};
};

}  // namespace outbox::cli
