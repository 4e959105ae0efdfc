// How a verb ends: exit codes, the line that says why, and the exception that carries both to
// main(). Any failure ends a verb, so here, unlike in the library, errors are thrown.
#pragma once

#include <exception>
#include <outbox/error.hpp>
#include <string>
#include <utility>
#include <vector>

namespace outbox::cli {

/// The codes are stable, since scripts depend on them.
enum ExitCode : int {
  kOk = 0,
  kError = 1,
  kUsage = 2,
  kCheckFailed = 3,
  kInterrupted = 4,
  kNotNow = 5
};

class Failure : public std::exception {
 public:
  Failure(ExitCode code, std::vector<std::string> lines) : code_(code), lines_(std::move(lines)) {}
  Failure(ExitCode code, std::string line)
      : Failure(code, std::vector<std::string>{std::move(line)}) {}
  Failure(ExitCode code, const std::string& what, const std::string& hint)
      : Failure(code, what + " (hint: " + hint + ")") {}

  [[nodiscard]] ExitCode code() const noexcept { return code_; }
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }
  [[nodiscard]] const char* what() const noexcept override {
    return lines_.empty() ? "" : lines_.front().c_str();
  }

 private:
  ExitCode code_;
  std::vector<std::string> lines_;
};

/// Returns kNotNow for a transient error without effect, after which the same command can be run
/// again, else kError.
[[nodiscard]] inline ExitCode exit_code(const Error& error) noexcept {
  const bool passes = error.remedy != Remedy::fix && error.effect == Effect::none;
  return passes ? kNotNow : kError;
}

/// Gives the error of something that only reads, or can be done again, no effect: whatever
/// happened, the same command can be run again.
template <class T>
[[nodiscard]] Result<T> repeatable(Result<T> result) {
  if (!result) result.error().effect = Effect::none;
  return result;
}

/// Returns the value or ends the verb.
template <class T>
[[nodiscard]] T must(Result<T> result) {
  if (!result) throw Failure(exit_code(result.error()), result.error().text());
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status) throw Failure(exit_code(status.error()), status.error().text());
}

}  // namespace outbox::cli
