#include "relay/retry_core.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"
#include "relay/slow_watch.hpp"
#include "store/parked.hpp"

namespace outbox::relay {
namespace {

/// The most chains in memory, and the most reads that they come from, of 8 MiB each.
constexpr std::size_t kMostChains = 200;
constexpr int kMostLoads = 4;
constexpr std::size_t kMostSuspects = 10000;

}  // namespace

RetryCore::RetryCore(RetryOptions options, SinkState& sink, KeyGate& gate)
    : options_(std::move(options)), sink_(sink), gate_(gate), next_token_(options_.first_token) {}

// ---- reading

void RetryCore::due_at(TimePoint when) { due_ = due_ ? std::min(*due_, when) : when; }

bool RetryCore::may_load() const {
  // Results are written first, so that their events are not read again.
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
  given_.clear();
  asked_.clear();
  for (const auto& [seq, key] : runs_) asked_.push_back({.seq = seq, .key = key});
  for (const EventRef& event : remembered_) {
    if (!runs_.contains(event.seq)) asked_.push_back({.seq = event.seq});
  }
}

/// A run that has ended elsewhere no longer holds its key. A row that no worker has, and that none
/// may take, is handled like any other. A remembered event whose row is gone is forgotten. Only
/// this answer shows that, because a row that is `running`, or that another worker has given back,
/// is not among the due ones.
void RetryCore::compare_asked(const std::vector<store::AskedState>& rows, TimePoint now) {
  for (const store::AskedState& row : rows) {
    if (!row.state)
      std::erase_if(remembered_, [&](const EventRef& event) { return event.seq == row.seq; });
    const auto run = runs_.find(row.seq);
    if (run == runs_.end()) continue;
    if (row.state == store::ParkedState::running || row.state == store::ParkedState::ready)
      continue;
    const std::uint64_t key = gate_key(run->second, row.seq);
    if (!row.state || row.state == store::ParkedState::dead) gate_.left();
    row.key_left ? due_at(now) : gate_.released(key);
    runs_.erase(run);
  }
  if (!runs_.empty())
    due_at(now + std::chrono::duration_cast<TimePoint::duration>(options_.look_at_runs));
}

RetryCore::Keys RetryCore::busy() const {
  Keys busy = given_;
  for (const auto& [token, chain] : chains_) busy.insert(chain.key);
  add_keys_set_aside(busy);
  return busy;
}

/// Keys of which an event still runs after it was set aside, here or at a worker.
void RetryCore::add_keys_set_aside(Keys& keys) const {
  for (const auto& [seq, late] : gate_.late.all())
    keys.insert(store::parked_key(late.key, late.seq));
  for (const auto& [seq, key] : runs_) keys.insert(key);
}

void RetryCore::loaded(store::DueEvents due, TimePoint now) {
  loading_ = false;
  compare_asked(due.asked, now);
  asked_.clear();
  // An event that is due stays due while it is in flight, but must not be read again and again.
  if (due.next_in) {
    const auto next_in = std::max<std::chrono::nanoseconds>(*due.next_in, options_.write_interval);
    due_at(now + std::chrono::duration_cast<TimePoint::duration>(next_in));
  }
  // The answer may be older than a person's change.
  if (std::exchange(changed_while_loading_, false)) return due_at(now);
  const Keys busy = this->busy();
  // Results that were given since load_asked() are written before the next read.
  if (!given_.empty()) due_at(now);
  std::unordered_map<std::uint64_t, Token> of_key;
  const Token first = next_token_;
  for (const store::ParkedRow& row : due.rows) {
    if (busy.contains(row.key)) continue;
    const auto [found, is_new] = of_key.try_emplace(row.key, next_token_);
    if (!is_new) {
      chains_.at(found->second).rows.push_back(row);
      continue;
    }
    Chain chain;
    chain.key = row.key;
    chain.storage = due.storage;
    chain.rows.push_back(row);
    const std::uint64_t key = gate_key(row.key, row.event.seq);
    if (!gate_.blocked(key)) gate_.found(key);
    chain.waits_for_stream = options_.keys_in_flight && gate_.may_be_in_flight(key);
    chains_.emplace(next_token_++, std::move(chain));
  }
  std::erase_if(storages_, [](const auto& storage) { return storage.expired(); });
  if (due.storage) storages_.push_back(due.storage);
  if (remembered_.empty()) return;
  for (auto chain = chains_.lower_bound(first); chain != chains_.end(); ++chain)
    recall(chain->second, now);
  drop_done_chains(now);
}

void RetryCore::changed(TimePoint now) {
  std::erase_if(chains_, [](const auto& entry) { return !entry.second.in_flight; });
  for (auto& [token, chain] : chains_) chain.rows.resize(chain.at + 1);
  changed_while_loading_ = loading_;
  due_at(now);
}

/// Takes from the front of the chain the events that an earlier run delivered.
void RetryCore::recall(Chain& chain, TimePoint now) {
  for (; chain.at < chain.rows.size(); ++chain.at) {
    const store::ParkedRow& row = chain.row();
    const EventRef event{row.event.seq, row.event.id};
    if (remembered_.erase(event) == 0) return;
    give_delivered(subject_of(chain), now);
  }
}

RetryCore::Subject RetryCore::subject_of(const Chain& chain) {
  const store::ParkedRow& row = chain.row();
  return {.event = {row.event.seq, row.event.id},
          .key = row.key,
          .version = row.version,
          .attempts = row.attempts};
}

RetryCore::Subject RetryCore::subject_of(const LateSends::Send& send) {
  return {.event = {send.seq, send.id},
          .key = store::parked_key(send.key, send.seq),
          .version = send.version,
          .attempts = send.attempts};
}

// ---- sending

std::span<const RetryCore::Send> RetryCore::to_send(TimePoint now) {
  batch_.clear();
  now_ = now;
  judge(now);
  look_at_stream();
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

/// Two events of a key are never in flight at once, so some chains wait until the stream has no
/// event of their key in flight. The stream sends no more events of these keys. If it sets such an
/// event aside, the chain is dropped, and is read again when that event has ended.
void RetryCore::look_at_stream() {
  const auto waits = [](const auto& entry) { return entry.second.waits_for_stream; };
  if (std::none_of(chains_.begin(), chains_.end(), waits)) return;
  Keys keys;
  add_keys_set_aside(keys);
  std::erase_if(chains_, [&](const auto& entry) {
    return entry.second.waits_for_stream && keys.contains(entry.second.key);
  });
  keys.clear();
  options_.keys_in_flight(keys);
  for (auto& [token, chain] : chains_) {
    if (!chain.waits_for_stream || keys.contains(chain.key)) continue;
    chain.waits_for_stream = false;
    gate_.is_not_in_flight(chain.key);
  }
}

/// Suspects are sent one at a time. A gapless sink stops at a failure, so it gets a suspect only
/// with nothing else in flight. Returns true if nothing else may be sent now.
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
    if (options_.meter != nullptr) options_.meter->ended_late(outcome.kind);
    gate_.late.ended(event.seq, outcome);
    return sink_.late(outcome, event, now);
  }
  const auto found = chains_.find(outcome.token);
  if (found == chains_.end() || !found->second.in_flight) return;
  Chain& chain = found->second;
  const store::ParkedRow& row = chain.row();
  chain.in_flight = false;
  if (options_.meter != nullptr)
    options_.meter->ended(outcome.kind, row.event, options_.meter->now() - chain.sent_at, true);
  switch (outcome.kind) {
    case Outcome::Kind::acked: {
      suspects_.erase(row.event.seq);
      give_delivered(subject_of(chain), now);
      go_to_next(found, now);
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

/// The next event of the chain gets a token of its own, because a faulty sink may report the event
/// before it twice. This looks at no other chain, because it is called for each outcome.
void RetryCore::go_to_next(Chains::iterator chain, TimePoint now) {
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

/// A gapless sink also reports events as failed that it did not send because of another event.
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

/// The event failed by its own fault, or was postponed.
void RetryCore::failed(Chain& chain, const Outcome& outcome, TimePoint now) {
  give_failed(subject_of(chain), outcome, now);
  // The events behind it wait on. Behind a dead event they wait until its death is written, because
  // another relay may still deliver it.
  chain.at = chain.rows.size();
}

void RetryCore::give_failed(const Subject& subject, const Outcome& outcome, TimePoint now) {
  const std::int64_t seq = subject.event.seq;
  const store::Verdict next = store::verdict(options_.rules.policy, outcome, subject.attempts, seq);
  store::RetryResult result;
  result.state = next.state;
  result.attempts = next.attempts;
  result.due_in = next.due_in;
  result.error = outcome.error.text();
  if (next.state == store::ParkedState::dead) suspects_.erase(seq);
  give(std::move(result), subject, now);
  // The row is not read back before the result is written.
  if (next.state == store::ParkedState::ready) runs(seq, subject.key);
}

/// Takes the outcomes of sends that still ran when their event was set aside.
void RetryCore::take_late(TimePoint now) {
  for (const LateSends::Send& late : gate_.late.take_ended()) {
    const Subject subject = subject_of(late);
    if (late.outcome->kind == Outcome::Kind::acked) {
      give_delivered(subject, now);
    } else if (late.outcome->kind == Outcome::Kind::rejected ||
               late.outcome->kind == Outcome::Kind::postponed) {
      give_failed(subject, *late.outcome, now);
    } else if (late.run > 0 && options_.worker) {
      store::RetryResult given_back;
      given_back.state = store::ParkedState::retrying;
      given_back.attempts = late.attempts;
      given_back.error = late.outcome->error.text();
      give(std::move(given_back), subject, now);
    } else {
      due_at(now);
    }
  }
}

/// Sets slow events aside. What waits behind such an event in its chain is read again once its row
/// is gone.
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
                               .key = gate_key(chain.key, row.event.seq),
                               .version = row.version,
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
  give(std::move(running), subject_of(send), now);
  ended_.back().began_to_run = send.seq;
}

void RetryCore::kept(const LateSends::Send& send, TimePoint now) {
  // Sends of the stream have tokens of their own, which may be the same without the prefix.
  if ((send.token & options_.token_prefix) != 0) late_.erase(send.token & ~options_.token_prefix);
  runs_.emplace(send.seq, store::parked_key(send.key, send.seq));
  due_at(now + std::chrono::duration_cast<TimePoint::duration>(options_.look_at_runs));
}

void RetryCore::give_delivered(const Subject& subject, TimePoint now) {
  store::RetryResult delivered;
  delivered.attempts = subject.attempts + 1;
  give(std::move(delivered), subject, now);
}

void RetryCore::give(store::RetryResult result, const Subject& subject, TimePoint now) {
  const bool acked = !result.state;
  const EventRef& event = subject.event;
  ended_.push_back({.key = gate_key(subject.key, event.seq),
                    .leaves = acked || result.state == store::ParkedState::dead,
                    .acked = acked ? std::optional(event) : std::nullopt});
  result.subscription = options_.subscription;
  result.generation = options_.generation;
  result.seq = event.seq;
  result.id = event.id;
  result.key = subject.key;
  result.version = subject.version;
  results_.push_back(std::move(result));
  given_.insert(subject.key);
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
    if (ended.leaves) gate_.left();
    // The event behind this one may be the first of its key now.
    if (ended.leaves && gate_.blocked(ended.key)) due_at(now);
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
