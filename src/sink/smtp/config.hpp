// The settings of an SMTP sink, and what they mean.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "format/template.hpp"
#include "format/template_pieces.hpp"
#include "sink/endpoint.hpp"
#include "sink/kind.hpp"
#include "sink/smtp/address.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::smtp {

/// The settings as they are written.
struct SmtpSettings {
  std::string url;
  std::string username;
  std::string password;
  std::string encryption{"required"};  ///< The setting tls.
  TlsSettings tls{};
  std::string hello;
  std::string from;
  std::vector<std::string> to;
  std::vector<std::string> cc;
  std::string reply_to;
  std::string subject{"{event_type}"};
  std::string body;
  std::string body_file;
  std::string body_type{"text/plain"};
  std::vector<std::string> x_headers;
  std::string message_id_domain;
  std::string on_unknown{"retry"};
  std::size_t max_in_flight{4};
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(10)};
  /// RFC 5321, 4.5.3.2: clients should wait 10 minutes for the answer to a mail, 5 for others.
  std::chrono::milliseconds deadline{std::chrono::minutes(15)};

  [[nodiscard]] bool encrypted() const { return encryption != "off"; }
  [[nodiscard]] bool park_unknown() const { return on_unknown == "park"; }
};

/// The checked settings.
struct SmtpOptions {
  SmtpSettings plain;       ///< The settings that need no conversion.
  Endpoint server;          ///< The server with the login, wherever that was given.
  std::string server_name;  ///< "smtp://mail.example.com:587", for logs and errors.
  Mailbox from;
  std::vector<MailboxTemplate> to;
  std::vector<MailboxTemplate> cc;
  std::optional<MailboxTemplate> reply_to;
  format::Template subject;
  std::optional<std::vector<format::TemplatePiece>>
      body;                          ///< nullopt sends the message's own body.
  std::string id_domain;             ///< The domain of Message-ID.
  std::vector<std::string> secrets;  ///< Texts that must not be quoted when a server repeats them.
};

/// Adds an error for everything that is wrong, and then returns nullopt. Reads no file: `body` is
/// the setting of this name.
[[nodiscard]] std::optional<SmtpOptions> read_options(SmtpSettings settings, FieldErrors& errors);

}  // namespace outbox::sink::smtp
