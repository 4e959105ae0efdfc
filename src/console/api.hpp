// From a request of the API to the words of a verb (docs/design/console.md). Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "console/operations.hpp"
#include "console/problem.hpp"

namespace outbox::console {

inline constexpr std::string_view kApi = "/api/v1";

struct ApiRequest {
  std::string_view method;
  std::string_view path;  ///< Below kApi; not decoded.
  std::multimap<std::string, std::string> query{};
  std::string_view body{};
};

/// A call of a verb. No word but those of the table can be read as an option of its own.
struct Call {
  const Operation* operation{nullptr};
  std::vector<std::string> words;
};

[[nodiscard]] tl::expected<Call, Problem> translate(const ApiRequest& request);
/// What this path takes, for the header Allow: "GET, HEAD". Empty if there is nothing at it.
[[nodiscard]] std::string allowed_methods(std::string_view path);

/// What a verb has left behind.
struct Outcome {
  int code{0};                        ///< The exit code of the command line.
  bool unexpected{false};             ///< It ended with an exception that is no answer.
  std::string output{};               ///< What it would have written to stdout.
  std::vector<std::string> errors{};  ///< The lines that it would have written to stderr.
};

struct Answer {
  int status{200};
  std::string body{};  ///< JSON, or a problem if the status says so.
};

/// What the client is told. `number` names the line of the log that has what it is not told.
[[nodiscard]] Answer answer(const Operation& operation, const Outcome& outcome,
                            std::string_view number);

}  // namespace outbox::console
