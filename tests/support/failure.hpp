// Errors of the code that tests share. Any failure of a server, process or file ends the run of a
// demo, benchmark or test, so unlike the library this code throws outbox::Exception.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <type_traits>
#include <utility>

namespace outbox::test {

/// Returns the value, or throws an exception with the error.
template <class T>
[[nodiscard]] T must(Result<T> result) {
  if (!result) throw Exception(std::move(result.error()));
  return std::move(*result);
}
inline void must(Status status) {
  if (!status) throw Exception(std::move(status.error()));
}

/// Runs the call, and returns the error that it throws.
template <class F>
[[nodiscard]] auto caught(const F& call) -> Result<decltype(call())> {
  try {
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      return {};
    } else {
      return call();
    }
  } catch (const Exception& failure) {
    return tl::unexpected(failure.error());
  }
}

[[noreturn]] inline void give_up(Errc code, std::string message, std::string hint = {},
                                 std::string origin = {}) {
  throw Exception(Error{.code = code,
                        .remedy = Remedy::fix,
                        .effect = Effect::none,
                        .message = std::move(message),
                        .hint = std::move(hint),
                        .origin = std::move(origin)});
}

}  // namespace outbox::test
