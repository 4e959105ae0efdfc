#include "base/json.hpp"

#include <nlohmann/json.hpp>

namespace outbox {

template <class Json>
Json try_parse_json(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

template <class Json>
Json parse_json(std::string_view text) {
  return Json::parse(text);
}

template <class Json>
std::string write_json(const Json& value, JsonStyle style) {
  return value.dump(style.indent, ' ', style.ascii, Json::error_handler_t::replace);
}

template nlohmann::json try_parse_json(std::string_view);
template nlohmann::ordered_json try_parse_json(std::string_view);
template nlohmann::json parse_json(std::string_view);
template nlohmann::ordered_json parse_json(std::string_view);
template std::string write_json(const nlohmann::json&, JsonStyle);
template std::string write_json(const nlohmann::ordered_json&, JsonStyle);

}  // namespace outbox
