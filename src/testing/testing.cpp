#include <condition_variable>
#include <outbox/testing.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/mutex.hpp"

namespace outbox::testing {
namespace {

RecordedEvent copy_event(const Message& message) {
  RecordedEvent copy{.seq = message.event->seq,
                     .id = message.event->id,
                     .aggregate_type = std::string(message.event->aggregate_type),
                     .aggregate_id = std::string(message.event->aggregate_id),
                     .event_type = std::string(message.event->event_type),
                     .topic = std::string(message.topic),
                     .key = std::string(message.key.value_or("")),
                     .body = std::string(message.body),
                     .headers = {}};
  copy.headers.reserve(message.headers.size());
  for (const HeaderView& header : message.headers)
    copy.headers.emplace_back(header.name, header.value);
  return copy;
}

Error decided(Outcome::Kind kind) {
  const bool lasting = kind == Outcome::Kind::rejected;
  return {.code = lasting ? Errc::invalid_argument : Errc::unavailable,
          .remedy = lasting ? Remedy::fix : Remedy::retry_call,
          .effect = kind == Outcome::Kind::unknown ? Effect::unknown : Effect::none,
          .message = std::string("the test decided: ") + to_string(kind),
          .hint = {},
          .origin = {}};
}

}  // namespace

struct Recording::State {
  Mutex mutex;
  std::condition_variable_any changed;
  std::vector<RecordedEvent> events OUTBOX_GUARDED_BY(mutex);
};

Recording::Recording() : state_(std::make_unique<State>()) {}
Recording::~Recording() = default;

std::vector<RecordedEvent> Recording::events() const {
  const MutexLock lock(state_->mutex);
  return state_->events;
}

bool Recording::wait_for(std::size_t count, std::chrono::milliseconds limit) const {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  return state.changed.wait_for(state.mutex, limit, [&]() OUTBOX_REQUIRES(state.mutex) {
    return state.events.size() >= count;
  });
}

void Recording::add(RecordedEvent event) {
  {
    const MutexLock lock(state_->mutex);
    state_->events.push_back(std::move(event));
  }
  state_->changed.notify_all();
}

RecordingSink::RecordingSink() : recording_(std::make_shared<Recording>()) {}

SinkTraits RecordingSink::traits() const noexcept { return {.name = "recording", .gapless = true}; }

Status RecordingSink::open() { return {}; }

void RecordingSink::close() noexcept {}

std::size_t RecordingSink::deliver(std::span<const Message> batch, Outcome& /*failure*/) {
  for (const Message& message : batch) recording_->add(copy_event(message));
  return batch.size();
}

FailingSink::FailingSink(Decide decide, SinkTraits traits)
    : decide_(std::move(decide)), traits_(traits), recording_(std::make_shared<Recording>()) {}

SinkTraits FailingSink::traits() const noexcept { return traits_; }

Status FailingSink::open() {
  failed_ = false;
  return {};
}

void FailingSink::close() noexcept {}

std::size_t FailingSink::deliver(std::span<const Message> batch, Outcome& failure) {
  std::size_t delivered = 0;
  for (const Message& message : batch) {
    const auto kind = failed_ ? Outcome::Kind::retry : decide_(*message.event);
    if (kind != Outcome::Kind::acked) {
      failed_ = traits_.gapless;
      failure.kind = kind;
      failure.error = decided(kind);
      return delivered;
    }
    recording_->add(copy_event(message));
    ++delivered;
  }
  return delivered;
}

}  // namespace outbox::testing
