#include "task/queue_sink.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "event/task.hpp"

namespace outbox::task {
namespace {

constexpr std::size_t kMostTaken = 8192;
/// A task that is due later than this is looked at again after this time.
constexpr std::chrono::microseconds kLongestPause = std::chrono::years(10);

}  // namespace

QueueSink::QueueSink(std::shared_ptr<RunnerCore> runner, Source source, QueueOptions options,
                     const EventId& worker, std::shared_ptr<const StoreClock> clock)
    : runner_(std::move(runner)),
      source_(source),
      options_(std::move(options)),
      worker_(worker),
      clock_(std::move(clock)) {
  for (const auto& type : runner_->types()) types_.emplace(type->handler().type, type);
  runner_->on_ready(source_, [this] { wake(); });
}

QueueSink::~QueueSink() { runner_->on_ready(source_, {}); }

SinkTraits QueueSink::traits() const noexcept {
  return {.name = "task",
          .gapless = false,
          .max_batch = 1000,
          .max_in_flight = kMostTaken,
          .independent = true};
}

void QueueSink::follow(const sink::RunRules& rules) {
  paused_types_ = rules.paused_types;
  for (const auto& type : runner_->types()) {
    if (type->limit() != nullptr) type->limit()->set_share(rules.share, options_.now());
  }
}

/// A task that was given up may be sent again, and must not run twice at once here.
Status QueueSink::open() {
  const std::size_t running = runner_->given_up(source_);
  if (running == 0) return {};
  return fail(Errc::unavailable, Remedy::retry_call,
              "queue " + runner_->queue() + ": " + std::to_string(running) +
                  " handlers that were told to stop still run",
              "the queue goes on when they return, at the latest 10 s after their deadlines");
}

std::size_t QueueSink::send(std::span<const Message> messages) {
  const TimePoint now = options_.now();
  Load load = runner_->load(source_, now);
  auto batch = std::make_shared<Batch>(source_, now);
  std::size_t taken = 0;
  const std::size_t waited = load.waiting;
  while (taken < messages.size() && take(messages[taken], load, *batch, now)) ++taken;
  if (load.waiting > waited || taken == messages.size()) refuses_since_.reset();
  if (taken < messages.size() && !refuses_since_) refuses_since_ = now;
  if (batch->size() > 0) runner_->add(std::move(batch));
  runner_->want(source_, taken < messages.size(), now);
  return taken;
}

Result<QueueSink::Rules> QueueSink::parse_rules(const Message& message) {
  if (!event::has_rules(message.event->headers)) return Rules();
  arena_.clear();
  OUTBOX_TRY(auto rules, event::parse_task_rules(message.event->headers, arena_));
  return std::make_shared<const event::TaskRules>(std::move(rules));
}

/// Only the clock of the store says whether the time of a task has come.
QueueSink::Time QueueSink::watch_time(const Message& message, const event::TaskRules& rules,
                                      TimePoint now) {
  if (!rules.execute_at_us) return Time::come;
  const auto store_now = clock_->now_us(now);
  if (!store_now) return Time::unknown;
  const std::chrono::microseconds ahead(*rules.execute_at_us - *store_now);
  if (ahead.count() <= 0) return Time::come;
  postpone(message, std::min(ahead, kLongestPause), {});
  return Time::ahead;
}

/// Returns false if the task cannot begin soon and stays in the log.
bool QueueSink::take(const Message& message, Load& load, Batch& batch, TimePoint now) {
  auto rules = parse_rules(message);
  if (!rules) {
    refuse(message, rules.error().text());
    return true;
  }
  if (*rules) {
    const Time time = watch_time(message, **rules, now);
    if (time != Time::come) return time == Time::ahead;
    if (const auto most = (*rules)->max_attempts; most && message.attempt > *most) {
      refuse(message, "its " + std::to_string(*most) + " attempts are used up");
      return true;
    }
  }
  const auto found = types_.find(message.event->event_type);
  if (found == types_.end()) {
    // Another worker may have its handler, or the next version of this one.
    postpone(message, options_.unknown_type_pause,
             "no worker here has a handler for type " + std::string(message.event->event_type));
    return true;
  }
  if (is_paused(message)) {
    postpone(message, options_.paused_pause, "its type is paused");
    return true;
  }
  TaskType& type = *found->second;
  if (!can_take(type, load)) return give_away(type, message, rules->get(), now);
  Permit permit;
  if (!take_limited(type, message, permit, now)) return !options_.of_type;
  const bool unique = *rules && !(*rules)->unique_key.empty();
  if (unique || permit) {
    auto one = std::make_shared<Batch>(source_, now);
    one->add(type, message, std::move(*rules));
    one->hold(std::move(permit));
    unique ? runner_->add_unique(std::move(one)) : runner_->add(std::move(one));
  } else {
    batch.add(type, message, std::move(*rules));
  }
  ++load.waiting;
  load.work_waiting += type.usual();
  return true;
}

/// A task is not given away if its beginning is written, nor if this worker counts the runs of its
/// type.
bool QueueSink::give_away(const TaskType& type, const Message& message,
                          const event::TaskRules* rules, TimePoint now) {
  const bool own = type.limit() != nullptr || (rules != nullptr && !rules->unique_key.empty());
  if (own || !refuses_since_ || now - *refuses_since_ < options_.long_without_thread) return false;
  if (!runner_->take_elsewhere()) return false;
  postpone(message, {}, "no thread was free here, another worker has one");
  ready_.back().task.for_any_worker = true;
  return true;
}

bool QueueSink::is_paused(const Message& message) const {
  return !paused_types_.empty() && std::find(paused_types_.begin(), paused_types_.end(),
                                             message.event->event_type) != paused_types_.end();
}

/// Returns false if the limit of the type is reached.
bool QueueSink::take_limited(TaskType& type, const Message& message, Permit& permit,
                             TimePoint now) {
  if (type.limit() == nullptr) return true;
  permit = type.limit()->take(now);
  if (permit) return true;
  if (!options_.of_type)
    postpone(message, options_.limited_pause, "the limit of its type is reached");
  return false;
}

bool QueueSink::can_take(const TaskType& type, const Load& load) const {
  if (load.urgent_wants) return false;
  const bool quick = type.usual().count() != 0 && type.usual() < kQuick;
  if (!quick) return load.running + load.waiting < options_.threads;
  const auto free = static_cast<std::int64_t>(options_.threads - load.long_running);
  return load.waiting < kMostTaken && load.work_waiting + type.usual() <= free * kQuick;
}

void QueueSink::postpone(const Message& message, Duration pause, std::string reason) {
  ready_.push_back({.token = message.token,
                    .kind = Outcome::Kind::postponed,
                    .error = fail(Errc::not_found, std::move(reason)).value(),
                    .retry_after = pause});
}

/// Rejects a task for good, since no run can succeed.
void QueueSink::refuse(const Message& message, std::string reason) {
  ready_.push_back({.token = message.token,
                    .kind = Outcome::Kind::rejected,
                    .error = fail(Errc::invalid_argument, std::move(reason)).value(),
                    .final = true,
                    .unsent = true});
}

void QueueSink::receive(std::vector<Outcome>& outcomes) {
  for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  ready_.clear();
  const TimePoint now = options_.now();
  runner_->watch(now);
  runner_->collect(source_, now, outcomes);
}

void QueueSink::purge() { runner_->give_up(source_, ready_); }

}  // namespace outbox::task
