// Turns mails into easy handles of libcurl, and what happens to them into endings.
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

/// A mail in progress: its handle points here, so it stays in place until the handle is back.
struct Exchange {
  Mail mail;
  std::size_t read{0};  ///< How much of the text libcurl has read.
  curl::List recipients;
  Dialogue dialogue;
  curl::Sockets* sockets{nullptr};
  std::array<char, CURL_ERROR_SIZE> curl_text{};
  bool fresh{false};  ///< Whether a new connection is used.
};

class Client {
 public:
  explicit Client(const SmtpOptions& options);

  /// Prepares a handle for the first time, or again after the earlier one is back.
  [[nodiscard]] curl::Easy prepare(Exchange& exchange, curl::Sockets& sockets) const;
  [[nodiscard]] static Ending make_ending(const Exchange& exchange, CURL* easy, CURLcode code);

  struct Greeting {
    Ending ending;  ///< Its code is CURLE_OK if all is well.
    bool login{false};
    bool utf8{false};
    std::int64_t most_bytes{0};  ///< SIZE (RFC 1870); 0 if it is not told or not fixed.
  };
  /// Connects, with TLS and the login, and sends no mail. Takes at most connect_timeout.
  [[nodiscard]] Greeting greet() const;

 private:
  void set_server();
  [[nodiscard]] curl::Easy handle_for(Exchange& exchange, curl::Sockets& sockets) const;

  const SmtpOptions& options_;
  const curl::Easy prototype_;
};

}  // namespace outbox::sink::smtp
