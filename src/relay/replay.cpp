#include "relay/replay.hpp"

#include <string>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"
#include "store/text.hpp"

namespace outbox::relay {
namespace {

constexpr const char* kName = "replay";

}  // namespace

std::shared_ptr<const store::Pair> replay_pair() {
  static const auto pair =
      std::make_shared<const store::Pair>(store::Pair{.s1 = kName, .s2 = kName});
  return pair;
}

store::Cursor replay_cursor(std::int64_t position) {
  return {.s1 = kName, .s2 = kName, .position = position};
}

std::vector<store::ReplayRequest> replay_requests(const store::Replay& replay,
                                                  const std::vector<store::Strand>& live,
                                                  const std::vector<store::ReplayPlace>& places,
                                                  const Window::Limits& limits) {
  std::vector<store::ReplayRequest> requests;
  for (const store::Strand& strand : live) {
    for (const store::ReplayPlace& place : places) {
      const store::LaneMask lanes = strand.lanes & place.lanes;
      if (lanes == 0 || place.position >= replay.last) continue;
      requests.push_back({.replay = replay.id,
                          .subscription = replay.subscription,
                          .archived = replay.archived,
                          .lanes = lanes,
                          .live = strand.cursor,
                          .position = place.position,
                          .last = replay.last,
                          .rows = limits.page_events,
                          .bytes = limits.page_bytes});
    }
  }
  return requests;
}

ParkingRules replay_parking() {
  SubscriptionSpec once;
  once.max_attempts = 1;
  return {.policy = subscription::RetryPolicy(once),
          .max_waiting = static_cast<std::size_t>(store::kMostSkipped),
          .watches_slow = false};
}

store::ReplayProgress replay_progress(const store::Replay& replay, const DeliveryCore::Due& due) {
  const store::Settlement& last = due.rows.back();
  store::ReplayProgress progress{.replay = replay.id,
                                 .subscription = last.subscription,
                                 .generation = last.generation,
                                 .lanes = last.lanes,
                                 .position = last.position.value_or(replay.last)};
  for (const store::Settlement& row : due.rows) progress.sent += row.acked.count;
  for (const store::ParkedEvent& event : due.parked)
    progress.skips.push_back({.seq = event.seq, .id = event.id, .error = event.error});
  return progress;
}

Result<std::shared_ptr<ReplayRun>> begin_replay(std::unique_ptr<store::Replays> replays,
                                                std::int64_t id, store::LaneMask lanes,
                                                const std::vector<store::Strand>& live,
                                                const Window::Limits& limits,
                                                std::function<void(const Error&)> failed) {
  OUTBOX_TRY(auto replay, replays->find(id));
  if (!replay || replay->state != store::ReplayState::running) return nullptr;
  OUTBOX_TRY(const auto places, replays->places(*replay, lanes));
  auto requests = replay_requests(*replay, live, places, limits);
  auto run = std::make_shared<ReplayRun>();
  if (requests.empty()) return run;
  const auto choice = subscription::replay_choice_from_json(replay->filter);
  if (!choice) {
    // Live delivery must not wait for a replay whose filter cannot be read.
    OUTBOX_TRY(const bool stopped, replays->stop(id, choice.error().text()));
    (void)stopped;
    return nullptr;
  }
  OUTBOX_TRY(const auto skips, replays->skips(id, static_cast<std::size_t>(store::kMostSkipped)));
  for (const auto& skip : skips)
    run->skipped_keys.push_back(event::key_hash(skip.aggregate_type, skip.aggregate_id));
  for (const auto& request : requests)
    run->strands.push_back({.lanes = request.lanes, .cursor = replay_cursor(request.position)});
  run->replay = std::move(*replay);
  run->feed = std::make_unique<ReplayFeed>(std::move(replays), std::move(requests), *choice,
                                           std::move(failed));
  return run;
}

Status stop_replay(store::Store& store, std::int64_t replay, const Rejection& rejection) {
  OUTBOX_TRY(const auto replays, store.replays());
  const std::string reason = "seq " + std::to_string(rejection.seq) + " (" + rejection.id.str() +
                             ") was rejected: " + rejection.error.text();
  auto stopped = replays->stop(replay, store::storable_text(reason));
  return stopped ? Status{} : Status(pass(stopped));
}

}  // namespace outbox::relay
