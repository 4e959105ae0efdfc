// Turns mails into easy handles of libcurl, and what becomes of them into endings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sink/curl/handles.hpp"
#include "sink/curl/sockets.hpp"
#include "sink/smtp/config.hpp"
#include "sink/smtp/dialogue.hpp"
#include "sink/smtp/error_map.hpp"
#include "sink/smtp/mail.hpp"

namespace outbox::sink::smtp {

/// A mail under way, with everything that its handle points to. Stays in place until that is back.
struct Exchange {
  Mail mail;
  std::size_t read{0};  ///< So much of the text libcurl has.
  curl::List recipients;
  Dialogue dialogue;
  curl::Sockets* sockets{nullptr};
  std::array<char, CURL_ERROR_SIZE> curl_text{};
  bool fresh{false};  ///< Over a new connection.
};

class Client {
 public:
  explicit Client(const SmtpOptions& options);

  /// For the first time, or again after its handle is back.
  [[nodiscard]] curl::Easy prepare(Exchange& exchange, curl::Sockets& sockets) const;
  [[nodiscard]] static Ending ending_of(const Exchange& exchange, CURL* easy, CURLcode code);

  struct Greeting {
    Ending ending;  ///< With CURLE_OK all is well.
    bool login{false};
    bool utf8{false};
    std::int64_t most_bytes{0};  ///< SIZE (RFC 1870). 0: it does not say, or has no fixed limit.
  };
  /// Connects, with TLS and the login, and sends no mail. Takes as long as connect_timeout at most.
  [[nodiscard]] Greeting greet() const;

 private:
  void set_server();
  [[nodiscard]] curl::Easy handle_for(Exchange& exchange, curl::Sockets& sockets) const;

  const SmtpOptions& options_;
  const curl::Easy prototype_;
};

}  // namespace outbox::sink::smtp
