// Makes mails of messages (recipients, header fields, body), with the same bytes each time. Pure.
#pragma once

#include <cstdint>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "event/arena.hpp"
#include "sink/smtp/address.hpp"
#include "sink/smtp/config.hpp"

namespace outbox::sink::smtp {

struct Mail {
  Token token{0};
  std::vector<std::string> recipients;
  bool needs_utf8{false};  ///< Whether the server must know SMTPUTF8.
  std::string message_id;  ///< "<ID@DOMAIN>"
  std::string text;        ///< Ends with CR LF, as each line. No line begins with a dot.
};

class Composer {
 public:
  explicit Composer(const SmtpOptions& options) : options_(options) {}

  /// An error is the message's fault.
  [[nodiscard]] Result<Mail> compose(const Message& message);

 private:
  [[nodiscard]] Result<std::vector<Mailbox>> recipients(const std::vector<MailboxTemplate>& all,
                                                        const EventView& event, bool required);
  [[nodiscard]] Result<std::string> subject(const EventView& event);
  [[nodiscard]] Result<std::string> reply_to(const EventView& event);
  [[nodiscard]] Result<std::string> x_fields(const Message& message) const;
  [[nodiscard]] Result<std::string> body(const Message& message);

  const SmtpOptions& options_;
  event::Arena arena_;
};

/// "Thu, 01 Jan 1970 00:00:00 +0000" (RFC 5322, 3.3). A time before 1900, which it does not allow,
/// becomes the first allowed one.
[[nodiscard]] std::string date_text(std::int64_t us_since_1970);

}  // namespace outbox::sink::smtp
