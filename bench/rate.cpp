#include "bench/rate.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <thread>

#include "bench/figure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

double rate(const Side& clients, std::uint64_t seed, double seconds) {
  std::atomic<std::int64_t> done{0};
  std::atomic<bool> stop{false};
  std::vector<std::future<void>> running;
  running.reserve(clients.size());
  const auto start = Clock::now();
  for (const Client& transact : clients) {
    const std::uint64_t own_seed = seed * 1000 + running.size();
    running.push_back(std::async(std::launch::async, [&, state = own_seed]() mutable {
      while (!stop.load(std::memory_order_relaxed)) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        transact(static_cast<int>((state >> 33U) % kAccounts));
        done.fetch_add(1, std::memory_order_relaxed);
      }
    }));
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (const auto& client : running) client.wait();
  const double taken = std::chrono::duration<double>(Clock::now() - start).count();
  for (auto& client : running) client.get();
  return static_cast<double>(done.load()) / taken;
}

}  // namespace

std::vector<double> rates(const std::vector<Side>& sides, int repeats, double seconds) {
  const std::size_t turns = kTurns * static_cast<std::size_t>(repeats);
  std::vector<std::vector<double>> measured(sides.size());
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const std::size_t side = (i + turn) % sides.size();
      measured[side].push_back(rate(sides[side], turn, seconds / kTurns));
    }
  }
  std::vector<double> medians;
  medians.reserve(measured.size());
  for (const auto& of_side : measured) medians.push_back(median(of_side));
  return medians;
}

}  // namespace outbox::bench
