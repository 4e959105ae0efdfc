// Sends each event as a mail. Not gapless: mails of different keys are under way at the same time, and one that fails stops no other. See
// docs/sinks/smtp.md.
#pragma once

#include <cstdint>
#include <memory>
#include <outbox/sink.hpp>
#include <vector>

#include "sink/network_sink.hpp"
#include "sink/smtp/client.hpp"
#include "sink/smtp/config.hpp"
#include "sink/smtp/line.hpp"
#include "sink/smtp/mail.hpp"

namespace outbox::sink::smtp {

class SmtpSink final : public NetworkSink {
 public:
  explicit SmtpSink(SmtpOptions options);

  [[nodiscard]] SinkTraits traits() const noexcept override;
  /// Connects and logs in once, to see that it can be done. Forgets the connections of before.
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void purge() override;
  void close() noexcept override { purge(); }
  [[nodiscard]] Inspection inspection() const override;

 private:
  [[nodiscard]] Status greet();
  [[nodiscard]] Asked asked() const;
  [[nodiscard]] Line* idle_line() const;
  void send_one(const Message& message, Line& line);
  [[nodiscard]] Outcome outcome_of(const Line::Done& done) const;
  void advance() override;

  const SmtpOptions options_;
  const Client client_;
  Composer composer_;
  bool server_has_utf8_{false};
  std::int64_t server_takes_{0};              ///< Bytes of a mail; 0: not known.
  std::vector<std::unique_ptr<Line>> lines_;  ///< None: closed.
};

}  // namespace outbox::sink::smtp
