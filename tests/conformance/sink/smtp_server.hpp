// A mail server in a process of its own (smtp_server.py), with or without TLS and a login.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/certificate.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {

inline constexpr const char* kNoSmtpServer =
    "needs a mail server for tests: the Debian package python3-aiosmtpd";
/// Whether such a server is missing.
[[nodiscard]] bool no_smtp_server();

/// A mail that the server took, as a reader of mails understands it.
struct ReceivedMail {
  std::string from;             ///< The sender in the envelope.
  std::vector<std::string> to;  ///< The recipients in the envelope.
  bool utf8{false};             ///< Whether the client said SMTPUTF8.
  bool tls{false};
  std::string user;   ///< The user that logged in.
  std::string hello;  ///< The name in EHLO.
  std::string text;   ///< The mail as it came.

  std::string id;                              ///< The part of Message-ID before the @.
  std::map<std::string, std::string> headers;  ///< Decoded; names in lower case.
  std::vector<std::string> twice;              ///< Names that occur more than once.
  double time{0};                              ///< The Date in seconds since 1970.
  /// Names and addresses of From, To, Cc and Reply-To.
  std::vector<std::pair<std::string, std::string>> people;
  std::string type;
  std::string charset;
  std::string body;                  ///< Decoded.
  std::vector<std::string> defects;  ///< What the reader found wrong.
};

class SmtpServer {
 public:
  struct Options {
    std::optional<Certificate> certificate{};  ///< nullopt for no TLS.
    bool implicit{false};  ///< Whether TLS begins with the first byte, instead of STARTTLS.
    bool login{false};     ///< Requires the user "me" with the password "right".
    bool utf8{true};
    std::size_t most_bytes{2'000'000};  ///< The size limit of a mail.
  };
  using Plan = std::map<std::string, std::string>;

  explicit SmtpServer(Options options);
  SmtpServer() : SmtpServer(Options{}) {}

  [[nodiscard]] int port() const { return port_; }
  void kill() { process_->kill(); }
  /// Starts again with the same port; earlier mails are kept.
  void start();
  /// Sets by stage (smtp_server.py) what the server does differently from now on.
  void plan(const Plan& plan);
  /// Reads everything, or with `brief` only what a Harness needs.
  [[nodiscard]] std::vector<ReceivedMail> mails(bool brief = false) const;
  /// Counts the mails without reading them.
  [[nodiscard]] std::size_t count() const { return lines_in("mails"); }
  /// How many connections ended with QUIT.
  [[nodiscard]] std::size_t goodbyes() const { return lines_in("goodbyes"); }

 private:
  [[nodiscard]] std::size_t lines_in(const std::string& file) const;

  TempDir folder_;
  Options options_;
  int port_{0};
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace outbox::test
