// Counts how the runs of a type of task ended and how long they took.
//
// Threads: any; takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <outbox/relay.hpp>

namespace outbox::task {

enum class RunEnd : std::uint8_t { completed, failed, dead, cancelled, snoozed };

class TaskMeter {
 public:
  void ended(RunEnd end, std::chrono::nanoseconds took) noexcept {
    ends_[static_cast<std::size_t>(end)].fetch_add(1, std::memory_order_relaxed);
    duration_.add(took);
  }
  /// The first run of a task began so long after the task was due.
  void picked_up(std::chrono::nanoseconds waited) noexcept { pickup_.add(waited); }
  void add_to(TaskTotals& into) const {
    into.completed += count(RunEnd::completed);
    into.failed += count(RunEnd::failed);
    into.dead += count(RunEnd::dead);
    into.cancelled += count(RunEnd::cancelled);
    into.snoozed += count(RunEnd::snoozed);
    duration_.add_to(into.duration);
    pickup_.add_to(into.pickup);
  }

 private:
  struct Histogram {
    std::array<std::atomic<std::uint64_t>, DurationHistogram::bounds.size() + 1> counts{};
    std::atomic<std::int64_t> ns{0};

    void add(std::chrono::nanoseconds took) noexcept {
      const double length = std::chrono::duration<double>(took).count();
      counts[DurationHistogram::bucket(length)].fetch_add(1, std::memory_order_relaxed);
      ns.fetch_add(took.count(), std::memory_order_relaxed);
    }
    void add_to(DurationHistogram& into) const {
      for (std::size_t i = 0; i < counts.size(); ++i)
        into.counts[i] += counts[i].load(std::memory_order_relaxed);
      into.seconds += static_cast<double>(ns.load(std::memory_order_relaxed)) / 1e9;
    }
  };
  [[nodiscard]] std::uint64_t count(RunEnd end) const {
    return ends_[static_cast<std::size_t>(end)].load(std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, 5> ends_{};
  Histogram duration_;
  Histogram pickup_;
};

}  // namespace outbox::task
