#include "relay/offering.hpp"

#include <algorithm>
#include <cstring>

#include "event/key.hpp"

namespace outbox::relay {
namespace {

bool is_refusal(const Outcome& outcome) {
  return outcome.kind == Outcome::Kind::rejected && outcome.unsent;
}

bool has_stopped_sink(const Outcome& outcome) {
  return outcome.kind != Outcome::Kind::acked && !is_refusal(outcome);
}

bool same_key(const EventView& one, const EventView& other) {
  return one.aggregate_id == other.aggregate_id && one.aggregate_type == other.aggregate_type;
}

}  // namespace

std::size_t Offering::offer(std::span<const Message> messages, std::vector<Outcome>& outcomes) {
  kept_back_.clear();
  keys_.clear();
  if (!goes_on_) return sink_.send(messages);
  keeps_back_.assign(messages.size(), 0);
  std::size_t done = 0;
  while (done < messages.size()) {
    if (keeps_back_[done] != 0) {
      kept_back_.push_back(messages[done++].token);
      continue;
    }
    const auto* const next = static_cast<const std::uint8_t*>(
        std::memchr(&keeps_back_[done], 1, messages.size() - done));
    const std::size_t end =
        next == nullptr ? messages.size() : static_cast<std::size_t>(next - keeps_back_.data());
    const std::size_t taken = sink_.send(messages.subspan(done, end - done));
    done += taken;
    if (taken == 0 || done == messages.size()) break;
    // The outcome of a refused message is available at once.
    const std::size_t known = outcomes.size();
    sink_.receive(outcomes);
    const auto fresh = std::span(outcomes).subspan(known);
    if (std::any_of(fresh.begin(), fresh.end(), has_stopped_sink)) break;
    const bool refused = std::any_of(fresh.begin(), fresh.end(), [&](const Outcome& outcome) {
      return outcome.token == messages[done - 1].token && is_refusal(outcome);
    });
    if (!refused && done < end) break;
    if (refused) keep_back_key(messages, done - 1);
  }
  return done;
}

void Offering::keep_back_key(std::span<const Message> messages, std::size_t refused) {
  if (keys_.empty()) {
    keys_.reserve(messages.size());
    for (const Message& message : messages)
      keys_.push_back(event::key_hash(message.event->aggregate_type, message.event->aggregate_id));
  }
  const std::uint64_t key = keys_[refused];
  if (key == 0) return;
  for (std::size_t place = refused + 1; place < messages.size(); ++place) {
    if (keys_[place] == key && same_key(*messages[place].event, *messages[refused].event))
      keeps_back_[place] = 1;
  }
}

}  // namespace outbox::relay
