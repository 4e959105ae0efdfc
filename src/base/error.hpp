// Making errors in one line.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <utility>

namespace outbox {

/// Bad input or state: a person must change something.
[[nodiscard]] inline tl::unexpected<Error> fail(Errc code, std::string message,
                                                std::string hint = {}) {
  return tl::unexpected<Error>(Error{.code = code,
                                     .remedy = Remedy::fix,
                                     .effect = Effect::none,
                                     .message = std::move(message),
                                     .hint = std::move(hint),
                                     .origin = {}});
}

[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

/// The error of another result, for passing it on.
template <class T>
[[nodiscard]] tl::unexpected<Error> pass(Result<T>& failed) {
  return tl::unexpected<Error>(std::move(failed.error()));
}

/// Unreachable code and broken invariants: ends the process. The relay restarts and delivers from its cursor; going on
/// with a broken invariant could lose events.
[[noreturn]] void die(const char* file, int line, const char* what) noexcept;

}  // namespace outbox

/// An invariant that holds in production builds too.
#define OUTBOX_CHECK(condition)                                      \
  do {                                                               \
    if (!(condition)) ::outbox::die(__FILE__, __LINE__, #condition); \
  } while (false)
