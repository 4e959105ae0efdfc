// What an SQLSTATE means for the events of a transaction that failed with it. No other file of the
// sink interprets SQLSTATEs. Pure.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::sink::postgres {

/// An error of the server, without what may hold values of a row (DETAIL, CONTEXT).
struct Failure {
  std::string sqlstate;
  std::string said;  ///< The primary message.
  std::string hint;
};

enum class Verdict : std::uint8_t {
  event,    ///< One of the events is at fault.
  retry,    ///< Nothing is at fault: a deadlock, a lock that is held, a time limit.
  blocked,  ///< The destination is at fault.
  lost,     ///< The connection is lost, and the transaction may have been committed.
};

[[nodiscard]] Verdict find_verdict(std::string_view sqlstate) noexcept;

/// `place` is the table. The server's text is left out where it quotes values (class 22).
[[nodiscard]] Error describe(const Failure& failure, std::string_view place);

}  // namespace outbox::sink::postgres
