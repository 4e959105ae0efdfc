// Implements outbox/status.hpp with the parts of a store.
#include <algorithm>
#include <array>
#include <limits>
#include <outbox/status.hpp>
#include <utility>

#include "base/error.hpp"
#include "event/time_text.hpp"
#include "store/store.hpp"

namespace outbox {
namespace {

constexpr std::array<std::pair<std::string_view, EventState>, 10> kStates{
    {{"pending", EventState::pending},
     {"published", EventState::published},
     {"filtered", EventState::filtered},
     {"skipped", EventState::skipped},
     {"retrying", EventState::retrying},
     {"waiting", EventState::waiting},
     {"running", EventState::running},
     {"dead", EventState::dead},
     {"discarded", EventState::discarded},
     {"edited", EventState::edited}}};
/// It is more than the number of events with one id that anybody has.
constexpr std::size_t kMostOfOneId = 1000;
/// The stores count up to one more than the limit.
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() - 1;

std::optional<Timestamp> to_time(const std::optional<std::int64_t>& us) {
  return us ? std::optional(event::timestamp(*us)) : std::nullopt;
}

Activity to_activity(store::SubscriptionState state) {
  switch (state) {
    case store::SubscriptionState::active: return Activity::active;
    case store::SubscriptionState::paused: return Activity::paused;
    case store::SubscriptionState::stopped: return Activity::stopped;
  }
  return Activity::stopped;
}

SubscriptionStatus to_status(store::SubscriptionOverview&& one) {
  const bool active = one.row.state == store::SubscriptionState::active;
  SubscriptionStatus status{.name = std::move(one.row.spec.name),
                            .sink = std::move(one.row.spec.sink),
                            .group = std::move(one.row.group),
                            .activity = to_activity(one.row.state),
                            .reason = std::move(active ? one.row.trouble : one.row.reason),
                            .pending = one.progress.pending,
                            .more_pending = one.progress.pending_capped,
                            .delivered = one.progress.acked,
                            .filtered = one.progress.filtered,
                            .retrying = one.parked.retrying,
                            .waiting = one.parked.waiting,
                            .dead = one.parked.dead};
  if (status.pending > 0) status.oldest_age = one.progress.lag;
  return status;
}

Result<EventInSubscription> to_life(store::EventLife&& life) {
  const auto* const known = std::find_if(kStates.begin(), kStates.end(),
                                         [&](const auto& one) { return one.first == life.state; });
  if (known == kStates.end())
    return fail(Errc::unsupported, "the state of an event is '" + life.state + "'",
                "the store is of a newer version than this program");
  EventInSubscription one{.subscription = std::move(life.subscription),
                          .state = known->second,
                          .published_by = to_time(life.published_by_us),
                          .next_attempt_at = to_time(life.next_attempt_at_us),
                          .error = std::move(life.error),
                          .waiting_for = life.waiting_for,
                          .replaced_by = life.replaced_by};
  if (life.attempts) one.attempts = static_cast<std::size_t>(*life.attempts);
  return one;
}

}  // namespace

const char* to_string(Activity activity) noexcept {
  switch (activity) {
    case Activity::active: return "active";
    case Activity::paused: return "paused";
    case Activity::stopped: return "stopped";
  }
  return "unknown";
}

const char* to_string(EventState state) noexcept {
  const auto* const known = std::find_if(kStates.begin(), kStates.end(),
                                         [&](const auto& one) { return one.second == state; });
  return known == kStates.end() ? "unknown" : known->first.data();
}

StatusReader::StatusReader(std::unique_ptr<store::Store> store) : store_(std::move(store)) {}
StatusReader::StatusReader(StatusReader&&) noexcept = default;
StatusReader& StatusReader::operator=(StatusReader&&) noexcept = default;
StatusReader::~StatusReader() = default;

Result<StatusReader> StatusReader::open(const StatusOptions& options) {
  OUTBOX_TRY(auto store, store::open_store({.url = options.store_url, .schema = options.schema}));
  return StatusReader(std::move(store));
}

Result<std::vector<SubscriptionStatus>> StatusReader::subscriptions(
    std::int64_t pending_limit) const {
  if (pending_limit < 1 || pending_limit > kNoLimit)
    return fail(Errc::invalid_argument, "pending_limit: must be at least 1");
  OUTBOX_TRY(const auto catalog, store_->catalog());
  OUTBOX_TRY(auto all, catalog->overview(pending_limit));
  std::vector<SubscriptionStatus> found;
  found.reserve(all.size());
  for (store::SubscriptionOverview& one : all) found.push_back(to_status(std::move(one)));
  return found;
}

Result<std::int64_t> StatusReader::pending(std::string_view subscription) const {
  OUTBOX_TRY(const auto catalog, store_->catalog());
  OUTBOX_TRY(const auto all, catalog->subscriptions());
  const auto one = std::find_if(all.begin(), all.end(),
                                [&](const auto& row) { return row.spec.name == subscription; });
  if (one == all.end())
    return fail(Errc::not_found, "there is no subscription '" + std::string(subscription) + "'");
  OUTBOX_TRY(const auto progress, catalog->progress(*one, kNoLimit));
  return progress.pending;
}

Result<std::vector<EventStatus>> StatusReader::events(const EventId& id) const {
  OUTBOX_TRY(const auto events, store_->events());
  OUTBOX_TRY(auto page, events->list({.id = id}, kMostOfOneId, false));
  std::vector<EventStatus> found;
  for (store::EventListing& event : page.events) {
    EventStatus status{.id = event.id,
                       .seq = event.seq,
                       .aggregate_type = std::move(event.aggregate_type),
                       .aggregate_id = std::move(event.aggregate_id),
                       .event_type = std::move(event.event_type),
                       .created_at = event.created_at,
                       .in_log = event.in_log,
                       .subscriptions = {}};
    for (store::EventLife& life : event.subscriptions) {
      OUTBOX_TRY(status.subscriptions.emplace_back(), to_life(std::move(life)));
    }
    found.push_back(std::move(status));
  }
  return found;
}

}  // namespace outbox
