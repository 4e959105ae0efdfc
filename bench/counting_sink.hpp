// A destination that takes its time for each batch and counts what it got.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <outbox/sink.hpp>
#include <thread>
#include <utility>

namespace outbox::bench {

using Count = std::shared_ptr<std::atomic<std::int64_t>>;

class CountingSink final : public BatchSink {
 public:
  CountingSink(Count taken, std::size_t batch, std::chrono::microseconds each)
      : taken_(std::move(taken)), batch_(batch), each_(each) {}
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "counting", .gapless = true, .max_batch = batch_};
  }
  [[nodiscard]] Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& /*failure*/) override {
    if (each_.count() > 0) std::this_thread::sleep_for(each_);
    taken_->fetch_add(static_cast<std::int64_t>(batch.size()), std::memory_order_relaxed);
    return batch.size();
  }

 private:
  Count taken_;
  const std::size_t batch_;
  const std::chrono::microseconds each_;
};

}  // namespace outbox::bench
