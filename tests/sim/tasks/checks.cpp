#include "sim/tasks/checks.hpp"

#include <algorithm>
#include <string>

#include "base/hash.hpp"

namespace outbox::sim {

bool is_noted(std::size_t number) { return splitmix64(number * 59) % 100 < 20; }

/// Not one that was given up, one of a worker that lost its lanes before there was a row, or one that a person has
/// discarded before its row was running. Those may run beside their successors.
bool RunChecks::counts(const SimRun& run) const {
  if (decided_.contains(run.number)) return false;
  const bool owned = run.kept || tables_.generation_of(run.lane) == run.generation;
  return owned && !run.dropped && !run.taken;
}

void RunChecks::begins(const std::shared_ptr<SimRun>& run) {
  ++begun_[run->number];
  for (const auto& other : running_) {
    if (other->key == run->key && counts(*other) && counts(*run))
      checks_.broke("two tasks of key k" + std::to_string(run->key) + " run at once: " +
                    std::to_string(other->number) + " and " + std::to_string(run->number));
  }
  running_.push_back(run);
}

void RunChecks::over(const std::shared_ptr<SimRun>& run) { std::erase(running_, run); }

void RunChecks::process_is_gone(const EventId& worker) {
  std::erase_if(running_, [&](const auto& run) { return run->worker == worker; });
}

int RunChecks::runs(std::size_t number) const {
  const auto found = begun_.find(number);
  return found == begun_.end() ? 0 : found->second;
}

void RunChecks::failed(std::size_t number, bool final) {
  ++failures_[number];
  if (final) hopeless_.insert(number);
}

void RunChecks::check_attempts(const EventId& id, std::size_t attempts, bool dead) {
  const std::size_t number = number_of(id);
  if (attempts > failures_[number])
    checks_.broke("an attempt at task " + std::to_string(number) + " was counted for no failure");
  if (dead && attempts < kMostRuns && !hopeless_.contains(number))
    checks_.broke("task " + std::to_string(number) + " is dead before its attempts are used up");
}

void RunChecks::wrote(const Batch& batch) {
  for (const auto& event : batch.parked)
    check_attempts(event.id, event.attempts, event.state == store::ParkedState::dead);
  for (const auto& result : batch.results) {
    if (result.state)
      check_attempts(result.id, result.attempts, result.state == store::ParkedState::dead);
  }
  for (const auto& [seq, row] : tables_.parked().rows()) {
    if (!tables_.is_settled(database_.event(number_of(row.event.id))))
      checks_.broke("a task is pending and has a row");
    if (tables_.parked().delivered().contains(seq)) checks_.broke("a task has ended and has a row");
  }
}

void RunChecks::writes(const std::vector<store::TaskRunEnd>& ends, const EventId& by) {
  announced_.clear();
  for (const auto& end : ends) {
    const auto row = tables_.parked().rows().find(end.result.seq);
    const bool valid = row != tables_.parked().rows().end() &&
                       row->second.event.id == end.result.id &&
                       row->second.state == store::ParkedState::running &&
                       row->second.worker == end.result.worker && row->second.token == end.token;
    announced_.push_back({.end = end, .valid = valid});
    if (!valid || end.result.worker == by) continue;
    // Recovered: its worker counts as dead.
    const std::size_t number = number_of(end.result.id);
    failed(number, false);
    for (const auto& run : running_) {
      if (run->number == number && run->worker == end.result.worker) run->taken = true;
    }
  }
}

void RunChecks::written(const std::vector<bool>& ends) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const store::RetryResult& result = announced_[i].end.result;
    if (!ends[i]) continue;
    if (!announced_[i].valid)
      checks_.broke("an end was written by a worker that had the task no more");
    if (!ended_.insert({result.id, announced_[i].end.token}).second)
      checks_.broke("two ends of one run were written");
    if (result.state)
      check_attempts(result.id, result.attempts, result.state == store::ParkedState::dead);
  }
}

void RunChecks::goes_on(const sink::KeptRun& run, const EventId& worker,
                        const std::vector<store::TaskRunRow>& compared) {
  const auto row = tables_.parked().rows().find(run.seq);
  const bool is_ours = row != tables_.parked().rows().end() && row->second.worker == worker &&
                       row->second.state == store::ParkedState::running &&
                       row->second.token == run.token;
  if (!is_ours)
    checks_.broke("a run that was taken from its worker is not told to stop: task " +
                  std::to_string(number_of(run.id)));
  const bool cancelled = std::any_of(compared.begin(), compared.end(), [&](const auto& one) {
    return one.seq == run.seq && one.token == run.token && one.cancelled;
  });
  const bool told = std::any_of(running_.begin(), running_.end(), [&](const auto& one) {
    return one->worker == worker && one->seq == run.seq && one->told;
  });
  if (cancelled && !told)
    checks_.broke("a run that a person has cancelled is not told to stop: task " +
                  std::to_string(number_of(run.id)));
}

void RunChecks::decided(std::size_t number) {
  decided_.insert(number);
  for (const auto& run : running_) {
    if (run->number == number) run->taken = true;
  }
}

void RunChecks::taken_for_dead(const EventId& worker, relay::TimePoint now,
                               relay::TimePoint::duration silence) {
  const auto beat = beats_.find(worker);
  if (beat != beats_.end() && now - beat->second < silence)
    checks_.broke("a worker was taken for dead that had just shown that it is alive");
}

void RunChecks::all_ended() {
  for (const std::size_t number : database_.rows()) {
    const WrittenEvent& event = database_.event(number);
    const bool is_dead = tables_.parked().rows().contains(event.view.seq) ||
                         tables_.parked().discarded().contains(event.view.seq);
    if (!event.committed || !event.wanted || is_dead) continue;
    const auto told = tables_.told().find(event.view.id);
    const int times = told == tables_.told().end() ? 0 : told->second;
    if (times != (is_noted(number) ? 1 : 0))
      checks_.broke("the end of task " + std::to_string(number) + " was told " +
                    std::to_string(times) + " times");
  }
  if (!running_.empty()) checks_.broke("a task runs that has ended");
}

}  // namespace outbox::sim
