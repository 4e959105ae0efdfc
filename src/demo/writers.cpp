#include "demo/writers.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/thread.hpp"

namespace outbox::demo {
namespace {

constexpr int kRolledBackOneIn = 10;
/// Between two sales, so that the relay gets some CPU time.
constexpr int kLongestPauseUs = 2000;
constexpr int kMostCents = 20000;

int pick(std::mt19937_64& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

}  // namespace

void Writers::start(int count) {
  for (int writer = 0; writer < count; ++writer) tills_.push_back(shop_.till());
  for (int writer = 0; writer < count; ++writer) {
    Till& till = *tills_[static_cast<std::size_t>(writer)];
    threads_.push_back(start_thread(
        fmt::format("ob-writer-{}", writer),
        [this, writer, &till](const std::stop_token& stop) { work(writer, till, stop); }));
  }
}

void Writers::stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  tills_.clear();
}

void Writers::check() const {
  const MutexLock lock(mutex_);
  if (failure_) throw Exception(*failure_);
}

void Writers::work(int writer, Till& till, const std::stop_token& stop) {
  std::mt19937_64 random(seed_ + static_cast<std::uint64_t>(writer));
  try {
    for (int number = 1; !stop.stop_requested(); ++number) {
      sell(till, {.order = {.reference = fmt::format("{}-{:06}", writer + 1, number),
                            .customer = pick(random, 1, kCustomers),
                            .version = 0,
                            .cents = pick(random, 100, kMostCents)},
                  .committed = pick(random, 1, kRolledBackOneIn) != 1,
                  .publishes_early = writer % 2 == 0});
      std::this_thread::sleep_for(std::chrono::microseconds(pick(random, 0, kLongestPauseUs)));
    }
  } catch (const Exception& failure) {
    till.roll_back();
    const MutexLock lock(mutex_);
    if (!failure_) failure_ = failure.error();
  }
}

void Writers::sell(Till& till, Sale sale) {
  Order& order = sale.order;
  till.begin(order);
  if (dual_write_ == nullptr) {
    till.enqueue(order);
  } else if (sale.publishes_early) {
    (void)dual_write_->publish(order);
  }
  if (!sale.committed) {
    till.roll_back();
    rolled_back_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  till.commit();
  committed_.fetch_add(1, std::memory_order_relaxed);
  if (dual_write_ != nullptr && !sale.publishes_early) (void)dual_write_->publish(order);
}

}  // namespace outbox::demo
