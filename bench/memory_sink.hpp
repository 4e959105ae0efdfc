// Destinations in memory, for relays whose own work is measured.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <outbox/sink.hpp>
#include <thread>
#include <utility>

namespace outbox::bench {

/// A sink that does with each batch what a function says.
class MemorySink final : public BatchSink {
 public:
  /// As BatchSink::deliver(): returns how many were taken, and why the next one was not.
  using Deliver = std::function<std::size_t(std::span<const Message> batch, Outcome& failure)>;

  MemorySink(SinkTraits traits, Deliver deliver) : traits_(traits), deliver_(std::move(deliver)) {}
  [[nodiscard]] SinkTraits traits() const noexcept override { return traits_; }
  [[nodiscard]] Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& failure) override {
    return deliver_(batch, failure);
  }

 private:
  const SinkTraits traits_;
  const Deliver deliver_;
};

using Count = std::shared_ptr<std::atomic<std::int64_t>>;

/// A sink that takes its time for each batch and counts what it got.
[[nodiscard]] inline std::unique_ptr<Sink> counting_sink(Count taken, std::size_t batch,
                                                         std::chrono::microseconds each) {
  return std::make_unique<MemorySink>(
      SinkTraits{.name = "counting", .gapless = true, .max_batch = batch},
      [taken = std::move(taken), each](std::span<const Message> some, Outcome& /*failure*/) {
        if (each.count() > 0) std::this_thread::sleep_for(each);
        taken->fetch_add(static_cast<std::int64_t>(some.size()), std::memory_order_relaxed);
        return some.size();
      });
}

}  // namespace outbox::bench
