#include "base/log_line.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"

namespace outbox::log {
namespace {

using Json = nlohmann::ordered_json;

bool is_plain_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < '\x7f' && c != '"' && c != '\\' && c != '=';
  });
}

/// Whether there are control characters, or the line separators U+2028 and U+2029. nlohmann escapes
/// all of them only when it writes ASCII.
bool has_hidden_control(std::string_view text) {
  return has_control(text) || text.find("\xe2\x80\xa8") != text.npos ||
         text.find("\xe2\x80\xa9") != text.npos;
}

Json to_json(const Field::Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string value_text(const Field::Value& value) {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text == nullptr) return write_json(to_json(value));
  return is_plain_word(*text) ? std::string(*text)
                              : write_json(Json(*text), {.ascii = has_hidden_control(*text)});
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
  return write_json(line, {.ascii = true});
}

}  // namespace outbox::log
