#include "demo/writers.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/thread.hpp"

namespace outbox::demo {
namespace {

constexpr int kRolledBackOneIn = 10;
/// Customers think. It also leaves the machine some time for the relay.
constexpr int kLongestPauseUs = 2000;
constexpr int kMostCents = 20000;

int pick(std::mt19937_64& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

}  // namespace

Status Writers::start(int count) {
  for (int writer = 0; writer < count; ++writer) {
    auto till = shop_.till();
    if (!till) return tl::unexpected<Error>(std::move(till.error()));
    tills_.push_back(std::move(*till));
  }
  for (int writer = 0; writer < count; ++writer) {
    Till& till = *tills_[static_cast<std::size_t>(writer)];
    threads_.push_back(start_thread(
        fmt::format("ob-writer-{}", writer),
        [this, writer, &till](const std::stop_token& stop) { work(writer, till, stop); }));
  }
  return {};
}

void Writers::stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  tills_.clear();
}

std::optional<Error> Writers::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void Writers::work(int writer, Till& till, const std::stop_token& stop) {
  std::mt19937_64 random(seed_ + static_cast<std::uint64_t>(writer));
  for (int number = 1; !stop.stop_requested(); ++number) {
    Status status = sell(till, {.order = {.reference = fmt::format("{}-{:06}", writer + 1, number),
                                          .customer = pick(random, 1, kCustomers),
                                          .version = 0,
                                          .cents = pick(random, 100, kMostCents)},
                                .committed = pick(random, 1, kRolledBackOneIn) != 1,
                                .publishes_early = writer % 2 == 0});
    const auto pause = std::chrono::microseconds(pick(random, 0, kLongestPauseUs));
    std::unique_lock lock(mutex_);
    if (!status) {
      if (!failure_) failure_ = std::move(status.error());
      return;
    }
    (void)bell_.wait_for(lock, stop, pause, [] { return false; });
  }
}

Status Writers::sell(Till& till, Sale sale) {
  Order& order = sale.order;
  if (Status status = till.begin(order); !status) return status;
  if (dual_write_ == nullptr) {
    if (Status status = till.enqueue(order); !status) return status;
  } else if (sale.publishes_early) {
    (void)dual_write_->publish(order);
  }
  if (!sale.committed) {
    till.roll_back();
    rolled_back_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  if (Status status = till.commit(); !status) return status;
  committed_.fetch_add(1, std::memory_order_relaxed);
  if (dual_write_ != nullptr && !sale.publishes_early) (void)dual_write_->publish(order);
  return {};
}

}  // namespace outbox::demo
