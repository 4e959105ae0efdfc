#include "relay/retry_core.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"

namespace outbox::relay {

RetryCore::RetryCore(RetryOptions options, SinkState& sink, KeyGate& gate)
    : options_(std::move(options)), sink_(sink), gate_(gate), next_token_(options_.first_token) {}

// ---- reading

void RetryCore::due_at(TimePoint when) { due_ = due_ ? std::min(*due_, when) : when; }

bool RetryCore::wants_load(TimePoint now) const {
  // Everything that was read before is written, so that it is not read again.
  return due_ && *due_ <= now && chains_.empty() && results_.empty() && writing_.empty() &&
         !loading_ && !stopping_ && sink_.may_send();
}

/// What becomes due from now on may be missing from the answer.
void RetryCore::load_asked() {
  loading_ = true;
  due_.reset();
}

void RetryCore::loaded(store::DueEvents due, TimePoint now) {
  loading_ = false;
  if (due.next_in) due_at(now + std::chrono::duration_cast<TimePoint::duration>(*due.next_in));
  if (!due.rows.empty()) due_at(now);  // there may be more
  storage_ = std::move(due.storage);
  std::unordered_map<std::uint64_t, Token> of_key;
  for (auto& row : due.rows) {
    const std::uint64_t key = event::key_hash(row.event.aggregate_type, row.event.aggregate_id);
    const auto found = key == 0 ? of_key.end() : of_key.find(key);
    if (found != of_key.end()) {
      chains_.at(found->second).rows.push_back(std::move(row));
      continue;
    }
    if (key != 0) of_key.emplace(key, next_token_);
    Chain chain;
    chain.key = key;
    chain.rows.push_back(std::move(row));
    chains_.emplace(next_token_++, std::move(chain));
  }
}

// ---- sending

std::span<const RetryCore::Send> RetryCore::to_send() {
  batch_.clear();
  if (stopping_ || !sink_.may_send()) return {};
  for (auto& [token, chain] : chains_) {
    if (batch_.size() >= options_.max_batch) break;
    if (!chain.in_flight && chain.at < chain.rows.size())
      batch_.push_back({.token = token, .event = &chain.rows[chain.at].event});
  }
  return batch_;
}

void RetryCore::handed_over(std::size_t count) {
  OUTBOX_CHECK(count <= batch_.size());
  for (std::size_t i = 0; i < count; ++i) {
    Chain& chain = chains_.at(batch_[i].token);
    chain.in_flight = true;
    chain.accepted_before = sink_.accepted();
  }
  sink_.sent(count);
}

void RetryCore::outcome(const Outcome& outcome, TimePoint now) {
  const auto found = chains_.find(outcome.token);
  if (found == chains_.end() || !found->second.in_flight) return;
  Chain& chain = found->second;
  const store::ParkedRow& row = chain.rows[chain.at];
  chain.in_flight = false;
  switch (outcome.kind) {
    case Outcome::Kind::acked: {
      store::RetryResult delivered;
      delivered.attempts = row.attempts + 1;
      give(std::move(delivered), chain, true, now);
      next_of(found);
      sink_.acked(now);
      break;
    }
    case Outcome::Kind::rejected:
      sink_.retry_failed(options_.gapless, now);
      failed(chain, outcome.error, now);
      break;
    case Outcome::Kind::retry:
    case Outcome::Kind::unknown: {
      const bool others_succeed = sink_.accepted() != chain.accepted_before;
      if (!others_succeed || options_.gapless) {
        sink_.failed(outcome, row.event, now);
      } else {
        sink_.retry_failed(false, now);
        failed(chain, outcome.error, now);
      }
      break;
    }
    case Outcome::Kind::blocked: sink_.failed(outcome, row.event, now); break;
  }
  drop_done_chains();
}

/// Under a token of its own: a faulty sink may report the one before it twice.
void RetryCore::next_of(std::map<Token, Chain>::iterator chain) {
  ++chain->second.at;
  auto node = chains_.extract(chain);
  node.key() = next_token_++;
  chains_.insert(std::move(node));
}

/// By its own fault: one attempt more.
void RetryCore::failed(Chain& chain, const Error& error, TimePoint now) {
  const store::ParkedRow& row = chain.rows[chain.at];
  store::RetryResult result;
  result.attempts = row.attempts + 1;
  result.error = error.text();
  const auto pause =
      options_.rules.policy.pause_after(result.attempts, static_cast<std::uint64_t>(row.event.seq));
  result.state = pause ? store::ParkedState::retrying : store::ParkedState::dead;
  result.due_in = pause.value_or(std::chrono::milliseconds(0));
  give(std::move(result), chain, !pause && !options_.rules.dead_blocks, now);
  // What waits behind it waits on; of a dead one until that is written: another relay may still deliver it.
  chain.at = chain.rows.size();
}

void RetryCore::give(store::RetryResult result, const Chain& chain, bool releases, TimePoint now) {
  const EventView& event = chain.rows[chain.at].event;
  result.subscription = options_.subscription;
  result.generation = options_.generation;
  result.seq = event.seq;
  result.id = event.id;
  results_.push_back(std::move(result));
  ended_.push_back({.key = chain.key, .releases = releases});
  if (!oldest_result_) oldest_result_ = now;
}

void RetryCore::drop_done_chains() {
  std::erase_if(chains_, [](const auto& entry) {
    return entry.second.at == entry.second.rows.size() && !entry.second.in_flight;
  });
  if (chains_.empty()) storage_.reset();
}

// ---- writing

std::vector<store::RetryResult> RetryCore::results(TimePoint now) {
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
    if (ended.releases) gate_.remove(ended.key);
    // What waited behind it may be the first of its key now.
    if (ended.releases && gate_.blocked(ended.key)) due_at(now);
  }
}

std::optional<TimePoint> RetryCore::next_at() const {
  if (!writing_.empty() || loading_) return {};
  if (oldest_result_)
    return *oldest_result_ +
           std::chrono::duration_cast<TimePoint::duration>(options_.write_interval);
  return sink_.may_send() && !stopping_ && chains_.empty() ? due_ : std::nullopt;
}

bool RetryCore::finished() const {
  const bool in_flight = std::any_of(chains_.begin(), chains_.end(),
                                     [](const auto& entry) { return entry.second.in_flight; });
  return stopping_ && !in_flight && results_.empty() && writing_.empty();
}

}  // namespace outbox::relay
