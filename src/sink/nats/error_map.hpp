// What JetStream's answers to messages, the server's errors and the client's errors mean. Pure.
#pragma once

#include <nats/nats.h>

#include <cstdint>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>

namespace outbox::sink::nats {

/// The answer to a published message (NATS ADR-1 and ADR-7): a PubAck, or an error with its codes.
struct Answer {
  enum class Kind : std::uint8_t {
    stored,   ///< JetStream has it, or had it already.
    refused,  ///< JetStream refused it.
    nobody,   ///< No stream takes the subject: the server itself answers with 503.
    foreign,  ///< Another program listens on the subject and answered, too.
  };
  Kind kind{Kind::foreign};
  int code{0};      ///< A code as in HTTP.
  int err_code{0};  ///< JetStream's exact code; 0 if not given.
  std::string text{};
};
[[nodiscard]] Answer parse_answer(std::string_view body);

struct Verdict {
  Outcome::Kind kind{Outcome::Kind::unknown};
  Error error{};
};
/// The verdict on an answer that is not foreign.
[[nodiscard]] Verdict judge(const Answer& answer, std::string_view subject);

/// The subject in the server's -ERR for a message that the user may not publish.
struct Denied {
  std::string subject;
  bool cut{false};  ///< Whether the client kept only the subject's beginning.

  [[nodiscard]] bool means(std::string_view other) const {
    return cut ? other.starts_with(subject) : other == subject;
  }
};
[[nodiscard]] std::optional<Denied> parse_denied(std::string_view text);
[[nodiscard]] Error denied_error(std::string_view subject);

/// The text of the client's last error without the place in its source.
[[nodiscard]] std::string_view client_words(std::string_view text);
/// The client's error. `what` begins the message ("nats://a:4222: cannot connect"); `text` is from
/// the client or the server.
[[nodiscard]] Error describe(natsStatus status, std::string_view what, std::string_view text);

}  // namespace outbox::sink::nats
