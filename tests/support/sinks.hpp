// Sinks in memory, for relays inside the test program.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <outbox/sink.hpp>
#include <outbox/testing.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/ledger.hpp"
#include "support/random.hpp"

namespace outbox::test {

/// The deliveries in the order of arrival. Any thread may use it. It outlives the sinks that write
/// to it.
class Arrivals {
 public:
  void arrive(Delivery delivery) {
    const std::scoped_lock lock(mutex_);
    deliveries_.push_back(std::move(delivery));
  }
  [[nodiscard]] std::vector<Delivery> all() const {
    const std::scoped_lock lock(mutex_);
    return deliveries_;
  }
  [[nodiscard]] std::size_t count() const {
    const std::scoped_lock lock(mutex_);
    return deliveries_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Delivery> deliveries_;
};

[[nodiscard]] Delivery to_delivery(const Message& message);
[[nodiscard]] std::vector<Delivery> to_deliveries(const testing::Recording& recording);

/// A gapless sink that takes a fixed time per message.
class SlowSink final : public BatchSink {
 public:
  SlowSink(std::shared_ptr<Arrivals> destination, std::chrono::microseconds each)
      : destination_(std::move(destination)), each_(each) {}
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "slow", .gapless = true, .max_batch = 50};
  }
  [[nodiscard]] Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& failure) override;

 private:
  std::shared_ptr<Arrivals> destination_;
  std::chrono::microseconds each_;
};

struct ScatterOptions {
  std::chrono::microseconds longest{3000};
  int threads{4};
  std::size_t max_in_flight{50};
  int fail_percent{0};  ///< How many fail with `retry`, without having arrived.
  std::uint64_t seed{7};
};

/// A sink that is not gapless. Several threads deliver in any order, so only the gate of the relay
/// keeps a key in order.
class ScatterSink final : public Sink {
 public:
  ScatterSink(std::shared_ptr<Arrivals> destination, ScatterOptions options);
  ~ScatterSink() override;
  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override { return {}; }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void receive(std::vector<Outcome>& outcomes) override;
  void purge() override;
  void close() noexcept override {}

 private:
  struct Pending {
    Token token{0};
    Delivery delivery;
  };
  void work(std::uint64_t seed, const std::stop_token& stop);

  std::shared_ptr<Arrivals> destination_;
  const ScatterOptions options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Pending> pending_;
  int in_hand_{0};
  std::vector<Outcome> outcomes_;
  std::vector<std::jthread> threads_;
};

/// Takes everything and returns no outcome until it is released or purged.
class HoldingSink final : public Sink {
 public:
  /// Once `released` is true, everything is acked.
  HoldingSink(std::shared_ptr<Arrivals> destination, std::shared_ptr<std::atomic<bool>> released)
      : destination_(std::move(destination)), released_(std::move(released)) {}
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "holding", .gapless = true};
  }
  [[nodiscard]] Status open() override { return {}; }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void receive(std::vector<Outcome>& outcomes) override;
  void purge() override;
  void close() noexcept override {}

 private:
  void end(std::vector<Outcome>& outcomes, Outcome::Kind kind);

  std::shared_ptr<Arrivals> destination_;
  std::shared_ptr<std::atomic<bool>> released_;
  std::vector<std::pair<Token, Delivery>> held_;
  std::vector<Outcome> purged_;
};

}  // namespace outbox::test
