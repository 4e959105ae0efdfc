#include "sim/tasks/checks.hpp"

#include <algorithm>
#include <string>

#include "base/hash.hpp"

namespace outbox::sim {

bool is_noted(std::size_t number) { return splitmix64(number * 59) % 100 < 20; }

/// Whether the run counts. It does not if it was given up, if its worker lost its lanes before
/// there was a row, or if a person discarded the task before its row was running. Such a run may go
/// on beside its successor.
bool RunChecks::counts(const SimRun& run) const {
  if (decided_.contains(run.number)) return false;
  const task::RunnerCore::Run state = run.state();
  const bool owned = state.kept || tables_.members().generation_of(run.lane) == run.generation;
  return owned && !state.dropped && !run.taken;
}

void RunChecks::begins(const std::shared_ptr<SimRun>& run) {
  ++begun_[run->number];
  for (const auto& other : running_) {
    if (!counts(*other) || !counts(*run)) continue;
    if (other->key == run->key && other->source == run->source)
      checks_.broke("two tasks of key k" + std::to_string(run->key) + " run at once: " +
                    std::to_string(other->number) + " and " + std::to_string(run->number));
    if (other->number == run->number)
      checks_.broke("task " + std::to_string(run->number) + " runs twice at once");
  }
  if (exact_ && done_.contains(run->number))
    checks_.broke("task " + std::to_string(run->number) + " runs again although it was done");
  running_.push_back(run);
}

void RunChecks::over(const std::shared_ptr<SimRun>& run) { std::erase(running_, run); }

void RunChecks::claimed(std::size_t number) {
  const bool runs = std::any_of(running_.begin(), running_.end(), [&](const auto& run) {
    return run->number == number && counts(*run);
  });
  if (runs) checks_.broke("a task was claimed that runs: " + std::to_string(number));
}

void RunChecks::process_is_gone(const EventId& worker) {
  std::erase_if(running_, [&](const auto& run) { return run->worker == worker; });
}

int RunChecks::runs(std::size_t number) const {
  const auto found = begun_.find(number);
  return found == begun_.end() ? 0 : found->second;
}

void RunChecks::done(std::size_t number) { done_.insert(number); }

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
  for (const store::SubscriptionRow& subscription : tables_.catalog().rows()) {
    const ParkedTable& parked = tables_.parked(subscription.id);
    for (const auto& [seq, row] : parked.rows()) {
      if (!tables_.is_settled(subscription.id, database_.event(number_of(row.event.id))))
        checks_.broke("a task is pending and has a row");
      if (parked.delivered().contains(seq)) checks_.broke("a task has ended and has a row");
    }
  }
}

void RunChecks::writes(const std::vector<store::TaskRunEnd>& ends, const EventId& by) {
  announced_.clear();
  for (const auto& end : ends) {
    const auto& rows = tables_.parked(end.result.subscription).rows();
    const auto row = rows.find(end.result.seq);
    const bool valid = row != rows.end() && row->second.event.id == end.result.id &&
                       row->second.state == store::ParkedState::running &&
                       row->second.worker == end.result.worker && row->second.token == end.token;
    const bool recovered = end.result.worker != by;
    announced_.push_back({.end = end,
                          .valid = valid,
                          .recovered = recovered,
                          .attempts = valid ? row->second.attempts : 0});
    if (!valid || !recovered) continue;
    // The run is recovered, since its worker was silent: nobody knows any more whether it was done.
    const std::size_t number = number_of(end.result.id);
    failed(number, false);
    forgotten(number);
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
    if (announced_[i].recovered && result.attempts != announced_[i].attempts + 1)
      checks_.broke("the run of a dead worker counts no attempt");
  }
}

bool RunChecks::is_of(const sink::KeptRun& run, const EventId& worker) const {
  const auto& rows = tables_.parked(run.subscription).rows();
  const auto row = rows.find(run.seq);
  return row != rows.end() && row->second.worker == worker &&
         row->second.state == store::ParkedState::running && row->second.token == run.token;
}

void RunChecks::loses(const sink::KeptRun& run, const EventId& worker) {
  if (is_of(run, worker))
    checks_.broke("a run is told to stop that was not taken from its worker: task " +
                  std::to_string(number_of(run.id)));
}

void RunChecks::goes_on(const sink::KeptRun& run, const EventId& worker,
                        const std::vector<store::TaskRunRow>& compared) {
  if (!is_of(run, worker))
    checks_.broke("a run that was taken from its worker is not told to stop: task " +
                  std::to_string(number_of(run.id)));
  const bool cancelled = std::any_of(compared.begin(), compared.end(), [&](const auto& one) {
    return one.seq == run.seq && one.token == run.token && one.cancelled;
  });
  const bool told = std::any_of(running_.begin(), running_.end(), [&](const auto& one) {
    return one->worker == worker && one->seq == run.seq && one->stop.stop_requested();
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

void RunChecks::is_discarded(std::int32_t subscription, std::int64_t seq) {
  if (tables_.parked(subscription).rows().contains(seq))
    checks_.broke("a task that did not run was not discarded at once");
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
    const std::int64_t seq = event.view.seq;
    const bool is_dead =
        std::any_of(tables_.catalog().rows().begin(), tables_.catalog().rows().end(),
                    [&](const store::SubscriptionRow& row) {
                      const ParkedTable& parked = tables_.parked(row.id);
                      return parked.rows().contains(seq) || parked.discarded().contains(seq);
                    });
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
