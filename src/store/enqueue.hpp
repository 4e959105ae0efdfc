// What enqueueing does before it reaches the database, and how it reports errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/retry.hpp>
#include <outbox/task.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace outbox::store {

/// The first fault of the first invalid event, with its index when there are several events.
[[nodiscard]] Status validate_all(std::span<const Event> events, const EventLimits& limits);

/// The events' own ids, and new ones for those without.
[[nodiscard]] std::vector<EventId> list_ids(std::span<const Event> events);

/// The event's headers as JSON.
[[nodiscard]] std::string headers_text(const Event& event);

/// Returns `holder`, the task because of which another one with the same unique key was not
/// enqueued. Throws if that is an error.
[[nodiscard]] EventId holder_of_key(const EventId& holder, const Task& task);

// These are for functions that throw in the transactions of applications.

inline void throw_if_failed(Status status) {
  if (!status) throw Exception(std::move(status.error()));
}

template <class T>
[[nodiscard]] T value_or_throw(Result<T> result) {
  if (!result) throw Exception(std::move(result.error()));
  return std::move(*result);
}

/// Counts the attempts of with_transaction(), and pauses between them.
class Attempts {
 public:
  /// Throws when the options are not valid. The options must outlive the object.
  explicit Attempts(const RetryOptions& options);

  /// Whether an exception of the function says that it was a conflict.
  [[nodiscard]] bool calls_conflict(const std::exception& thrown) const;
  /// After a conflict: waits, and returns whether there is another attempt.
  [[nodiscard]] bool next();

 private:
  const RetryOptions& options_;
  const std::uint64_t seed_;
  std::size_t made_{1};
};

}  // namespace outbox::store
