// What follows for an event that failed by its own fault, or was postponed: tried again when, or dead. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <outbox/sink.hpp>

#include "event/retry_policy.hpp"
#include "store/parked.hpp"

namespace outbox::store {

struct Verdict {
  ParkedState state{ParkedState::retrying};
  std::size_t attempts{0};
  std::chrono::milliseconds due_in{0};
};

/// `attempts`: before this one.
[[nodiscard]] inline Verdict verdict(const event::RetryPolicy& policy, const Outcome& outcome,
                                     std::size_t attempts, std::int64_t seq) {
  const auto in_ms = [](Duration pause) {
    // A sum of a time and a pause must not overflow.
    constexpr Duration kLongest = std::chrono::years(10);
    return std::chrono::ceil<std::chrono::milliseconds>(std::min(pause, Duration(kLongest)));
  };
  constexpr Duration kPostponed = std::chrono::seconds(1);
  if (outcome.kind == Outcome::Kind::postponed && outcome.for_any_worker)
    return {.state = ParkedState::ready, .attempts = attempts};
  if (outcome.kind == Outcome::Kind::postponed)
    return {.attempts = attempts, .due_in = in_ms(outcome.retry_after.value_or(kPostponed))};
  if (outcome.own_schedule && !outcome.final)
    return {.attempts = attempts + 1, .due_in = in_ms(outcome.retry_after.value_or(kPostponed))};
  const auto pause = policy.pause_after(attempts + 1, static_cast<std::uint64_t>(seq));
  if (outcome.final || !pause) return {.state = ParkedState::dead, .attempts = attempts + 1};
  return {.attempts = attempts + 1,
          .due_in = outcome.retry_after ? in_ms(*outcome.retry_after) : *pause};
}

}  // namespace outbox::store
