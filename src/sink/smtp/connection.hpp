// A connection to the mail server, and the mail that is under way on it. Each has a thread of its own, because libcurl waits for the answer
// to a whole mail without looking at anything else: with one thread for all, one slow answer would hold up every mail.
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
  /// Connects with the first mail. Fails when the system has no threads left.
  [[nodiscard]] static Result<std::unique_ptr<MailConnection>> start(
      const Client& client, std::chrono::milliseconds deadline, std::function<void()> on_done);
  MailConnection(const MailConnection&) = delete;
  MailConnection& operator=(const MailConnection&) = delete;
  MailConnection(MailConnection&&) = delete;
  MailConnection& operator=(MailConnection&&) = delete;
  /// Closes the connection; what is under way ends.
  ~MailConnection() { cut(); }

  [[nodiscard]] bool busy() const { return exchange_.has_value(); }
  /// When it is not busy.
  void send(Mail mail);

  struct Done {
    Mail mail;
    Ending ending;
  };
  /// What became of the mail; none while it is under way. Does not wait. A mail for which the server had closed the connection before
  /// it was used again goes over a new one first.
  [[nodiscard]] std::optional<Done> take_done();

  /// Ends the connection, in the middle of a mail too; it cannot be used any more. `give_up` then waits until that has happened. A
  /// connection that is idle ends with QUIT.
  void cut() { busy() ? sockets_.stop() : sockets_.stop_reading(); }
  void give_up();

 private:
  MailConnection(const Client& client, std::chrono::milliseconds deadline);
  void launch();

  const Client& client_;
  const std::chrono::milliseconds deadline_;
  // Before the transfers, which use them until they end.
  curl::Sockets sockets_;
  std::optional<Exchange> exchange_;
  std::unique_ptr<curl::Transfers> transfers_;
  bool given_up_{false};
};

}  // namespace outbox::sink::smtp
