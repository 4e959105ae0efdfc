// Constructing and passing on errors in one line.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <utility>

namespace outbox {

/// The error of something that has not happened; `remedy` says what must be redone.
[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, Remedy remedy, std::string message,
                                                std::string hint = {}) {
  return tl::unexpected<Error>(Error{.code = code,
                                     .remedy = remedy,
                                     .effect = Effect::none,
                                     .message = std::move(message),
                                     .hint = std::move(hint),
                                     .origin = {}});
}

/// The error of bad input or state: a person must change something.
[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, std::string message,
                                                std::string hint = {}) {
  return fail(code, Remedy::fix, std::move(message), std::move(hint));
}

[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

/// Passes on the error of another result.
template <class T>
[[nodiscard]] tl::unexpected<Error> pass(Result<T>& failed) {
  return tl::unexpected<Error>(std::move(failed.error()));
}

/// Declares `variable` with the value of a Result, or passes on its error:
///   OUTBOX_TRY(const Rows rows, connection.exec(query));
/// Without a variable, passes on the error of a Status, or of a Result whose value nobody needs:
///   OUTBOX_TRY(connection.commit());
#define OUTBOX_TRY(...) \
  OUTBOX_TRY_OF_TWO(__VA_ARGS__, OUTBOX_TRY_VALUE, OUTBOX_TRY_STATUS, )(__VA_ARGS__)
#define OUTBOX_TRY_OF_TWO(first, second, chosen, ...) chosen
#define OUTBOX_TRY_STATUS(expression)                                          \
  if (auto OUTBOX_TRY_NAME(__LINE__) = expression; !OUTBOX_TRY_NAME(__LINE__)) \
  return ::outbox::pass(OUTBOX_TRY_NAME(__LINE__))
#define OUTBOX_TRY_VALUE(variable, expression) \
  OUTBOX_TRY_AT(OUTBOX_TRY_NAME(__LINE__), variable, expression)
#define OUTBOX_TRY_AT(result, variable, expression) \
  auto result = expression;                         \
  if (!result) return ::outbox::pass(result);       \
  variable = std::move(*result)
#define OUTBOX_TRY_NAME(line) OUTBOX_TRY_JOIN(line)
#define OUTBOX_TRY_JOIN(line) result_in_line_##line

/// Ends the process, because unreachable code was reached or an invariant is broken, and going on
/// could lose events. A restarted relay delivers from its cursor.
[[noreturn]] void die(const char* file, int line, const char* what) noexcept;

}  // namespace outbox

/// Ends the process if the invariant is broken, in production builds too.
#define OUTBOX_CHECK(condition)                                      \
  do {                                                               \
    if (!(condition)) ::outbox::die(__FILE__, __LINE__, #condition); \
  } while (false)
