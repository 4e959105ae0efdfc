// Who runs this verb, and what is recorded of what the verb changes (docs/design/audit.md).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/output.hpp"
#include "store/audit.hpp"

namespace outbox::cli {

/// The user who runs this program, or whoever asked the console.
[[nodiscard]] std::string this_user();

/// While it lives, this_user() is this person in this thread, and what the thread changes comes
/// from the console.
class ActingPerson {
 public:
  explicit ActingPerson(const std::string& name);
  ActingPerson(const ActingPerson&) = delete;
  ActingPerson& operator=(const ActingPerson&) = delete;
  ~ActingPerson();
};

/// The decision of this person to run a verb that changes something: a store that is opened with it
/// records what it changes. `filter` is a JSON object of what was chosen; its members without a
/// value are left out.
[[nodiscard]] store::PersonDecision acting(const std::string& verb, const Json& filter,
                                           const std::string& reason = {});

/// The value of an option; null if it was not given.
template <class Value>
[[nodiscard]] Json given(const std::optional<Value>& option) {
  return option ? Json(*option) : Json();
}

}  // namespace outbox::cli
