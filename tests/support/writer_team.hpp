// Threads that write until they are done or stopped. The team keeps the first exception for the
// test.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace outbox::test {

class WriterTeam {
 public:
  WriterTeam() = default;
  WriterTeam(const WriterTeam&) = delete;
  WriterTeam& operator=(const WriterTeam&) = delete;
  ~WriterTeam() { stop(); }

  /// Runs `work(number)` in each thread. The work must check stopping() regularly.
  void start(int threads, const std::function<void(int)>& work) {
    for (int number = 0; number < threads; ++number) {
      threads_.emplace_back([this, work, number] {
        try {
          work(number);
        } catch (const std::exception& error) {
          const std::scoped_lock lock(mutex_);
          if (trouble_.empty()) trouble_ = error.what();
        }
      });
    }
  }
  [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    join();
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  /// The first error; empty if there was none.
  [[nodiscard]] std::string trouble() const {
    const std::scoped_lock lock(mutex_);
    return trouble_;
  }

 private:
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;
  std::string trouble_;
};

}  // namespace outbox::test
