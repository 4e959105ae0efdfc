// Why a request of the API is not answered, as application/problem+json (RFC 9457). Pure.
#pragma once

#include <string>
#include <string_view>

namespace outbox::console {

struct Problem {
  int status{500};
  std::string title;   ///< What happened.
  std::string hint{};  ///< What to do about it.

  [[nodiscard]] std::string json() const;
};

/// A problem from a message of the command line, whose hint stands at its end: "... (hint: ...)".
[[nodiscard]] Problem problem_from(int status, std::string_view message);

}  // namespace outbox::console
