#include "task/type.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/units.hpp"

namespace outbox::task {
namespace {

/// The average follows each 16th run, and every run that takes much longer.
constexpr std::uint32_t kSampled = 16;
/// Of the runs that take less than this, each 16th is counted, for sixteen.
constexpr std::chrono::milliseconds kAllCounted{1};

SubscriptionSpec make_spec(Delays delays, std::size_t jitter) {
  SubscriptionSpec spec;
  spec.delays = std::move(delays);
  spec.retry_jitter = jitter;
  return spec;
}

std::uint64_t seed_of(const EventId& id) {
  std::uint64_t seed = 0;
  for (const auto byte : id.bytes) seed = splitmix64(seed ^ byte);
  return seed;
}

std::shared_ptr<TypeLimit> make_limit(const Handlers::Options& options) {
  if (!has_limit(options)) return nullptr;
  return std::make_shared<TypeLimit>(options.max_running, per_second(options.rate));
}

}  // namespace

RetrySchedule::RetrySchedule(Delays delays, std::size_t jitter)
    : runs_(delays.size() + 1), policy_(make_spec(std::move(delays), jitter)) {}

void RetrySchedule::decide(Outcome& outcome, std::size_t attempt,
                           std::optional<std::size_t> max_attempts, const EventId& id) const {
  if (outcome.kind != Outcome::Kind::rejected || outcome.final) return;
  outcome.task.own_schedule = true;
  if (attempt >= max_attempts.value_or(runs_)) {
    outcome.final = true;
    return;
  }
  if (outcome.retry_after) return;
  // If there are more runs than pauses, the last pause is used again.
  outcome.retry_after = policy_.pause_after(std::min(attempt, runs_ - 1), seed_of(id));
}

Outcome to_outcome(Token token, const TaskEnd& end) {
  Outcome outcome{.token = token, .kind = Outcome::Kind::acked};
  if (end.kind() == TaskEnd::Kind::done || end.kind() == TaskEnd::Kind::cancelled) return outcome;
  outcome.kind =
      end.kind() == TaskEnd::Kind::snoozed ? Outcome::Kind::postponed : Outcome::Kind::rejected;
  outcome.error = fail(Errc::internal, Remedy::retry_call, end.reason()).value();
  outcome.retry_after = end.pause();
  outcome.final = end.kind() == TaskEnd::Kind::dead;
  return outcome;
}

TaskType::TaskType(Handlers::Handler handler, const RetrySchedule& retries)
    : handler_(std::move(handler)), retries_(retries), limit_(make_limit(handler_.options)) {}

void TaskType::took(std::chrono::nanoseconds time) {
  // Two threads may overwrite each other's value, which is only an average.
  const std::int64_t before = usual_ns_.load(std::memory_order_relaxed);
  const std::int64_t took = std::max<std::int64_t>(time.count(), 1);
  const bool sixteenth = runs_.fetch_add(1, std::memory_order_relaxed) % kSampled == 0;
  if (time >= kAllCounted) {
    durations_.add(time, 1);
  } else if (sixteenth) {
    durations_.add(time, kSampled);
  }
  if (before == 0) return usual_ns_.store(took, std::memory_order_relaxed);
  if (sixteenth || took > 2 * before)
    usual_ns_.store(before + (took - before) / 8, std::memory_order_relaxed);
}

}  // namespace outbox::task
