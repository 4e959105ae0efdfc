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
  }
  return "unknown";
}

}  // namespace outbox
