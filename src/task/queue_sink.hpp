// A sink that passes the tasks of one queue to their handlers. A task is taken when a thread can
// begin it soon; the others stay in the log. The sink is not gapless: the relay keeps one task of a
// key in flight.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <outbox/sink.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/steady.hpp"
#include "event/arena.hpp"
#include "sink/run_owner.hpp"
#include "task/runner_core.hpp"
#include "task/store_clock.hpp"

namespace outbox::task {

struct QueueOptions {
  std::size_t threads{8};
  std::chrono::milliseconds unknown_type_pause{std::chrono::seconds(30)};
  std::chrono::milliseconds row_after{std::chrono::seconds(1)};
  bool of_type{false};  ///< Whether the subscription delivers one type.
  /// How long a task is postponed that got a row before its type had a subscription of its own:
  /// such a task cannot wait in the log.
  std::chrono::milliseconds limited_pause{std::chrono::seconds(1)};
  std::chrono::milliseconds paused_pause{std::chrono::seconds(10)};
  /// After this time without a free thread another worker may run the task.
  std::chrono::milliseconds long_without_thread{200};
  std::function<TimePoint()> now{now_steady};
};

class QueueSink final : public Sink, public sink::RunOwner {
 public:
  /// `source` is one of `runner`, which also knows the types. `worker` is who keeps what runs for
  /// long.
  QueueSink(std::shared_ptr<RunnerCore> runner, Source source, QueueOptions options,
            const EventId& worker, std::shared_ptr<const StoreClock> clock);
  ~QueueSink() override;

  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void receive(std::vector<Outcome>& outcomes) override;
  void purge() override;
  void close() noexcept override {}

  void follow(const sink::RunRules& rules) override;
  [[nodiscard]] std::chrono::milliseconds row_after() const override { return options_.row_after; }
  [[nodiscard]] bool is_slow(std::string_view event_type) const override {
    const auto found = types_.find(event_type);
    return found != types_.end() && found->second->handler().options.slow;
  }
  [[nodiscard]] EventId worker() const override { return worker_; }
  [[nodiscard]] bool keep(Token token, const sink::KeptRun& run) override {
    return runner_->keep(source_, token, run);
  }
  [[nodiscard]] bool rows_changed() override { return runner_->rows_changed(source_); }

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>()(text);
    }
  };

  /// Gives away a task that finds no thread here while another worker has one. Returns false if the
  /// task stays.
  [[nodiscard]] bool give_away(const TaskType& type, const Message& message,
                               const event::TaskRules* rules, TimePoint now);
  [[nodiscard]] bool is_paused(const Message& message) const;
  [[nodiscard]] bool can_take(const TaskType& type, const Load& load) const;
  [[nodiscard]] bool take_limited(TaskType& type, const Message& message, Permit& permit,
                                  TimePoint now);
  [[nodiscard]] bool take(const Message& message, Load& load, Batch& batch, TimePoint now);
  using Rules = std::shared_ptr<const event::TaskRules>;
  [[nodiscard]] Result<Rules> parse_rules(const Message& message);
  enum class Time : std::uint8_t { come, ahead, unknown };
  [[nodiscard]] Time watch_time(const Message& message, const event::TaskRules& rules,
                                TimePoint now);
  void postpone(const Message& message, Duration pause, std::string reason);
  void refuse(const Message& message, std::string reason);

  const std::shared_ptr<RunnerCore> runner_;
  const Source source_;
  const QueueOptions options_;
  std::unordered_map<std::string, std::shared_ptr<TaskType>, TextHash, std::equal_to<>> types_;
  std::vector<Outcome> ready_;
  const EventId worker_;
  const std::shared_ptr<const StoreClock> clock_;
  event::Arena arena_;
  std::vector<std::string> paused_types_;
  std::optional<TimePoint> refuses_since_;  ///< Since when no task can be taken.
};

}  // namespace outbox::task
