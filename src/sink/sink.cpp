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

// Rings with the mutex held, so that no call is in progress or follows after on_ready({}) returned.
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

// Goes on after a rejected event unless the sink is gapless: otherwise one event of each key is in
// flight, so a rejection says nothing about the events behind it.
std::size_t BatchSink::send(std::span<const Message> messages) {
  if (failed_) return 0;
  const bool gapless = traits().gapless;
  std::size_t taken = 0;
  while (taken < messages.size()) {
    const auto rest = messages.subspan(taken);
    Outcome failure;
    const std::size_t delivered = std::min(deliver(rest, failure), rest.size());
    for (const Message& message : rest.first(delivered))
      ready_.push_back({.token = message.token, .kind = Outcome::Kind::acked});
    taken += delivered;
    if (delivered == rest.size()) break;
    const bool rejected = failure.kind == Outcome::Kind::rejected;
    failed_ = gapless && !(rejected && failure.unsent);
    failure.token = rest[delivered].token;
    ready_.push_back(std::move(failure));
    ++taken;
    if (gapless || !rejected) break;
  }
  return taken;
}

void BatchSink::receive(std::vector<Outcome>& outcomes) {
  for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  ready_.clear();
  failed_ = false;
}

// Does nothing, because every message has its outcome by the time send() returns.
void BatchSink::purge() {}

}  // namespace outbox
