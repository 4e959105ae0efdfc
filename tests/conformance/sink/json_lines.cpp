#include "conformance/sink/json_lines.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "event/base64.hpp"

namespace outbox::test {
namespace {

/// The bytes of the body. If it is JSON, they are those in the line, not what a parser makes of
/// them.
std::string read_body(const std::string& line, const nlohmann::json& value) {
  if (value.contains("body_base64"))
    return event::read_base64(value["body_base64"].get<std::string>()).value_or("?");
  if (value["headers"].value("content-type", "") != "application/json") return value["body"];
  const std::string member = ",\"body\":";
  const auto from = line.find(member) + member.size();
  return line.substr(from, line.find(",\"id\":\"", from) - from);
}

}  // namespace

std::vector<Arrived> read_json_lines(std::istream& from) {
  std::vector<Arrived> arrived;
  for (std::string line; std::getline(from, line);) {
    const auto value = nlohmann::json::parse(line, nullptr, false);
    if (value.is_discarded()) {
      ADD_FAILURE() << "not JSON: " << line.substr(0, 200);
      continue;
    }
    Arrived message{.id = value["id"], .key = {}, .body = read_body(line, value)};
    if (!value["key"].is_null()) message.key = value["key"];
    arrived.push_back(std::move(message));
  }
  return arrived;
}

std::vector<Arrived> read_json_lines(const std::string& path) {
  std::ifstream file(path);
  return read_json_lines(file);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace outbox::test
