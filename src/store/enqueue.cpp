#include "store/enqueue.hpp"

#include <condition_variable>
#include <mutex>
#include <random>
#include <string>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "event/json_event.hpp"

namespace outbox::store {

Status validate_all(std::span<const Event> events, const EventLimits& limits) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    Status status = validate(events[i], limits);
    if (status) continue;
    if (events.size() > 1)
      status.error().message = "event " + std::to_string(i) + ": " + status.error().message;
    return status;
  }
  return {};
}

std::vector<EventId> list_ids(std::span<const Event> events) {
  std::vector<EventId> ids;
  ids.reserve(events.size());
  for (const Event& event : events) ids.push_back(event.id ? *event.id : EventId::generate());
  return ids;
}

std::string headers_text(const Event& event) {
  return event.headers.empty() ? std::string("{}") : event::headers_to_json(event.headers);
}

EventId holder_of_key(const EventId& holder, const Task& task) {
  if (task.on_conflict != OnConflict::error) return holder;
  throw Exception(fail(Errc::already_exists,
                       "unique_key: task " + holder.str() + " of queue " + task.queue + " has " +
                           in_quotes(task.unique_key),
                       "OnConflict::skip returns its id, replace takes its place")
                      .value());
}

namespace {

void refuse(const char* message) {
  throw Exception(
      fail(Errc::invalid_argument, std::string("with_transaction: ") + message).value());
}

std::uint64_t any_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace

Attempts::Attempts(const RetryOptions& options) : options_(options), seed_(any_seed()) {
  if (options.attempts == 0) refuse("attempts: must be at least 1");
  if (options.first_pause.count() < 0) refuse("first_pause: is negative");
  if (options.longest_pause < options.first_pause)
    refuse("longest_pause: is shorter than first_pause");
}

bool Attempts::calls_conflict(const std::exception& thrown) const {
  return options_.is_conflict && options_.is_conflict(thrown);
}

bool Attempts::next() {
  if (made_ >= options_.attempts || options_.stop.stop_requested()) return false;
  const auto pause = backoff({.first = options_.first_pause, .longest = options_.longest_pause},
                             static_cast<int>(made_), seed_);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  (void)never.wait_for(lock, options_.stop, pause, [] { return false; });
  ++made_;
  return !options_.stop.stop_requested();
}

}  // namespace outbox::store
