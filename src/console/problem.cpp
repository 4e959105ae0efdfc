#include "console/problem.hpp"

#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace outbox::console {

std::string Problem::json() const {
  nlohmann::ordered_json json{{"title", title}, {"status", status}};
  if (!hint.empty()) json["hint"] = hint;
  return write_json(json, {.indent = 2}) + "\n";
}

Problem problem_from(int status, std::string_view message) {
  constexpr std::string_view kHint = " (hint: ";
  Problem problem{.status = status, .title = std::string(message)};
  const auto begin = message.rfind(kHint);
  if (begin != std::string_view::npos && message.ends_with(')')) {
    problem.title = message.substr(0, begin);
    const auto hint = message.substr(begin + kHint.size());
    problem.hint = hint.substr(0, hint.size() - 1);
  }
  return problem;
}

}  // namespace outbox::console
