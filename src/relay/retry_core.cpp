#include "relay/retry_core.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"
#include "store/verdict.hpp"

namespace outbox::relay {
namespace {

/// Chains in memory, and reads of 8 MiB that they come from.
constexpr std::size_t kMostChains = 200;
constexpr int kMostLoads = 4;
constexpr std::size_t kMostSuspects = 10000;
constexpr std::chrono::milliseconds kSlowAtStop{100};

}  // namespace

RetryCore::RetryCore(RetryOptions options, SinkState& sink, KeyGate& gate)
    : options_(std::move(options)), sink_(sink), gate_(gate), next_token_(options_.first_token) {}

// ---- reading

void RetryCore::due_at(TimePoint when) { due_ = due_ ? std::min(*due_, when) : when; }

bool RetryCore::may_load() const {
  // What was given is written, so that it is not read again.
  if (!results_.empty() || !writing_.empty() || loading_ || stopping_ || !sink_.may_send())
    return false;
  const auto loads = std::count_if(storages_.begin(), storages_.end(),
                                   [](const auto& storage) { return !storage.expired(); });
  return chains_.size() < kMostChains && loads < kMostLoads;
}

bool RetryCore::wants_load(TimePoint now) const { return due_ && *due_ <= now && may_load(); }

/// What becomes due from now on may be missing from the answer.
void RetryCore::load_asked() {
  loading_ = true;
  due_.reset();
  given_ = {};
  asked_runs_.clear();
  for (const auto& [seq, key] : runs_) asked_runs_.push_back(seq);
  for (const EventRef& event : remembered_) asked_runs_.push_back(event.seq);
}

/// A row that is gone no longer blocks its key; one that no worker has or may take is looked after as any other. Of those that are
/// remembered we know in this way that they are gone: a row that is `running`, or that another worker has given back, is not among those
/// that are due.
void RetryCore::compare_runs(const std::vector<store::RunningRow>& rows, TimePoint now) {
  const auto is_left = [](store::ParkedState state) {
    return state == store::ParkedState::running || state == store::ParkedState::ready;
  };
  std::map<std::int64_t, store::ParkedState> found;
  for (const store::RunningRow& row : rows) found.emplace(row.seq, row.state);
  for (const std::int64_t seq : std::exchange(asked_runs_, {})) {
    const auto row = found.find(seq);
    if (row == found.end())
      std::erase_if(remembered_, [seq](const EventRef& event) { return event.seq == seq; });
    const auto run = runs_.find(seq);
    if (run == runs_.end()) continue;
    if (row != found.end() && is_left(row->second)) continue;
    const bool dead = row != found.end() && row->second == store::ParkedState::dead;
    if (row == found.end() || (dead && !options_.rules.dead_blocks)) gate_.remove(run->second);
    runs_.erase(run);
  }
  if (!runs_.empty())
    due_at(now + std::chrono::duration_cast<TimePoint::duration>(options_.look_at_runs));
}

RetryCore::Busy RetryCore::busy() const {
  Busy busy = given_;
  for (const auto& [token, chain] : chains_) busy.add(chain.key, chain.rows.back().event.seq);
  for (const auto& [seq, late] : gate_.late.all()) busy.add(late.key, seq);
  // A person may have put an event before one that runs.
  for (const auto& [seq, key] : runs_) busy.add(key, seq);
  return busy;
}

void RetryCore::loaded(store::DueEvents due, TimePoint now) {
  loading_ = false;
  // What is due already stays due while it is in flight: it must not be read again and again.
  if (due.next_in) {
    const auto next_in = std::max<std::chrono::nanoseconds>(*due.next_in, options_.write_interval);
    due_at(now + std::chrono::duration_cast<TimePoint::duration>(next_in));
  }
  if (options_.worker) compare_runs(due.running, now);
  const Busy busy = this->busy();
  // What was given since is written by the next time.
  if (!given_.empty()) due_at(now);
  std::unordered_map<std::uint64_t, Token> of_key;
  const Token first = next_token_;
  for (const store::ParkedRow& row : due.rows) {
    const std::uint64_t key = event::key_hash(row.event.aggregate_type, row.event.aggregate_id);
    if (busy.contains(key, row.event.seq)) continue;
    // A person has just sent it again: the stream does not know yet that its key is blocked. It will, once this begins anew.
    if (key != 0 && !gate_.blocked(key)) continue;
    const auto found = key == 0 ? of_key.end() : of_key.find(key);
    if (found != of_key.end()) {
      chains_.at(found->second).rows.push_back(row);
      continue;
    }
    if (key != 0) of_key.emplace(key, next_token_);
    Chain chain;
    chain.key = key;
    chain.storage = due.storage;
    chain.rows.push_back(row);
    chains_.emplace(next_token_++, std::move(chain));
  }
  std::erase_if(storages_, [](const auto& storage) { return storage.expired(); });
  if (due.storage) storages_.push_back(due.storage);
  if (remembered_.empty()) return;
  for (auto chain = chains_.lower_bound(first); chain != chains_.end(); ++chain)
    recall(chain->second, now);
  if (next_token_ == first && given_.empty() && !options_.worker) forget_those_that_left();
  drop_done_chains(now);
}

/// Those at the front of the chain that an earlier run delivered.
void RetryCore::recall(Chain& chain, TimePoint now) {
  for (; chain.at < chain.rows.size(); ++chain.at) {
    const store::ParkedRow& row = chain.row();
    const EventRef event{row.event.seq, row.event.id};
    if (remembered_.erase(event) == 0) return;
    give_delivered(event, chain.key, row.attempts + 1, now);
  }
}

/// All that is due is in memory, so that the rows of the others are gone.
void RetryCore::forget_those_that_left() {
  std::set<EventRef> still;
  for (const auto& [token, chain] : chains_) {
    for (const auto& row : chain.rows) still.insert({row.event.seq, row.event.id});
  }
  std::erase_if(remembered_, [&](const EventRef& event) { return !still.contains(event); });
}

// ---- sending

std::span<const RetryCore::Send> RetryCore::to_send(TimePoint now) {
  batch_.clear();
  now_ = now;
  judge(now);
  sink_.ask_alone(false);
  if (stopping_ || pick_suspect(now) || !sink_.may_send()) return batch_;
  const std::size_t limit = std::min(options_.max_batch, sink_.batch_limit());
  for (auto& [token, chain] : chains_) {
    if (batch_.size() >= limit) break;
    if (chain.may_go(now) && !is_suspect(chain))
      batch_.push_back(
          {.token = token, .event = &chain.row().event, .attempt = chain.row().attempts + 1});
  }
  return batch_;
}

/// One at a time; for a gapless sink, which stops at it, with nothing else in flight. True: nothing else is sent now.
bool RetryCore::pick_suspect(TimePoint now) {
  for (const auto& [token, chain] : chains_) {
    const bool flies = chain.in_flight && chain.alone;
    if (!flies && !(chain.may_go(now) && is_suspect(chain))) continue;
    if (flies && !options_.gapless) continue;
    if (options_.gapless) sink_.ask_alone(true);
    const bool waits = flies || (options_.gapless && sink_.in_flight() > 0);
    if (!waits && sink_.may_send() && sink_.batch_limit() > 0)
      batch_.push_back(
          {.token = token, .event = &chain.row().event, .attempt = chain.row().attempts + 1});
    return true;
  }
  return false;
}

void RetryCore::handed_over(std::size_t count) {
  OUTBOX_CHECK(count <= batch_.size());
  for (std::size_t i = 0; i < count; ++i) {
    Chain& chain = chains_.at(batch_[i].token);
    chain.in_flight = true;
    chain.sent_at = now_;
    chain.alone = is_suspect(chain);
  }
  sink_.sent(count);
}

void RetryCore::refuse(const Error& error, TimePoint now) {
  OUTBOX_CHECK(!batch_.empty());
  failed(chains_.at(batch_.front().token), {.kind = Outcome::Kind::rejected, .error = error}, now);
  batch_.clear();
  drop_done_chains(now);
}

void RetryCore::outcome(const Outcome& outcome, TimePoint now) {
  if (const auto late = late_.find(outcome.token); late != late_.end()) {
    EventView event;
    event.seq = late->second;
    late_.erase(late);
    gate_.late.ended(event.seq, outcome);
    return sink_.late(outcome, event, now);
  }
  const auto found = chains_.find(outcome.token);
  if (found == chains_.end() || !found->second.in_flight) return;
  Chain& chain = found->second;
  const store::ParkedRow& row = chain.row();
  chain.in_flight = false;
  switch (outcome.kind) {
    case Outcome::Kind::acked: {
      suspects_.erase(row.event.seq);
      give_delivered({row.event.seq, row.event.id}, chain.key, row.attempts + 1, now);
      next_of(found, now);
      sink_.acked(now);
      break;
    }
    case Outcome::Kind::postponed:
    case Outcome::Kind::rejected:
      sink_.retry_failed(options_.gapless && !outcome.unsent, now);
      failed(chain, outcome, now);
      chains_.erase(found);
      due_at(now);  // there may be more
      break;
    case Outcome::Kind::retry:
    case Outcome::Kind::unknown: in_doubt(chain, outcome, now); break;
    case Outcome::Kind::blocked: sink_.failed(outcome, row.event, now); break;
  }
}

/// Under a token of its own: a faulty sink may report the one before it twice. Looks at no other chain: there are as many as outcomes.
void RetryCore::next_of(Chains::iterator chain, TimePoint now) {
  ++chain->second.at;
  chain->second.tries = 0;
  if (!remembered_.empty()) recall(chain->second, now);
  auto node = chains_.extract(chain);
  if (node.mapped().at == node.mapped().rows.size()) return due_at(now);  // there may be more
  node.key() = next_token_++;
  chains_.insert(std::move(node));
}

// ---- failures

bool& RetryCore::suspect_of(const Chain& chain) {
  if (suspects_.size() >= kMostSuspects) suspects_.clear();
  return suspects_.try_emplace(chain.row().event.seq, false).first->second;
}

/// A gapless sink reports as failed also what it did not send because of another event.
void RetryCore::in_doubt(Chain& chain, const Outcome& outcome, TimePoint now) {
  const EventView& event = chain.row().event;
  bool& suspect = suspect_of(chain);
  if ((options_.gapless && !chain.alone) || stopping_ || outcome.retry_after)
    return sink_.failed(outcome, event, now);
  chain.doubt =
      sink_.doubted(outcome, event, {.suspect = suspect, .gapless = options_.gapless}, now);
  suspect = true;
  chain.in_doubt = true;
  chain.error = outcome.error;
  const std::size_t tries = chain.row().attempts + static_cast<std::size_t>(++chain.tries);
  const auto pause =
      options_.rules.policy.pause_after(tries, static_cast<std::uint64_t>(event.seq));
  chain.again_at =
      now + (pause
                 ? std::chrono::duration_cast<TimePoint::duration>(*pause)
                 : std::chrono::duration_cast<TimePoint::duration>(options_.rules.failing.longest));
}

void RetryCore::judge(TimePoint now) {
  for (auto& [token, chain] : chains_) {
    if (!chain.in_doubt) continue;
    const Fault fault = chain.doubt.fault();
    chain.in_doubt = fault == Fault::open && now < chain.again_at;
    if (fault == Fault::event)
      failed(chain, {.kind = Outcome::Kind::rejected, .error = chain.error}, now);
  }
  drop_done_chains(now);
}

/// By its own fault, or postponed.
void RetryCore::failed(Chain& chain, const Outcome& outcome, TimePoint now) {
  const store::ParkedRow& row = chain.row();
  give_failed({row.event.seq, row.event.id}, chain.key, row.attempts, outcome, now);
  // What waits behind it waits on; of a dead one until that is written: another relay may still deliver it.
  chain.at = chain.rows.size();
}

void RetryCore::give_failed(const EventRef& event, std::uint64_t key, std::size_t attempts,
                            const Outcome& outcome, TimePoint now) {
  const store::Verdict next = store::verdict(options_.rules.policy, outcome, attempts, event.seq);
  const bool dead = next.state == store::ParkedState::dead;
  store::RetryResult result;
  result.state = next.state;
  result.attempts = next.attempts;
  result.due_in = next.due_in;
  result.error = outcome.error.text();
  if (dead) suspects_.erase(event.seq);
  give(std::move(result), event, key, dead && !options_.rules.dead_blocks, now);
  // It is not read back before that is written.
  if (next.state == store::ParkedState::ready) runs(event.seq, key);
}

/// Sends that still ran when their event was set aside.
void RetryCore::take_late(TimePoint now) {
  for (const LateSends::Send& late : gate_.late.take_ended()) {
    const EventRef event{late.seq, late.id};
    if (late.outcome->kind == Outcome::Kind::acked) {
      give_delivered(event, late.key, late.attempts + 1, now);
    } else if (late.outcome->kind == Outcome::Kind::rejected ||
               late.outcome->kind == Outcome::Kind::postponed) {
      give_failed(event, late.key, late.attempts, *late.outcome, now);
    } else if (late.run > 0 && options_.worker) {
      store::RetryResult given_back;
      given_back.state = store::ParkedState::retrying;
      given_back.attempts = late.attempts;
      given_back.error = late.outcome->error.text();
      give(std::move(given_back), event, late.key, false, now);
    } else {
      due_at(now);
    }
  }
}

/// What waits behind it in its chain is read again once its row has gone.
void RetryCore::watch_slow(TimePoint now) {
  if (!options_.worker) return;
  const std::chrono::nanoseconds limit =
      stopping_ ? std::min<std::chrono::nanoseconds>(kSlowAtStop, options_.slow_after)
                : options_.slow_after;
  for (auto entry = chains_.begin(); entry != chains_.end();) {
    const auto& [token, chain] = *entry;
    const auto& is_slow = options_.rules.is_slow;
    const bool at_once = is_slow && is_slow(chain.row().event.event_type);
    if (!chain.in_flight || (!at_once && now - chain.sent_at < limit)) {
      ++entry;
      continue;
    }
    const store::ParkedRow& row = chain.row();
    const LateSends::Send send{.token = options_.token_prefix | token,
                               .seq = row.event.seq,
                               .id = row.event.id,
                               .key = chain.key,
                               .attempts = row.attempts,
                               .run = row.token + 1};
    late_.emplace(token, send.seq);
    gate_.late.began(send);
    const auto ran = std::chrono::duration_cast<std::chrono::milliseconds>(now - chain.sent_at);
    give_run(send, "runs for " + std::to_string(ran.count()) + " ms", now);
    entry = chains_.erase(entry);
  }
}

void RetryCore::give_run(const LateSends::Send& send, const std::string& error, TimePoint now) {
  store::RetryResult running;
  running.state = store::ParkedState::running;
  running.attempts = send.attempts;
  running.error = error;
  running.worker = *options_.worker;
  give(std::move(running), {send.seq, send.id}, send.key, false, now);
  ended_.back().began_to_run = send.seq;
}

void RetryCore::kept(const LateSends::Send& send, TimePoint now) {
  // Sends of the stream have tokens of their own, which may be the same without the prefix.
  if ((send.token & options_.token_prefix) != 0) late_.erase(send.token & ~options_.token_prefix);
  runs_.emplace(send.seq, send.key);
  due_at(now + std::chrono::duration_cast<TimePoint::duration>(options_.look_at_runs));
}

void RetryCore::give_delivered(const EventRef& event, std::uint64_t key, std::size_t attempts,
                               TimePoint now) {
  store::RetryResult delivered;
  delivered.attempts = attempts;
  give(std::move(delivered), event, key, true, now);
}

void RetryCore::give(store::RetryResult result, const EventRef& event, std::uint64_t key,
                     bool releases, TimePoint now) {
  const bool acked = !result.state;
  result.subscription = options_.subscription;
  result.generation = options_.generation;
  result.seq = event.seq;
  result.id = event.id;
  results_.push_back(std::move(result));
  ended_.push_back(
      {.key = key, .releases = releases, .acked = acked ? std::optional(event) : std::nullopt});
  given_.add(key, event.seq);
  if (!oldest_result_) oldest_result_ = now;
}

void RetryCore::drop_done_chains(TimePoint now) {
  const auto dropped = std::erase_if(chains_, [](const auto& entry) {
    return entry.second.at == entry.second.rows.size() && !entry.second.in_flight;
  });
  if (dropped > 0) due_at(now);  // there may be more
}

// ---- writing

std::vector<store::RetryResult> RetryCore::results(TimePoint now) {
  watch_slow(now);
  if (!gate_.late.empty()) take_late(now);
  if (results_.empty() || !writing_.empty()) return {};
  const bool all = chains_.empty() || stopping_;
  if (!all && now - *oldest_result_ < options_.write_interval) return {};
  writing_ = std::exchange(ended_, {});
  oldest_result_.reset();
  for (const auto& result : results_) {
    if (result.state == store::ParkedState::retrying)
      due_at(now + std::chrono::duration_cast<TimePoint::duration>(result.due_in));
  }
  return std::exchange(results_, {});
}

void RetryCore::written(TimePoint now) {
  for (const Ended& ended : std::exchange(writing_, {})) {
    if (ended.began_to_run != 0) gate_.late.written(ended.began_to_run);
    if (ended.releases) gate_.remove(ended.key);
    // What waited behind it may be the first of its key now.
    if (ended.releases && gate_.blocked(ended.key)) due_at(now);
  }
}

std::optional<TimePoint> RetryCore::next_at() const {
  std::optional<TimePoint> at;
  const auto by = [&at](TimePoint when) { at = std::min(at.value_or(when), when); };
  if (oldest_result_ && writing_.empty())
    by(*oldest_result_ + std::chrono::duration_cast<TimePoint::duration>(options_.write_interval));
  if (stopping_ || !sink_.may_send()) return at;
  if (due_ && may_load()) by(*due_);
  for (const auto& [token, chain] : chains_) {
    if (chain.tries > 0 && !chain.in_flight) by(chain.again_at);
  }
  return at;
}

std::vector<EventRef> RetryCore::unsettled_acks() const {
  std::vector<EventRef> acks;
  for (const auto* ended : {&writing_, &ended_}) {
    for (const Ended& one : *ended) {
      if (one.acked) acks.push_back(*one.acked);
    }
  }
  for (const auto& [seq, late] : gate_.late.all()) {
    if (late.outcome && late.outcome->kind == Outcome::Kind::acked) acks.push_back({seq, late.id});
  }
  acks.insert(acks.end(), remembered_.begin(), remembered_.end());
  return acks;
}

bool RetryCore::finished() const {
  const bool in_flight = std::any_of(chains_.begin(), chains_.end(),
                                     [](const auto& entry) { return entry.second.in_flight; });
  const auto& late = gate_.late.all();
  const bool ends = std::any_of(late.begin(), late.end(),
                                [](const auto& entry) { return entry.second.outcome.has_value(); });
  return stopping_ && !in_flight && !ends && results_.empty() && writing_.empty();
}

}  // namespace outbox::relay
