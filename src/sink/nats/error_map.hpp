// What answers and errors mean: JetStream's answers to messages, the server's errors, the client's. Pure.
#pragma once

#include <nats/nats.h>

#include <cstdint>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>

namespace outbox::sink::nats {

/// The answer to a message that was published (ADR-1 and ADR-7 of NATS: a PubAck, or an error with code and err_code).
struct Answer {
  enum class Kind : std::uint8_t {
    stored,   ///< JetStream has it, or had it already.
    refused,  ///< JetStream refused it.
    nobody,   ///< No stream takes the subject: the server answers itself, with 503.
    foreign,  ///< Not an answer of JetStream: a program listens on the subject and answers, too.
  };
  Kind kind{Kind::foreign};
  int code{0};      ///< As in HTTP.
  int err_code{0};  ///< What exactly. 0: not given.
  std::string text{};
};
[[nodiscard]] Answer parse_answer(std::string_view body);

struct Verdict {
  Outcome::Kind kind{Outcome::Kind::unknown};
  Error error{};
};
/// Of any but a foreign answer.
[[nodiscard]] Verdict judge(const Answer& answer, std::string_view subject);

/// The subject in the server's -ERR for a message that the user may not publish.
struct Denied {
  std::string subject;
  bool cut{false};  ///< The client keeps only its beginning.

  [[nodiscard]] bool means(std::string_view other) const {
    return cut ? other.starts_with(subject) : other == subject;
  }
};
[[nodiscard]] std::optional<Denied> parse_denied(std::string_view text);
[[nodiscard]] Error denied_error(std::string_view subject);

/// The text of the client's last error without the place in its source.
[[nodiscard]] std::string_view client_words(std::string_view text);
/// The client's error. `what` begins the message ("nats://a:4222: cannot connect"); `text`: the client's or the server's words.
[[nodiscard]] Error describe(natsStatus status, std::string_view what, std::string_view text);

}  // namespace outbox::sink::nats
