#include "mini_relay.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace outbox::conformance {
namespace {

/// As often as the contract promises while something is in flight.
constexpr std::chrono::milliseconds kLookAgain{50};
constexpr std::size_t kBatch = 1000;
constexpr std::chrono::seconds kOfferLimit{10};

}  // namespace

MiniRelay::MiniRelay(Sink& sink, const Load& load)
    : sink_(sink), load_(load), state_(load.size(), State::ready) {
  sink_.on_ready([this] {
    {
      const std::scoped_lock lock(mutex_);
      rung_ = true;
    }
    bell_.notify_one();
  });
}

MiniRelay::~MiniRelay() { sink_.on_ready({}); }

bool MiniRelay::may_offer(std::size_t place, bool gapless) const {
  if (state_[place] != State::ready) return false;
  const auto& key = load_.item(place).key;
  return gapless || !key || !keys_held_.contains(*key);
}

std::size_t MiniRelay::offer(std::size_t most) {
  std::vector<Message> messages;
  std::vector<std::size_t> offered;
  std::set<std::string> keys;  // a later message of a key that is among them waits
  const auto traits = sink_.traits();
  const auto over = [this](State s) { return s == State::acked || s == State::rejected; };
  while (!traits.gapless && next_ < load_.size() && over(state_[next_])) ++next_;
  most = std::min({most, traits.max_batch,
                   traits.max_in_flight - std::min(traits.max_in_flight, in_flight_.size())});
  for (std::size_t place = next_; place < load_.size() && messages.size() < most; ++place) {
    if (!may_offer(place, traits.gapless)) continue;
    const auto& key = load_.item(place).key;
    if (!traits.gapless && key && !keys.insert(*key).second) continue;
    messages.push_back(load_.message(place, ++last_token_));
    offered.push_back(place);
  }
  if (messages.empty()) return 0;
  const auto until = Clock::now() + kOfferLimit;
  std::size_t taken = sink_.send(messages);
  while (taken == 0 && in_flight_.empty() && !failed_ && Clock::now() < until) {
    wait_for_bell();
    taken = sink_.send(messages);
  }
  EXPECT_LE(taken, messages.size());
  for (std::size_t i = 0; i < taken; ++i) {
    state_[offered[i]] = State::in_flight;
    in_flight_.emplace(messages[i].token, offered[i]);
    if (!traits.gapless && messages[i].key) keys_held_.insert(*load_.item(offered[i]).key);
  }
  if (taken > 0 && traits.gapless) next_ = offered[taken - 1] + 1;
  return taken;
}

void MiniRelay::offer_all() {
  while (offer(kBatch) > 0) {
  }
}

void MiniRelay::press_on(std::size_t batch) {
  const auto may_go_on = [this] { return !failed_ && next_ < load_.size() && !in_flight_.empty(); };
  while (offer(batch) > 0 || (may_go_on() && drain())) {
  }
}

void MiniRelay::receive() {
  outcomes_.clear();
  sink_.receive(outcomes_);
  for (const Outcome& outcome : outcomes_) settle(outcome);
}

void MiniRelay::settle(const Outcome& outcome) {
  const auto found = in_flight_.find(outcome.token);
  if (found == in_flight_.end()) {
    ADD_FAILURE() << "an outcome for a message that is not in flight: token " << outcome.token
                  << " " << to_string(outcome.kind);
    return;
  }
  const std::size_t place = found->second;
  in_flight_.erase(found);
  if (outcome.kind == Outcome::Kind::acked) {
    state_[place] = State::acked;
    ++acked_count_;
    if (load_.item(place).key) keys_held_.erase(*load_.item(place).key);
    return;
  }
  const bool rejected = outcome.kind == Outcome::Kind::rejected;
  if (rejected && outcome.unsent) {
    if (load_.item(place).key) keys_held_.erase(*load_.item(place).key);
  } else {
    failed_ = true;
  }
  state_[place] = rejected ? State::rejected : State::ready;
  failures_.push_back({.place = place, .outcome = outcome});
}

void MiniRelay::wait_for_bell() {
  std::unique_lock lock(mutex_);
  bell_.wait_for(lock, kLookAgain, [this] { return rung_; });
  rung_ = false;
}

bool MiniRelay::drain(std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  receive();
  while (!in_flight_.empty()) {
    if (Clock::now() > until) return false;
    wait_for_bell();
    receive();
  }
  return true;
}

void MiniRelay::rewind() {
  next_ = 0;
  keys_held_.clear();
  failed_ = false;
}

bool MiniRelay::reopen(Clock::time_point until) {
  while (true) {
    const Status status = sink_.open();
    if (status) break;
    if (Clock::now() > until) return false;
    wait_for_bell();
  }
  ++reopened_;
  rewind();
  return true;
}

bool MiniRelay::deliver_first(std::size_t count, std::size_t batch,
                              std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  while (acked_count_ < count) {
    if (Clock::now() > until) return false;
    if (failed_ && !reopen(until)) return false;
    offer(batch);
    if (!drain()) return false;
  }
  return true;
}

bool MiniRelay::deliver(std::chrono::milliseconds limit, const std::function<void()>& on_failure) {
  const auto until = Clock::now() + limit;
  if (!reopen(until)) return false;
  const auto done = [this] {
    return std::all_of(state_.begin(), state_.end(),
                       [](State s) { return s == State::acked || s == State::rejected; });
  };
  while (!done()) {
    if (Clock::now() > until) return false;
    if (failed_) {
      if (!drain()) return false;
      if (on_failure) on_failure();
      if (!reopen(until)) return false;
    }
    const std::size_t taken = offer(kBatch);
    receive();
    if (taken == 0 && !failed_ && !in_flight_.empty()) {
      wait_for_bell();
      receive();
    }
  }
  return true;
}

std::size_t MiniRelay::in_doubt() const {
  return static_cast<std::size_t>(std::ranges::count_if(failures_, [](const auto& failure) {
    return failure.outcome.kind == Outcome::Kind::unknown;
  }));
}

std::vector<std::size_t> MiniRelay::rejected() const {
  std::vector<std::size_t> found;
  for (std::size_t place = 0; place < state_.size(); ++place) {
    if (state_[place] == State::rejected) found.push_back(place);
  }
  return found;
}

}  // namespace outbox::conformance
