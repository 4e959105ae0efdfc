#include "store/stored_subscription.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "event/task_queue.hpp"
#include "subscription/spec.hpp"

namespace outbox::store {

const char* to_string(SubscriptionState state) noexcept {
  switch (state) {
    case SubscriptionState::active: return "active";
    case SubscriptionState::paused: return "paused";
    case SubscriptionState::stopped: return "stopped";
  }
  return "stopped";
}

SubscriptionState parse_state(std::string_view word) noexcept {
  for (const auto state : {SubscriptionState::active, SubscriptionState::paused}) {
    if (word == to_string(state)) return state;
  }
  return SubscriptionState::stopped;
}

std::map<std::string, std::int64_t> lanes_by_group(std::string_view json) {
  std::map<std::string, std::int64_t> lanes;
  if (!json.empty()) parse_json<nlohmann::json>(json).get_to(lanes);
  return lanes;
}

std::optional<ParkedOutcome> parse_parked_outcome(std::string_view word) noexcept {
  if (word.empty()) return std::nullopt;
  for (const auto outcome : {ParkedOutcome::delivered, ParkedOutcome::edited}) {
    if (word == to_string(outcome)) return outcome;
  }
  return ParkedOutcome::discarded;
}

ParkedState parse_parked_state(std::string_view word) noexcept {
  for (const auto state :
       {ParkedState::retrying, ParkedState::waiting, ParkedState::running, ParkedState::ready}) {
    if (word == to_string(state)) return state;
  }
  return ParkedState::dead;
}

void read_config(SubscriptionRow& row, std::string_view name, std::string_view config) {
  if (auto spec = subscription::from_json(name, config)) {
    row.spec = std::move(*spec);
  } else {
    row.spec.name = name;
    row.state = SubscriptionState::stopped;
    row.reason = spec.error().text();
  }
}

bool same_config(const std::string& name, std::string_view stored, const std::string& wanted) {
  if (stored == wanted) return true;
  const auto spec = subscription::from_json(name, stored);
  return spec && subscription::to_json(*spec) == wanted;
}

void note_types_of_their_own(std::vector<SubscriptionRow>& all) {
  for (const SubscriptionRow& own : all) {
    if (!event::is_of_type(own.spec)) continue;
    const auto base = std::find_if(all.begin(), all.end(), [&](const SubscriptionRow& row) {
      return event::is_split_from(own.spec, row.spec);
    });
    if (base == all.end()) continue;
    base->left_out.push_back(own.spec.event_types.front());
    if (own.state != SubscriptionState::active)
      base->paused_types.push_back(own.spec.event_types.front());
  }
  for (SubscriptionRow& row : all) {
    std::sort(row.left_out.begin(), row.left_out.end());
    std::sort(row.paused_types.begin(), row.paused_types.end());
  }
}

Status check_same_type(const SubscriptionSpec& wanted, std::string_view stored) {
  if (!event::is_of_type(wanted)) return {};
  const auto there = subscription::from_json(wanted.name, stored);
  if (!there || there->event_types == wanted.event_types) return {};
  return fail(Errc::already_exists,
              "type " + in_quotes(wanted.event_types.front()) +
                  " cannot have a subscription of its own: its name, " + wanted.name +
                  ", is that of type " +
                  in_quotes(there->event_types.empty() ? "" : there->event_types.front()),
              "rename one of the types");
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
