// outbox/error.hpp: the one error type of the library, and how results carry it.
//
// Functions that can fail at run time return Result<T> or Status. What belongs to a transaction of
// yours (enqueue, Transaction, receive) throws outbox::Exception, because a failed enqueue that is
// ignored is a lost event. Result::value() of an error throws bad_expected_access, which is not an
// outbox::Exception.
//
//   outbox::Status status = relay->start();
//   if (!status) std::cerr << status.error().message << '\n';
//
// Threads: values; Const methods from any thread.
// Lifetime: values own their strings.
// Errors: none of their own.
#pragma once

#include <cstdint>
#include <outbox/expected.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace outbox {

/// What went wrong, roughly. Decide about retries by Remedy, not by this.
enum class Errc : std::uint8_t {
  invalid_argument,
  not_found,
  already_exists,
  lease_lost,
  not_in_transaction,
  too_large,
  permission_denied,
  unsupported,
  unavailable,
  deadline_exceeded,
  cancelled,
  corrupt,
  internal,
};

/// What the caller can do about it, ordered by how much must be redone.
enum class Remedy : std::uint8_t {
  retry_call,         ///< Transient: back off, then the same call.
  retry_transaction,  ///< This transaction is lost: rerun it.
  reconnect,          ///< The connection is lost: open a new one.
  fix,                ///< Fails again until a person changes something.
};

/// Whether the effect may have happened. Work that is not idempotent must not be repeated blindly
/// after `unknown`.
enum class Effect : std::uint8_t { none, unknown };

struct Error {
  Errc code{Errc::internal};
  Remedy remedy{Remedy::fix};
  Effect effect{Effect::none};
  std::string message;  ///< What failed, on which object. Never payload bytes or secrets.
  std::string hint;     ///< What to do about it; may be empty.
  std::string origin;   ///< "pg:40001", "http:503", "sqlite:5"; empty if it is outbox itself.

  /// "message (hint: ...)", one line, for people.
  [[nodiscard]] std::string text() const;
};

/// The name of the code in logs and JSON ("invalid_argument").
[[nodiscard]] const char* to_string(Errc code) noexcept;

/// What a function that can fail returns: a value or an Error. `return outbox::unexpected(error);`
/// returns the error.
template <class T>
using Result = expected<T, Error>;
using Status = Result<void>;

/// Thrown by what belongs to a transaction of the caller.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error) : std::runtime_error(error.text()), error_(std::move(error)) {}
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

}  // namespace outbox
