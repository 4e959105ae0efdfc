// The shop's staff: threads that sell.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <outbox/error.hpp>
#include <random>
#include <thread>
#include <vector>

#include "demo/courier.hpp"
#include "demo/shop.hpp"

namespace outbox::demo {

class Writers {
 public:
  /// `dual_write`: hand orders to this courier instead of writing events; null: an outbox.
  Writers(Shop& shop, Courier* dual_write, std::uint64_t seed)
      : shop_(shop), dual_write_(dual_write), seed_(seed) {}
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;
  Writers(Writers&&) = delete;
  Writers& operator=(Writers&&) = delete;
  ~Writers() { stop(); }

  [[nodiscard]] Status start(int count);
  /// Each finishes the sale it is at.
  void stop();

  // Any thread.
  [[nodiscard]] std::int64_t committed() const {
    return committed_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t rolled_back() const {
    return rolled_back_.load(std::memory_order_relaxed);
  }
  /// What ended one of them early, if something did.
  [[nodiscard]] std::optional<Error> failure() const;

 private:
  struct Sale {
    Order order;
    bool committed{true};         ///< Else it is rolled back at the last moment.
    bool publishes_early{false};  ///< Of a dual write: before the commit, not after it.
  };

  void work(int writer, Till& till, const std::stop_token& stop);
  [[nodiscard]] Status sell(Till& till, Sale sale);

  Shop& shop_;
  Courier* const dual_write_;
  const std::uint64_t seed_;
  std::atomic<std::int64_t> committed_{0};
  std::atomic<std::int64_t> rolled_back_{0};

  mutable std::mutex mutex_;
  std::condition_variable_any bell_;
  std::optional<Error> failure_;

  std::vector<std::unique_ptr<Till>> tills_;
  std::vector<std::jthread> threads_;
};

}  // namespace outbox::demo
