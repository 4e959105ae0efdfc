#include "task/run_watch.hpp"

#include <algorithm>
#include <utility>

#include "event/arena.hpp"
#include "event/task.hpp"
#include "store/parked.hpp"
#include "store/text.hpp"

namespace outbox::task {
namespace {

/// A worker that is silent for this many heartbeats is dead.
constexpr int kSilence = 2;
/// A policy that says nothing, since the schedule of the type decides.
const subscription::RetryPolicy kNoPolicy{SubscriptionSpec{}};

}  // namespace

store::TaskRunEnd make_run_end(const KeptEnd& kept, const EventId& worker) {
  store::TaskRunEnd end;
  end.finish = kept.finish;
  end.token = kept.run.token;
  end.result.subscription = kept.run.subscription;
  end.result.seq = kept.run.seq;
  end.result.id = kept.run.id;
  end.result.worker = worker;
  end.result.attempts = kept.run.attempts;
  if (!kept.outcome) {
    end.result.state = store::ParkedState::retrying;
    end.result.error = "the worker stopped while the task ran";
    return end;
  }
  const Outcome& outcome = *kept.outcome;
  if (outcome.kind == Outcome::Kind::acked) {
    ++end.result.attempts;
    return end;
  }
  const store::Verdict next = store::verdict(kNoPolicy, outcome, kept.run.attempts, kept.run.seq);
  end.result.state = next.state;
  end.result.attempts = next.attempts;
  end.result.due_in = next.due_in;
  end.result.error = store::storable_text(outcome.error.text());
  return end;
}

store::TaskRunEnd end_of_dead(const store::TaskRunRow& row, const EventId& worker,
                              const RetrySchedule& retries) {
  Outcome outcome = to_outcome(0, TaskEnd::failed("its worker " + worker.str() + " is dead"));
  event::Arena arena;
  const auto rules = event::parse_task_rules(row.headers, arena);
  retries.decide(outcome, row.attempts + 1, rules ? rules->max_attempts : std::nullopt, row.id);
  return make_run_end({.run = {.subscription = row.subscription,
                               .seq = row.seq,
                               .id = row.id,
                               .attempts = row.attempts,
                               .token = row.token},
                       .outcome = std::move(outcome)},
                      worker);
}

// ---- own rows

/// A run whose row is gone was taken from this worker. A row without a run was written for a run
/// that the relay gave up: the task runs again. The row of a run that is not kept yet is not such a
/// row. A row counts only when it was without a run twice: the first time, the relay may be about
/// to hear how its run has ended.
OwnRows::Difference OwnRows::compare(std::span<const EventId> unkept,
                                     std::span<const sink::KeptRun> kept,
                                     std::span<const store::TaskRunEnd> ended,
                                     std::span<const store::TaskRunRow> rows) {
  const auto place = [](const auto& run) { return Place{run.subscription, run.seq, run.token}; };
  std::map<Place, sink::KeptRun> runs;
  for (const sink::KeptRun& run : kept) runs.emplace(place(run), run);
  Difference difference;
  std::set<Place> strays;
  for (const store::TaskRunRow& row : rows) {
    const bool has_ended = std::any_of(ended.begin(), ended.end(), [&](const auto& end) {
      return Place{end.result.subscription, end.result.seq, end.token} == place(row);
    });
    const auto run = runs.find(place(row));
    const bool is_kept = run != runs.end();
    if (is_kept && row.cancelled) difference.cancelled.push_back(run->second);
    if (is_kept) runs.erase(run);
    const bool runs_here = std::find(unkept.begin(), unkept.end(), row.id) != unkept.end();
    if (has_ended || is_kept || runs_here) continue;
    if (strays_.contains(place(row))) {
      difference.runless.push_back(row);
    } else {
      strays.insert(place(row));
    }
  }
  strays_ = std::move(strays);
  for (const auto& [lost, run] : runs) difference.lost.push_back(run);
  return difference;
}

// ---- other workers

std::vector<EventId> Heartbeats::silent(std::span<const store::OtherWorker> others, TimePoint now,
                                        std::chrono::milliseconds heartbeat) {
  std::map<EventId, Seen> seen;
  std::vector<EventId> silent;
  for (const store::OtherWorker& other : others) {
    const auto before = others_.find(other.id);
    const bool same = before != others_.end() && before->second.beat == other.beat;
    const Seen& now_seen = seen[other.id] =
        same ? before->second : Seen{.beat = other.beat, .since = now};
    if (now - now_seen.since >= kSilence * std::max(heartbeat, other.heartbeat))
      silent.push_back(other.id);
  }
  others_ = std::move(seen);
  return silent;
}

}  // namespace outbox::task
