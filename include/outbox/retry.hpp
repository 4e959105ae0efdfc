// outbox/retry.hpp: how often with_transaction() runs a transaction (outbox/postgres.hpp,
// outbox/sqlite.hpp).
//
//   outbox::RetryOptions retry{.attempts = 20};
//   retry.is_conflict = [](const std::exception& thrown) {   // SqlError is a class of your own
//     const auto* const error = dynamic_cast<const SqlError*>(&thrown);
//     return error != nullptr && outbox::postgres::is_conflict(error->sqlstate());
//   };
//
// Threads: values.
// Lifetime: values.
// Errors: with_transaction() refuses options that are not valid.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <outbox/error.hpp>
#include <stop_token>
#include <type_traits>

namespace outbox {

struct RetryOptions {
  /// How often the function is called, at most. At least 1. Default: 10.
  std::size_t attempts{10};
  /// The pause after the first conflict. It doubles with each further one, and varies by a quarter.
  /// Default: 5 ms.
  std::chrono::milliseconds first_pause{5};
  /// The longest pause. Default: 500 ms.
  std::chrono::milliseconds longest_pause{500};
  /// Whether an exception of the function says that another transaction was in the way, and all of
  /// it must be done again. Not asked about an outbox::Exception, which says so itself. Default:
  /// none does.
  std::function<bool(const std::exception&)> is_conflict{};
  /// Once a stop is requested there is no further attempt: what the last one threw is thrown.
  /// Default: none.
  std::stop_token stop{};
};

namespace detail {

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

}  // namespace detail
}  // namespace outbox
