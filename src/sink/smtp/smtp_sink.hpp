// Sends each event as a mail. The sink is not gapless: mails of different keys are sent at the same
// time, and one that fails stops no other. See docs/sinks/smtp.md.
#pragma once

#include <cstdint>
#include <memory>
#include <outbox/sink.hpp>
#include <vector>

#include "sink/network_sink.hpp"
#include "sink/smtp/client.hpp"
#include "sink/smtp/config.hpp"
#include "sink/smtp/connection.hpp"
#include "sink/smtp/mail.hpp"

namespace outbox::sink::smtp {

class SmtpSink final : public NetworkSink {
 public:
  explicit SmtpSink(SmtpOptions options);

  [[nodiscard]] SinkTraits traits() const noexcept override;
  /// Connects and logs in once, to see whether it works. Earlier connections are dropped.
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void purge() override;
  void close() noexcept override { purge(); }
  [[nodiscard]] Inspection inspection() const override;

 private:
  [[nodiscard]] Status greet();
  [[nodiscard]] MailContext context() const;
  [[nodiscard]] MailConnection* idle_line() const;
  void send_one(const Message& message, MailConnection& line);
  [[nodiscard]] Outcome make_outcome(const MailConnection::Done& done) const;
  void advance() override;

  const SmtpOptions options_;
  const Client client_;
  Composer composer_;
  bool server_has_utf8_{false};
  std::int64_t server_takes_{0};  ///< The largest mail in bytes; 0 if not known.
  std::vector<std::unique_ptr<MailConnection>> lines_;  ///< Empty while closed.
};

}  // namespace outbox::sink::smtp
