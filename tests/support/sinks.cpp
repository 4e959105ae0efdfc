#include "support/sinks.hpp"

#include <algorithm>
#include <utility>

#include "support/shop_options.hpp"

namespace outbox::test {

Delivery to_delivery(const Message& message) {
  Delivery delivery;
  delivery.body = std::string(message.body);
  delivery.id = id_in(delivery.body);
  delivery.key = message.key ? std::string(*message.key) : std::string();
  return delivery;
}

std::vector<Delivery> to_deliveries(const testing::Recording& recording) {
  std::vector<Delivery> all;
  for (const testing::RecordedEvent& event : recording.events()) {
    all.push_back({.id = id_in(event.body), .key = event.key, .body = event.body});
  }
  return all;
}

std::size_t SlowSink::deliver(std::span<const Message> batch, Outcome& /*failure*/) {
  for (const Message& message : batch) {
    std::this_thread::sleep_for(each_);
    destination_->arrive(to_delivery(message));
  }
  return batch.size();
}

ScatterSink::ScatterSink(std::shared_ptr<Arrivals> destination, ScatterOptions options)
    : destination_(std::move(destination)), options_(options) {
  for (int number = 0; number < options_.threads; ++number) {
    threads_.emplace_back([this, number](const std::stop_token& stop) {
      work(options_.seed + static_cast<std::uint64_t>(number), stop);
    });
  }
}

ScatterSink::~ScatterSink() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

SinkTraits ScatterSink::traits() const noexcept {
  return {.name = "scatter",
          .gapless = false,
          .max_batch = 20,
          .max_in_flight = options_.max_in_flight};
}

std::size_t ScatterSink::send(std::span<const Message> messages) {
  const std::scoped_lock lock(mutex_);
  for (const Message& message : messages) {
    pending_.push_back({.token = message.token, .delivery = to_delivery(message)});
  }
  changed_.notify_all();
  return messages.size();
}

void ScatterSink::work(std::uint64_t seed, const std::stop_token& stop) {
  Random random(seed);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, stop, [this] { return !pending_.empty(); });
    if (stop.stop_requested()) return;
    // The thread takes one of the first few messages, so that messages overtake each other.
    const auto at = pending_.begin() + static_cast<std::ptrdiff_t>(
                                           random.below(std::min<std::size_t>(pending_.size(), 8)));
    const Pending taken = std::move(*at);
    pending_.erase(at);
    ++in_hand_;
    lock.unlock();
    random.dawdle(options_.longest);
    const bool fails = random.chance(options_.fail_percent);
    if (!fails) destination_->arrive(taken.delivery);
    lock.lock();
    Outcome outcome;
    outcome.token = taken.token;
    outcome.kind = fails ? Outcome::Kind::retry : Outcome::Kind::acked;
    outcomes_.push_back(std::move(outcome));
    --in_hand_;
    lock.unlock();
    changed_.notify_all();
    wake();
    lock.lock();
  }
}

void ScatterSink::receive(std::vector<Outcome>& outcomes) {
  const std::scoped_lock lock(mutex_);
  outcomes.insert(outcomes.end(), outcomes_.begin(), outcomes_.end());
  outcomes_.clear();
}

void ScatterSink::purge() {
  std::unique_lock lock(mutex_);
  for (const Pending& pending : pending_) {
    Outcome outcome;
    outcome.token = pending.token;
    outcome.kind = Outcome::Kind::retry;
    outcomes_.push_back(std::move(outcome));
  }
  pending_.clear();
  // Deliveries that are running end soon.
  changed_.wait(lock, [this] { return in_hand_ == 0; });
}

std::size_t HoldingSink::send(std::span<const Message> messages) {
  for (const Message& message : messages) held_.emplace_back(message.token, to_delivery(message));
  return messages.size();
}

void HoldingSink::end(std::vector<Outcome>& outcomes, Outcome::Kind kind) {
  for (auto& [token, delivery] : held_) {
    Outcome outcome;
    outcome.token = token;
    outcome.kind = kind;
    if (kind == Outcome::Kind::acked) destination_->arrive(std::move(delivery));
    outcomes.push_back(std::move(outcome));
  }
  held_.clear();
}

void HoldingSink::receive(std::vector<Outcome>& outcomes) {
  outcomes.insert(outcomes.end(), purged_.begin(), purged_.end());
  purged_.clear();
  if (*released_) end(outcomes, Outcome::Kind::acked);
}

void HoldingSink::purge() { end(purged_, Outcome::Kind::retry); }

}  // namespace outbox::test
