// Tasks that a sink has taken together. A batch has one copy of their text.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "event/task.hpp"
#include "sink/run_owner.hpp"
#include "task/type.hpp"

namespace outbox::task {

/// The subscription of the queue that a task comes from, as its index among them.
using Source = std::size_t;

/// The most subscriptions of a queue. It has four, and four more for each type with subscriptions
/// of its own.
inline constexpr Source kMostSources = 1024;

/// A task that usually takes less than this may wait behind other quick ones; any other task is
/// taken only for a thread that is free.
inline constexpr std::chrono::milliseconds kQuick{20};

class Batch {
 public:
  struct Job {
    TaskType* type{nullptr};
    Token token{0};
    EventId id{};
    std::int64_t seq{0};
    Timestamp created_at{};
    std::size_t attempt{1};
    std::shared_ptr<const event::TaskRules> rules{};  ///< Null if its headers set no rules.
    // The offsets at which its parts begin in the text, one after the other.
    std::size_t payload{0};
    std::size_t key{0};
    std::size_t content_type{0};
    std::size_t headers{0};
    std::size_t end{0};
  };

  Batch(Source source, TimePoint taken) : source_(source), taken_(taken) {}
  void add(TaskType& type, const Message& message, std::shared_ptr<const event::TaskRules> rules);
  /// Notes that the only task of the batch has a row that already belongs to this worker.
  void keep(const sink::KeptRun& run) { kept_ = run; }
  [[nodiscard]] const std::optional<sink::KeptRun>& kept() const { return kept_; }
  /// Holds the permit until the tasks of the batch have ended.
  void hold(Permit permit) { permit_ = std::move(permit); }
  [[nodiscard]] Source source() const { return source_; }
  [[nodiscard]] TimePoint taken() const { return taken_; }
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] const Job& job(std::size_t place) const { return jobs_[place]; }
  [[nodiscard]] std::string_view part(std::size_t begin, std::size_t end) const {
    return std::string_view(text_).substr(begin, end - begin);
  }
  [[nodiscard]] std::string_view key_of(const Job& job) const {
    return part(job.key, job.content_type);
  }

  /// The next task to begin; null if all have begun.
  [[nodiscard]] const Job* begin_next() {
    const std::size_t place = next_.fetch_add(1, std::memory_order_relaxed);
    return place < jobs_.size() ? &jobs_[place] : nullptr;
  }
  [[nodiscard]] std::size_t left() const {
    return jobs_.size() - std::min(next_.load(std::memory_order_relaxed), jobs_.size());
  }
  /// How long the tasks that have not begun usually take.
  [[nodiscard]] std::chrono::nanoseconds work_left() const {
    return jobs_.empty() ? std::chrono::nanoseconds(0)
                         : usual_ * static_cast<std::int64_t>(left()) /
                               static_cast<std::int64_t>(jobs_.size());
  }
  /// Lets no more tasks begin, and calls `each` for those that have not begun.
  void cut(const std::function<void(const Job&)>& each);

 private:
  const Source source_;
  const TimePoint taken_;
  std::string text_;
  std::vector<Job> jobs_;
  std::chrono::nanoseconds usual_{0};
  Permit permit_;
  std::optional<sink::KeptRun> kept_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace outbox::task
