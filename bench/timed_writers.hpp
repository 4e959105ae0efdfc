// Writers beside what is measured: how long their transactions take shows what it costs others.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.hpp"
#include "bench/figure.hpp"
#include "support/pg.hpp"

namespace outbox::bench {

/// Threads with a connection each, which write until they are asked for their times.
class TimedWriters {
 public:
  /// The next transaction of a writer, from round 0 on.
  using Transaction = std::function<std::string(std::size_t writer, int round)>;

  TimedWriters(const std::string& url, std::size_t count, const Transaction& next) : times_(count) {
    for (std::size_t writer = 0; writer < count; ++writer) {
      threads_.push_back(
          start_thread("ob-bench-write", [this, writer, url, next](const std::stop_token& stop) {
            test::Pg pg(url);
            for (int round = 0; !stop.stop_requested(); ++round) {
              const std::string sql = next(writer, round);
              const auto start = std::chrono::steady_clock::now();
              pg.run(sql);
              times_[writer].push_back(ms_since(start));
              // The measurement is about waiting, not about a busy machine.
              std::this_thread::sleep_for(std::chrono::milliseconds(2));
            }
          }));
    }
  }
  /// Stops the writers, and returns a quantile of their times in milliseconds.
  [[nodiscard]] double stop(double q) {
    threads_.clear();
    std::vector<double> all;
    for (const auto& times : times_) all.insert(all.end(), times.begin(), times.end());
    return quantile(std::move(all), q);
  }

 private:
  std::vector<std::vector<double>> times_;
  std::vector<std::jthread> threads_;
};

}  // namespace outbox::bench
