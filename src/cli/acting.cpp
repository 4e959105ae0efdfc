#include "cli/acting.hpp"

#include <pwd.h>
#include <unistd.h>

#include "base/json.hpp"

namespace outbox::cli {
namespace {

thread_local const std::string* acting_person = nullptr;

/// Whether the option was not given: its value is null, an empty list or text, or a flag that is
/// off.
bool was_not_given(const Json& value) {
  return value.empty() || value == Json(false) || value == Json("");
}

}  // namespace

ActingPerson::ActingPerson(const std::string& name) { acting_person = &name; }
ActingPerson::~ActingPerson() { acting_person = nullptr; }

std::string this_user() {
  if (acting_person != nullptr) return *acting_person;
  const passwd* const user = getpwuid(geteuid());
  return user != nullptr ? user->pw_name : "uid " + std::to_string(geteuid());
}

store::PersonDecision acting(const std::string& verb, const Json& filter,
                             const std::string& reason) {
  Json chosen = Json::object();
  for (const auto& [name, value] : filter.items()) {
    if (!was_not_given(value)) chosen[name] = value;
  }
  return {.actor = this_user(),
          .origin = acting_person != nullptr ? "console" : "command line",
          .verb = verb,
          .filter = write_json(chosen),
          .reason = reason};
}

}  // namespace outbox::cli
