#include "console/access.hpp"

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "console/operations.hpp"

namespace outbox::console {
namespace {

void hide_payloads(nlohmann::ordered_json& value) {
  if (value.is_array()) {
    for (nlohmann::ordered_json& one : value) hide_payloads(one);
  } else if (value.is_object()) {
    for (const char* const name : {"payload", "headers", "result"}) value.erase(name);
    for (auto& [name, member] : value.items()) hide_payloads(member);
  }
}

}  // namespace

Person anybody() { return {.name = "console", .role = Role::administers, .payloads = true}; }

std::optional<Problem> check_access(const Operation& operation, const Person& person) {
  if (person.role < operation.role)
    return Problem{.status = 403,
                   .title = "the token " + person.name + " has the role " +
                            std::string(to_word(person.role)) + ", and this needs the role " +
                            std::string(to_word(operation.role)),
                   .hint = "outbox console token add NAME --role " +
                           std::string(to_word(operation.role)) + " makes one"};
  if (operation.contents == Contents::all && !person.payloads)
    return Problem{.status = 403,
                   .title = "the token " + person.name + " does not show what events contain",
                   .hint = "outbox console token add NAME --payloads makes one that does"};
  return {};
}

std::string without_payloads(const std::string& document) {
  auto json = try_parse_json<nlohmann::ordered_json>(document);
  // A text that is no JSON is not shown: nobody knows what it contains.
  if (json.is_discarded()) return "null\n";
  hide_payloads(json);
  return write_json(json, {.indent = 2}) + "\n";
}

bool wants_tokens(const Exposure& exposure) {
  return exposure.tokens || exposure.tls || exposure.behind_tls || !exposure.loopback;
}

}  // namespace outbox::console
