#include "store/common/subscription.hpp"

#include <utility>

#include "base/error.hpp"
#include "event/spec.hpp"

namespace outbox::store {

const char* to_string(SubscriptionState state) noexcept {
  switch (state) {
    case SubscriptionState::active: return "active";
    case SubscriptionState::paused: return "paused";
    case SubscriptionState::stopped: return "stopped";
  }
  return "stopped";
}

SubscriptionState state_of(std::string_view word) noexcept {
  for (const auto state : {SubscriptionState::active, SubscriptionState::paused}) {
    if (word == to_string(state)) return state;
  }
  return SubscriptionState::stopped;
}

std::optional<ParkedOutcome> parked_outcome_of(std::string_view word) noexcept {
  if (word.empty()) return std::nullopt;
  for (const auto outcome : {ParkedOutcome::delivered, ParkedOutcome::edited}) {
    if (word == to_string(outcome)) return outcome;
  }
  return ParkedOutcome::discarded;
}

ParkedState parked_state_of(std::string_view word) noexcept {
  for (const auto state : {ParkedState::retrying, ParkedState::waiting, ParkedState::running}) {
    if (word == to_string(state)) return state;
  }
  return ParkedState::dead;
}

void read_config(SubscriptionRow& row, std::string_view name, std::string_view config) {
  if (auto spec = event::from_json(name, config)) {
    row.spec = std::move(*spec);
  } else {
    row.spec.name = name;
    row.state = SubscriptionState::stopped;
    row.reason = spec.error().text();
  }
}

bool same_config(const std::string& name, std::string_view stored, const std::string& wanted) {
  if (stored == wanted) return true;
  const auto spec = event::from_json(name, stored);
  return spec && event::to_json(*spec) == wanted;
}

Status no_such_subscription(std::string_view name) {
  return fail(Errc::not_found, "no such subscription: " + std::string(name),
              "outbox subscription list");
}

tl::unexpected<Error> no_cursor(const std::string& which) {
  return fail(Errc::corrupt, "subscription " + which + " has no cursor",
              "its settlements were deleted; create the subscription again");
}

}  // namespace outbox::store
