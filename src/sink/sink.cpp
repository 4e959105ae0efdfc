#include <algorithm>
#include <outbox/sink.hpp>
#include <utility>

#include "base/mutex.hpp"

namespace outbox {

struct Sink::Bell {
  Mutex mutex;
  std::function<void()> ring OUTBOX_GUARDED_BY(mutex);
};

Sink::Sink() : bell_(std::make_unique<Bell>()) {}
Sink::~Sink() = default;

void Sink::on_ready(std::function<void()> wake) {
  const MutexLock lock(bell_->mutex);
  bell_->ring = std::move(wake);
}

// Calls with the mutex held: after on_ready({}) has returned, no call is in progress or follows.
void Sink::wake() const {
  const MutexLock lock(bell_->mutex);
  if (bell_->ring) bell_->ring();
}

const char* to_string(Outcome::Kind kind) noexcept {
  switch (kind) {
    case Outcome::Kind::unknown: return "unknown";
    case Outcome::Kind::acked: return "acked";
    case Outcome::Kind::retry: return "retry";
    case Outcome::Kind::rejected: return "rejected";
    case Outcome::Kind::blocked: return "blocked";
    case Outcome::Kind::postponed: return "postponed";
  }
  return "unknown";
}

// ---- BatchSink

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
