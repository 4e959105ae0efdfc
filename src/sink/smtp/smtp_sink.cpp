#include "sink/smtp/smtp_sink.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace outbox::sink::smtp {

SmtpSink::SmtpSink(SmtpOptions options)
    : NetworkSink("smtp"), options_(std::move(options)), client_(options_), composer_(options_) {}

SinkTraits SmtpSink::traits() const noexcept {
  const std::size_t most = options_.plain.max_in_flight;
  return {.name = "smtp", .max_batch = most, .max_in_flight = most};
}

// ---- opening and closing

Status SmtpSink::open() {
  warn_about(inspection());
  OUTBOX_TRY(greet());
  purge();
  for (std::size_t i = 0; i < options_.plain.max_in_flight; ++i) {
    OUTBOX_TRY(auto line,
               MailConnection::start(client_, options_.plain.deadline, [this] { wake(); }));
    lines_.push_back(std::move(line));
  }
  return {};
}

Inspection SmtpSink::inspection() const {
  const SmtpSettings& plain = options_.plain;
  Inspection found{.destination = options_.server_name,
                   .acked = "the mail server has taken the mail (250)",
                   .duplicates = plain.park_unknown()
                                     ? "after a crash of the relay or a takeover"
                                     : "after a lost answer, a crash of the relay or a takeover",
                   .order = "of each key, up to the mail server"};
  if (!plain.encrypted() && !options_.server.is_loopback())
    found.weaknesses.push_back(in_clear("smtp.tls = \"required\""));
  if (plain.encrypted() && plain.tls.insecure) {
    found.weaknesses.push_back(
        {"insecure_tls", "whoever controls the network can read and swallow mails and the password",
         "smtp.tls_ca with the authority of the server's certificate"});
  }
  // A mail made by a template need not have the payload.
  if (server_takes_ > 0 && !options_.body) {
    found.largest = {
        "SIZE of the mail server", server_takes_,
        "raise its limit (Postfix: message_size_limit); bytes that are not text take a third more in a mail"};
  }
  return found;
}

Status SmtpSink::greet() {
  const Client::Greeting greeting = client_.greet();
  if (greeting.ending.code != CURLE_OK) return fail(unreachable(greeting.ending, context()));
  // Without an offer libcurl sends without a login.
  if (!options_.server.username.empty() && !greeting.login) {
    return fail(
        Errc::permission_denied, "smtp: " + options_.server_name + " offers no login",
        "remove smtp.username and smtp.password, or use the port for mails that are handed in (587, 465)");
  }
  server_has_utf8_ = greeting.utf8;
  server_takes_ = greeting.most_bytes;
  return {};
}

void SmtpSink::purge() {
  // All connections end at the same time, since each may take a moment.
  for (const auto& line : lines_) line->cut();
  for (const auto& line : lines_) line->give_up();
  advance();
  lines_.clear();
}

// ---- sending

MailConnection* SmtpSink::idle_line() const {
  const auto found =
      std::find_if(lines_.begin(), lines_.end(), [](const auto& line) { return !line->busy(); });
  return found == lines_.end() ? nullptr : found->get();
}

std::size_t SmtpSink::send(std::span<const Message> messages) {
  std::size_t taken = 0;
  while (taken < messages.size()) {
    MailConnection* const line = idle_line();
    if (line == nullptr) break;
    send_one(messages[taken], *line);
    ++taken;
  }
  return taken;
}

void SmtpSink::send_one(const Message& message, MailConnection& line) {
  auto mail = composer_.compose(message);
  if (mail && mail->needs_utf8 && !server_has_utf8_) {
    mail = fail(
        Errc::unsupported,
        "smtp: the event cannot be sent: an address of it is not ASCII, and " +
            options_.server_name + " does not support that (SMTPUTF8)",
        "write the part behind the @ in its ASCII form (xn--...), or use a server that supports it");
  }
  if (mail) return line.send(std::move(*mail));
  refuse(message, Outcome::Kind::rejected, std::move(mail.error()));
}

// ---- outcomes

MailContext SmtpSink::context() const {
  return {.server = options_.server_name,
          .deadline = options_.plain.deadline,
          .park_unknown = options_.plain.park_unknown(),
          .unquoted = options_.secrets};
}

Outcome SmtpSink::make_outcome(const MailConnection::Done& done) const {
  MailContext about = context();
  about.message_id = done.mail.message_id;
  // People's addresses do not belong in logs.
  const auto& people = done.mail.recipients;
  about.unquoted.insert(about.unquoted.end(), people.begin(), people.end());
  Outcome outcome = judge(done.ending, about);
  outcome.token = done.mail.token;
  return outcome;
}

void SmtpSink::advance() {
  for (const auto& line : lines_) {
    if (const auto done = line->take_done()) report(make_outcome(*done));
  }
}

}  // namespace outbox::sink::smtp
