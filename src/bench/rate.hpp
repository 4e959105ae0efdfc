// How often something can be done in a second by several clients at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

namespace outbox::bench {

inline constexpr int kAccounts = 10000;

/// Calls of transact(client, account) per second over `seconds`, each client in a thread of its own; accounts at random.
template <class Transact>
double rate(std::size_t clients, std::uint64_t seed, double seconds, const Transact& transact) {
  using Clock = std::chrono::steady_clock;
  std::atomic<std::int64_t> done{0};
  std::atomic<bool> stop{false};
  std::vector<std::future<void>> running;
  running.reserve(clients);
  const auto start = Clock::now();
  for (std::size_t i = 0; i < clients; ++i) {
    running.push_back(std::async(std::launch::async, [&, i, state = seed * 1000 + i]() mutable {
      while (!stop.load(std::memory_order_relaxed)) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        transact(i, static_cast<int>((state >> 33U) % kAccounts));
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

}  // namespace outbox::bench
