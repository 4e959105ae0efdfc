#include "task/queue_sink.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace outbox::task {
namespace {

constexpr std::size_t kMostTaken = 8192;

TimePoint now_steady() { return std::chrono::steady_clock::now(); }

}  // namespace

std::string subscription_name(std::string_view queue) { return std::string("task.").append(queue); }

QueueSink::QueueSink(std::string queue, const std::shared_ptr<const Handlers>& handlers,
                     QueueOptions options, const EventId& worker)
    : queue_(std::move(queue)), options_(options), worker_(worker) {
  Runner::Types types;
  for (const Handlers::Handler& handler : handlers->all()) {
    types.push_back(std::make_shared<TaskType>(handler));
    types_.emplace(handler.type, types.back());
  }
  runner_ = std::make_shared<Runner>(queue_, std::move(types), options_.threads);
  runner_->on_ready([this] { wake(); });
}

QueueSink::~QueueSink() { runner_->on_ready({}); }

SinkTraits QueueSink::traits() const noexcept {
  return {.name = "task",
          .gapless = false,
          .max_batch = 1000,
          .max_in_flight = kMostTaken,
          .independent = true};
}

/// What was given up may be sent again, and must not run twice at once here.
Status QueueSink::open() {
  runner_->start();
  const std::size_t running = runner_->given_up();
  if (running == 0) return {};
  return fail(Errc::unavailable, Remedy::retry_call,
              "queue " + queue_ + ": " + std::to_string(running) +
                  " handlers that were told to stop still run",
              "the queue goes on when they return, at the latest 10 s after their deadlines");
}

std::size_t QueueSink::send(std::span<const Message> messages) {
  const TimePoint now = now_steady();
  Load load = runner_->load(now);
  auto batch = std::make_shared<Batch>(now);
  std::size_t taken = 0;
  for (; taken < messages.size(); ++taken) {
    const Message& message = messages[taken];
    const auto type = types_.find(message.event->event_type);
    if (type == types_.end()) {
      postpone(message);
      continue;
    }
    if (!can_take(*type->second, load)) break;
    batch->add(*type->second, message);
    ++load.waiting;
    load.work_waiting += type->second->usual();
  }
  if (batch->size() > 0) runner_->add(std::move(batch));
  return taken;
}

bool QueueSink::can_take(const TaskType& type, const Load& load) const {
  const bool quick = type.usual().count() != 0 && type.usual() < kQuick;
  if (!quick) return load.running + load.waiting < options_.threads;
  const auto free = static_cast<std::int64_t>(options_.threads - load.long_running);
  return load.waiting < kMostTaken && load.work_waiting + type.usual() <= free * kQuick;
}

/// Another worker may have its handler, or the next version of this one.
void QueueSink::postpone(const Message& message) {
  ready_.push_back({.token = message.token,
                    .kind = Outcome::Kind::postponed,
                    .error = fail(Errc::not_found, "no worker here has a handler for type " +
                                                       std::string(message.event->event_type))
                                 .value(),
                    .retry_after = options_.unknown_type_pause});
}

void QueueSink::receive(std::vector<Outcome>& outcomes) {
  for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  ready_.clear();
  const TimePoint now = now_steady();
  runner_->watch(now);
  runner_->collect(now, outcomes);
}

void QueueSink::purge() { runner_->give_up(ready_); }

}  // namespace outbox::task
