#include "sink/network_sink.hpp"

#include "base/error.hpp"

namespace outbox::sink {

void NetworkSink::receive(std::vector<Outcome>& outcomes) {
  advance();
  if (outcomes.empty()) {
    outcomes.swap(ready_);
  } else {
    for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  }
  ready_.clear();
}

void NetworkSink::refuse(const Message& message, Outcome::Kind kind, Error error) {
  report({.token = message.token,
          .kind = kind,
          .error = std::move(error),
          .unsent = kind == Outcome::Kind::rejected});
}

Result<Inspection> inspect_open(NetworkSink& sink) {
  OUTBOX_TRY(sink.open());
  Inspection found = sink.inspection();
  sink.close();
  return found;
}

std::size_t ConnectionSink::send(std::span<const Message> messages) {
  if (messages.empty() || state_ == State::closed) return 0;
  before_send();
  return state_ == State::failed ? refuse_all(messages) : take(messages);
}

std::size_t ConnectionSink::refuse_all(std::span<const Message> messages) {
  refuse(messages.front(), Outcome::Kind::blocked, reason_);
  return 1;
}

void ConnectionSink::stop_taking(Error reason) {
  if (state_ != State::open) return;
  state_ = State::failed;
  reason_ = std::move(reason);
}

}  // namespace outbox::sink
