// A connection to the mail server, and the mail in progress on it. Each has a thread of its own,
// because libcurl waits for the answer to a mail and looks at nothing else: with one thread for
// all, one slow answer would delay every mail.
//
// Threads: One thread at a time. `on_done` is called on the thread of the transfers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "sink/curl/sockets.hpp"
#include "sink/curl/transfers.hpp"
#include "sink/smtp/client.hpp"

namespace outbox::sink::smtp {

class MailConnection {
 public:
  /// Does not connect before the first mail. Fails if the system has no threads left.
  [[nodiscard]] static Result<std::unique_ptr<MailConnection>> start(
      const Client& client, std::chrono::milliseconds deadline, std::function<void()> on_done);
  MailConnection(const MailConnection&) = delete;
  MailConnection& operator=(const MailConnection&) = delete;
  MailConnection(MailConnection&&) = delete;
  MailConnection& operator=(MailConnection&&) = delete;
  /// Closes the connection; a mail in progress ends.
  ~MailConnection() { cut(); }

  [[nodiscard]] bool busy() const { return exchange_.has_value(); }
  /// Must not be called while busy.
  void send(Mail mail);

  struct Done {
    Mail mail;
    Ending ending;
  };
  /// What happened to the mail; nullopt while it is in progress. Does not wait. If the server had
  /// closed the idle connection, the mail is first sent again over a new one.
  [[nodiscard]] std::optional<Done> take_done();

  /// Ends the connection for good, even in the middle of a mail; an idle connection ends with QUIT.
  /// `give_up` waits until that has happened.
  void cut() { busy() ? sockets_.stop() : sockets_.stop_reading(); }
  void give_up();

 private:
  MailConnection(const Client& client, std::chrono::milliseconds deadline);
  void launch();

  const Client& client_;
  const std::chrono::milliseconds deadline_;
  // Declared before the transfers, which use them until they end.
  curl::Sockets sockets_;
  std::optional<Exchange> exchange_;
  std::unique_ptr<curl::Transfers> transfers_;
  bool given_up_{false};
};

}  // namespace outbox::sink::smtp
