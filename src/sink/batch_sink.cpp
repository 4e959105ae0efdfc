#include <algorithm>
#include <outbox/sink.hpp>
#include <utility>

namespace outbox {

std::size_t BatchSink::send(std::span<const Message> messages) {
  if (messages.empty() || failed_) return 0;
  Outcome failure;
  const std::size_t delivered = std::min(deliver(messages, failure), messages.size());
  ready_.reserve(ready_.size() + delivered + 1);
  for (const Message& message : messages.first(delivered)) {
    ready_.push_back({.token = message.token, .kind = Outcome::Kind::acked});
  }
  if (delivered == messages.size()) return delivered;
  failure.token = messages[delivered].token;
  ready_.push_back(std::move(failure));
  failed_ = traits().gapless;
  return delivered + 1;
}

void BatchSink::receive(std::vector<Outcome>& outcomes) {
  for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  ready_.clear();
  failed_ = false;
}

// Every message taken has its outcome by the time send() returns: nothing is ever in flight.
void BatchSink::purge() {}

}  // namespace outbox
