// The writers of the shop: threads that make sales.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "demo/courier.hpp"
#include "demo/shop.hpp"

namespace outbox::demo {

class Writers {
 public:
  /// `dual_write` gets the orders of Tells::nobody.
  Writers(Shop& shop, Tells tells, Courier& dual_write, std::uint64_t seed)
      : shop_(shop), tells_(tells), dual_write_(dual_write), seed_(seed) {}
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;
  ~Writers() { stop(); }

  void start(int count);
  /// Stops after each writer's current sale.
  void stop();

  // These may be called by any thread.
  [[nodiscard]] std::int64_t committed() const { return committed_.load(); }
  [[nodiscard]] std::int64_t rolled_back() const { return rolled_back_.load(); }
  /// Throws the first error of a writer, if there is one.
  void check() const;

 private:
  void work(int writer, Till& till, const std::stop_token& stop);
  void sell(Till& till, Sale sale, bool publishes_early);

  Shop& shop_;
  const Tells tells_;
  Courier& dual_write_;
  const std::uint64_t seed_;
  std::atomic<std::int64_t> committed_{0};
  std::atomic<std::int64_t> rolled_back_{0};

  mutable Mutex mutex_;
  std::optional<Error> failure_ OUTBOX_GUARDED_BY(mutex_);

  std::vector<std::jthread> threads_;
};

}  // namespace outbox::demo
