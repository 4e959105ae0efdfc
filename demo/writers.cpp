#include "demo/writers.hpp"

#include <fmt/format.h>

#include <memory>
#include <random>

#include "base/thread.hpp"

namespace outbox::demo {
namespace {

constexpr int kRolledBackOneIn = 10;
/// The longest pause between two sales, so that the relay gets some CPU time.
constexpr int kLongestPauseUs = 2000;
constexpr int kMostCents = 20000;

int pick(std::mt19937_64& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

}  // namespace

void Writers::start(int count) {
  for (int writer = 0; writer < count; ++writer) {
    threads_.push_back(start_thread(
        fmt::format("ob-writer-{}", writer),
        [this, writer, till = std::shared_ptr<Till>(shop_.till())](const std::stop_token& stop) {
          work(writer, *till, stop);
        }));
  }
}

void Writers::stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void Writers::check() const {
  const MutexLock lock(mutex_);
  if (failure_) throw Exception(*failure_);
}

void Writers::work(int writer, Till& till, const std::stop_token& stop) {
  std::mt19937_64 random(seed_ + static_cast<std::uint64_t>(writer));
  try {
    for (int number = 1; !stop.stop_requested(); ++number) {
      sell(till,
           {.order = {.reference = fmt::format("{}-{:06}", writer + 1, number),
                      .customer = pick(random, 1, kCustomers),
                      .version = 0,
                      .cents = pick(random, 100, kMostCents)},
            .tells = tells_,
            .committed = pick(random, 1, kRolledBackOneIn) != 1},
           writer % 2 == 0);
      std::this_thread::sleep_for(std::chrono::microseconds(pick(random, 0, kLongestPauseUs)));
    }
  } catch (const Exception& failure) {
    const MutexLock lock(mutex_);
    if (!failure_) failure_ = failure.error();
  }
}

void Writers::sell(Till& till, Sale sale, bool publishes_early) {
  const auto publish = [&](bool early) {
    if (tells_ == Tells::nobody && early == publishes_early)
      (void)dual_write_.publish(to_event(sale.order).payload);
  };
  sale.before_commit = [&] { publish(true); };
  till.sell(sale);
  (sale.committed ? committed_ : rolled_back_).fetch_add(1);
  if (sale.committed) publish(false);
}

}  // namespace outbox::demo
