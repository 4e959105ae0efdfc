#include "sim/sink.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "event/headers.hpp"

namespace outbox::sim {

namespace {

/// The replay whose mark the event has; 0 if it has none.
std::int64_t replay_of(const EventView& event) {
  const std::string_view headers = event.headers;
  const std::size_t at = headers.find(event::kReplayHeader);
  if (at == std::string_view::npos) return 0;
  const std::size_t digit = headers.find_first_of("0123456789", at);
  return std::strtoll(std::string(headers.substr(digit)).c_str(), nullptr, 10);
}

}  // namespace

bool SimSink::send(Token token, const EventView& event) {
  if (refused_[event.seq] < refusals(event.seq)) {
    ++refused_[event.seq];
    outages.rejected(event.seq);
    ready_.push_back({.token = token, .kind = Outcome::Kind::rejected, .unsent = true});
    return false;
  }
  const bool slow = splitmix64(static_cast<std::uint64_t>(event.seq) * 37) % 100 < slow_percent &&
                    slowed_.insert(event.seq).second;
  flying_.push_back({token, event.seq, slow ? step_ + 15 + static_cast<int>(random_.below(60)) : 0,
                     replay_of(event)});
  return true;
}

void SimSink::settle_front() {
  // A sink that is not gapless may finish in any order, because the relay keeps one event per key
  // in flight.
  const std::size_t which = gapless_ ? 0 : random_.below(flying_.size());
  const InFlight message = flying_[which];
  if (message.until > step_ && !outages.is_down()) return;
  flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
  Outcome outcome;
  outcome.token = message.token;
  if (gapless_ && broken_) {
    outcome.kind = Outcome::Kind::retry;
  } else if (outages.is_down() || failed_[message.seq] < failures(message.seq)) {
    if (!outages.is_down()) ++failed_[message.seq];
    fail(message, outcome);
  } else if (poison.contains(message.seq) || rejected_[message.seq] < rejections(message.seq)) {
    ++rejected_[message.seq];
    outages.rejected(message.seq);
    outcome.kind = Outcome::Kind::rejected;
    broken_ = true;
  } else if (random_.chance(fail_percent)) {
    fail(message, outcome);
  } else {
    topic_.arrive(message.seq, message.replay);
    outcome.kind = Outcome::Kind::acked;
  }
  ready_.push_back(outcome);
  if (outcome.kind == Outcome::Kind::acked) acked_.push_back(outcome.token);
  if (lie_percent != 0 && random_.chance(lie_percent)) lie(outcome);
}

void SimSink::fail(const InFlight& message, Outcome& outcome) {
  outages.failed(message.seq);
  outcome.kind = random_.chance(50) ? Outcome::Kind::retry : Outcome::Kind::unknown;
  if (outcome.kind == Outcome::Kind::unknown && random_.chance(50))
    topic_.arrive(message.seq, message.replay);
  broken_ = true;
}

/// Reports a false outcome, but never about an event in flight. Of those a sink can only tell the
/// truth, or be in doubt.
void SimSink::lie(const Outcome& truth) {
  Outcome lie = truth;
  lie.kind = static_cast<Outcome::Kind>(random_.below(4));
  const std::uint64_t dice = random_.below(3);
  if (dice == 0) lie.token = truth.token + 1'000'000;
  if (dice == 1) lie.token = 0;
  if (dice == 2) {
    if (acked_.empty()) return;
    lie.token = acked_[random_.below(acked_.size())];
  }
  ready_.push_back(lie);
  ++lies;
}

void SimSink::step() {
  ++step_;
  const auto count = random_.below(8);
  for (std::uint64_t i = 0; i < count && !flying_.empty(); ++i) settle_front();
}

std::vector<Outcome> SimSink::receive() { return std::exchange(ready_, {}); }

void SimSink::crash() {
  const auto arriving = flying_.empty() ? 0 : random_.below(flying_.size() + 1);
  for (std::uint64_t i = 0; i < arriving && !broken_; ++i) {
    if (poison.contains(flying_[i].seq) || rejections(flying_[i].seq) > 0) break;
    topic_.arrive(flying_[i].seq, flying_[i].replay);
  }
  flying_.clear();
  ready_.clear();
}

void SimSink::purge() {
  std::vector<Outcome> purged = std::exchange(ready_, {});
  for (const InFlight& message : flying_) {
    purged.push_back({.token = message.token, .kind = Outcome::Kind::unknown});
    acked_.push_back(message.token);
  }
  crash();
  ready_ = std::move(purged);
}

bool SimSink::has_in_flight(std::int64_t seq) const {
  return std::any_of(flying_.begin(), flying_.end(),
                     [seq](const InFlight& message) { return message.seq == seq; });
}

int SimSink::rejections(std::int64_t seq) const {
  const std::uint64_t dice = splitmix64(static_cast<std::uint64_t>(seq) * 31);
  if (dice % 100 >= reject_percent) return 0;
  return (dice >> 32U) % 4 == 0 ? 1'000'000 : 1 + static_cast<int>((dice >> 40U) % 3);
}

int SimSink::refusals(std::int64_t seq) const {
  const std::uint64_t dice = splitmix64(static_cast<std::uint64_t>(seq) * 43);
  if (dice % 100 >= refuse_percent) return 0;
  return (dice >> 32U) % 4 == 0 ? 1'000'000 : 1 + static_cast<int>((dice >> 40U) % 3);
}

int SimSink::failures(std::int64_t seq) const {
  const std::uint64_t dice = splitmix64(static_cast<std::uint64_t>(seq) * 41);
  if (dice % 100 >= sick_percent) return 0;
  return (dice >> 32U) % 4 == 0 ? 1'000'000 : 1 + static_cast<int>((dice >> 40U) % 8);
}

}  // namespace outbox::sim
