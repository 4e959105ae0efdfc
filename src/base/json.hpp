// Reading and writing JSON texts. The library's parser and writer are templates that take four
// seconds to compile, so they are compiled once, in json.cpp, and not in each file that uses them.
// `Json` is nlohmann::json or nlohmann::ordered_json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace outbox {

/// For a text that need not be JSON: the value is discarded (`is_discarded()`) when it is not.
template <class Json>
[[nodiscard]] Json try_parse_json(std::string_view text);

/// For a text that has to be JSON. Throws nlohmann::json::exception when it is not.
template <class Json>
[[nodiscard]] Json parse_json(std::string_view text);

struct JsonStyle {
  int indent{-1};     ///< Blanks per level; negative: all in one line.
  bool ascii{false};  ///< Whether other characters are escaped.
};

/// Bytes that are not UTF-8 become U+FFFD.
template <class Json>
[[nodiscard]] std::string write_json(const Json& value, JsonStyle style = {});

extern template nlohmann::json try_parse_json(std::string_view);
extern template nlohmann::ordered_json try_parse_json(std::string_view);
extern template nlohmann::json parse_json(std::string_view);
extern template nlohmann::ordered_json parse_json(std::string_view);
extern template std::string write_json(const nlohmann::json&, JsonStyle);
extern template std::string write_json(const nlohmann::ordered_json&, JsonStyle);

}  // namespace outbox
