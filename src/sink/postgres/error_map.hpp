// What an SQLSTATE means for the events of a transaction that failed with it. Pure. The only place of the sink that reads them.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::sink::postgres {

/// An error of the server, without what may hold values of a row (DETAIL, CONTEXT).
struct Failure {
  std::string sqlstate;
  std::string said;  ///< Its primary message.
  std::string hint;
};

enum class Verdict : std::uint8_t {
  event,    ///< One of the events is at fault.
  retry,    ///< Nobody is: a deadlock, a lock that is held, a time limit.
  blocked,  ///< The destination is.
  lost,     ///< The connection is: the transaction may have been committed.
};

[[nodiscard]] Verdict verdict_of(std::string_view sqlstate) noexcept;

/// `place`: the table. The server's words are not repeated where they quote values (class 22).
[[nodiscard]] Error describe(const Failure& failure, std::string_view place);

}  // namespace outbox::sink::postgres
