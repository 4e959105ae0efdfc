#include "base/log_line.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace outbox::log {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json, bool ascii) {
  return json.dump(-1, ' ', ascii, Json::error_handler_t::replace);
}

bool is_plain_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < '\x7f' && c != '"' && c != '\\' && c != '=';
  });
}

/// DEL, the control characters U+0080 to U+009F, and the line separators U+2028 and U+2029, which JSON lets pass.
bool has_hidden_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest[0] == '\x7f' || rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9"))
      return true;
    if (rest.size() > 1 && rest[0] == '\xc2' && static_cast<unsigned char>(rest[1]) < 0xa0)
      return true;
  }
  return false;
}

Json to_json(const Field::Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string value_text(const Field::Value& value) {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text == nullptr) return dump(to_json(value), false);
  return is_plain_word(*text) ? std::string(*text) : dump(*text, has_hidden_control(*text));
}

}  // namespace

std::string text_line(std::string_view message, std::span<const Field> fields) {
  std::string line(message);
  for (const Field& field : fields) {
    line.append(" ").append(field.key).append("=").append(value_text(field.value));
  }
  return line;
}

std::string json_line(std::string_view message, std::span<const Field> fields) {
  Json line{{"msg", message}};
  for (const Field& field : fields) line[std::string(field.key)] = to_json(field.value);
  return dump(line, true);
}

}  // namespace outbox::log
