#include "relay/trial_gate.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace outbox::relay {
namespace {

/// What a place belongs to: a replay, or live delivery (empty). They are tried apart.
std::string_view cut_course(std::string_view place) {
  const auto at = place.find(" of replay ");
  return at == std::string_view::npos ? std::string_view() : place.substr(at);
}

bool was_alone(const store::FormerRun& run) { return !run.alive && run.range == 1 && run.seq != 0; }

}  // namespace

TrialGate::Beginning TrialGate::add(std::size_t source, std::vector<store::FormerRun> runs,
                                    const std::string& place) {
  std::erase_if(runs, [&](const store::FormerRun& run) {
    const bool matters = was_alone(run) && run.parked;
    return !matters && cut_course(run.place) != cut_course(place);
  });
  std::map<std::int64_t, std::set<std::int64_t>> alone;
  for (const auto& run : runs) {
    if (was_alone(run)) alone[run.seq].insert(run.generation);
  }
  const auto explained = [&](const store::FormerRun& run) {
    return was_alone(run) && alone[run.seq].size() >= kDeaths;
  };
  const auto on_trial = [&](const store::FormerRun& run) {
    return run.range > 0 && !explained(run);
  };
  const bool goes_on = std::any_of(runs.begin(), runs.end(), on_trial);
  Beginning beginning;
  store::LaneMask once = 0;
  store::LaneMask twice = 0;
  for (const store::FormerRun& run : runs) {
    if (run.alive) continue;
    const bool relevant = goes_on || run.place == place;
    bool keeps = was_alone(run) && (run.parked || (relevant && explained(run)));
    if (relevant && !explained(run)) {
      keeps = keeps || (run.lanes & ~twice) != 0;  // the newest two of each lane
      if (keeps) deaths_.insert(run.generation);
      twice |= once & run.lanes;
      once |= run.lanes;
    }
    if (!keeps) continue;
    beginning.keep.push_back(run.generation);
    if (!was_alone(run) || (window_ == 0 && !run.parked)) continue;
    Lone& lone = lone_[run.seq];
    lone.generations.insert(run.generation);
    lone.parked = run.parked;
    lone.fresh = lone.fresh || !run.counted;
  }
  if (window_ == 0 || twice == 0) return beginning;
  on_ = true;
  const auto newest = std::find_if(runs.begin(), runs.end(), on_trial);
  if (newest != runs.end() && newest->generation > newest_) continue_range(*newest, source);
  beginning.range = next_range(source, 0);
  return beginning;
}

/// The sources are asked in the order in which the dead relay asked them, so that the same events
/// come first.
void TrialGate::continue_range(const store::FormerRun& newest, std::size_t source) {
  newest_ = newest.generation;
  suspected_ = newest.parked ? kRetries : source;
  suspects_ = newest.alive ? 0 : newest.range;
  growing_ = newest.alive ? newest.range : std::max<std::size_t>(newest.range / 2, 1);
}

std::size_t TrialGate::turn() const {
  if (asked_) return *asked_;
  if (range_ == 0) return on_ ? suspected_ : kRetries;
  return used_up() ? source_ + 1 : source_;
}

std::size_t TrialGate::room(std::size_t source, std::span<const DeliveryCore::Send> sends) const {
  std::size_t most = sends.size();
  if (limits()) {
    if (range_ == 0 || source != source_) return 0;
    most = std::min(most, range_ - sent_);
    if (range_ == 1 && most == 1 && sends.front().event->seq != seq_) return 0;
  }
  if (lone_.empty() || (range_ == 1 && most == 1)) return most;
  const auto alone = std::find_if(
      sends.begin(), sends.begin() + static_cast<std::ptrdiff_t>(most),
      [this](const DeliveryCore::Send& send) { return lone_.contains(send.event->seq); });
  return static_cast<std::size_t>(alone - sends.begin());
}

TrialGate::Step TrialGate::next(std::size_t source, std::span<const DeliveryCore::Send> sends,
                                bool rests) {
  using Kind = Step::Kind;
  if (const std::size_t count = room(source, sends); count > 0)
    return {.kind = Kind::send, .count = count};
  if (!limits()) asked_ = source;
  if (!rests) return {.kind = Kind::wait};
  survived();
  const std::int64_t seq = sends.front().event->seq;
  if (const auto deaths = take_culprit(seq)) return {.kind = Kind::culprit, .count = *deaths};
  if (!lone_.contains(seq) && (!on_ || survived_ >= window_)) return {.kind = Kind::over};
  return {.kind = Kind::record, .count = next_range(source, seq)};
}

/// Closes the open range, whose events were sent without a death.
void TrialGate::survived() {
  survived_ += sent_;
  if (source_ == suspected_) suspects_ -= std::min(suspects_, sent_);
  if (sent_ > 0) growing_ = 2 * sent_;
  range_ = sent_ = 0;
}

/// How many relays died of the event; nullopt if too few did, or if the event was parked for all
/// these deaths already.
std::optional<std::size_t> TrialGate::take_culprit(std::int64_t seq) {
  const auto found = lone_.find(seq);
  if (found == lone_.end()) return {};
  Lone& lone = found->second;
  if (lone.generations.size() < kDeaths || (lone.parked && !lone.fresh)) return {};
  lone.fresh = false;
  lone.parked = true;
  return lone.generations.size();
}

std::size_t TrialGate::next_range(std::size_t source, std::int64_t seq) const {
  if (lone_.contains(seq)) return 1;
  if (suspects_ > 0 && source == suspected_) return std::max<std::size_t>(suspects_ / 2, 1);
  return std::max<std::size_t>(std::min(growing_, window_ - std::min(survived_, window_)), 1);
}

bool TrialGate::recorded(std::size_t source, std::int64_t seq,
                         const std::vector<std::int64_t>& dead) {
  range_ = next_range(source, seq);
  source_ = source;
  seq_ = seq;
  sent_ = 0;
  asked_.reset();
  const auto left = std::count_if(dead.begin(), dead.end(), [this](std::int64_t generation) {
    return deaths_.contains(generation);
  });
  return !on_ || static_cast<std::size_t>(left) >= kDeaths;
}

std::vector<std::int64_t> TrialGate::end() {
  on_ = false;
  range_ = sent_ = suspects_ = 0;
  asked_.reset();
  std::erase_if(lone_, [](const auto& entry) { return !entry.second.parked; });
  std::vector<std::int64_t> kept;
  for (const auto& [seq, lone] : lone_)
    kept.insert(kept.end(), lone.generations.begin(), lone.generations.end());
  return kept;
}

}  // namespace outbox::relay
