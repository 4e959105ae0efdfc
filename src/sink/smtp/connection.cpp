#include "sink/smtp/connection.hpp"

#include <utility>

#include "base/error.hpp"

namespace outbox::sink::smtp {

Result<std::unique_ptr<MailConnection>> MailConnection::start(const Client& client,
                                                              std::chrono::milliseconds deadline,
                                                              std::function<void()> on_done) {
  std::unique_ptr<MailConnection> made(new MailConnection(client, deadline));
  OUTBOX_TRY(made->transfers_, curl::Transfers::start({.capacity = 1}, std::move(on_done)));
  return made;
}

MailConnection::MailConnection(const Client& client, std::chrono::milliseconds deadline)
    : client_(client), deadline_(deadline) {}

void MailConnection::send(Mail mail) {
  OUTBOX_CHECK(!busy());
  exchange_.emplace();
  exchange_->mail = std::move(mail);
  launch();
}

void MailConnection::launch() {
  const auto until = std::chrono::steady_clock::now() + deadline_;
  OUTBOX_CHECK(transfers_->submit(1, client_.prepare(*exchange_, sockets_), until));
}

std::optional<MailConnection::Done> MailConnection::take_done() {
  if (!busy()) return std::nullopt;
  auto done = transfers_->take_done();
  if (done.empty()) return std::nullopt;
  Ending ending = Client::make_ending(*exchange_, done.front().easy.get(), done.front().code);
  done.clear();  // The handle points to the exchange.
  if (!given_up_ && !exchange_->fresh && was_stale(ending)) {
    exchange_->fresh = true;
    launch();
    return std::nullopt;
  }
  if (given_up_ && ending.code != CURLE_OK) ending.code = CURLE_ABORTED_BY_CALLBACK;
  Done out{.mail = std::move(exchange_->mail), .ending = std::move(ending)};
  exchange_.reset();
  return out;
}

void MailConnection::give_up() {
  given_up_ = true;
  transfers_->cancel_all();
}

}  // namespace outbox::sink::smtp
