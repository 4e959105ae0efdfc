// Tasks of one queue, to their handlers. A task is taken when a thread can begin it soon; the others stay in the log. Not gapless: the
// relay keeps one task of a key in flight.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <outbox/sink.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sink/run_owner.hpp"
#include "task/runner.hpp"

namespace outbox::task {

/// The subscription that delivers a queue.
[[nodiscard]] std::string subscription_name(std::string_view queue);

struct QueueOptions {
  std::size_t threads{8};
  std::chrono::milliseconds unknown_type_pause{std::chrono::seconds(30)};
  std::chrono::milliseconds row_after{std::chrono::seconds(1)};
};

class QueueSink final : public Sink, public sink::RunOwner {
 public:
  /// `worker`: who keeps what runs for long.
  QueueSink(std::string queue, const std::shared_ptr<const Handlers>& handlers,
            QueueOptions options, const EventId& worker);
  ~QueueSink() override;

  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void receive(std::vector<Outcome>& outcomes) override;
  void purge() override;
  void close() noexcept override {}

  [[nodiscard]] std::chrono::milliseconds row_after() const override { return options_.row_after; }
  [[nodiscard]] EventId worker() const override { return worker_; }
  [[nodiscard]] bool keep(Token token, const sink::KeptRun& run) override {
    return runner_->keep(token, run);
  }
  [[nodiscard]] bool rows_changed() override { return runner_->rows_changed(); }

  [[nodiscard]] std::shared_ptr<Runner> runner() const { return runner_; }

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>()(text);
    }
  };

  [[nodiscard]] bool can_take(const TaskType& type, const Load& load) const;
  void postpone(const Message& message);

  const std::string queue_;
  const QueueOptions options_;
  std::unordered_map<std::string, std::shared_ptr<TaskType>, TextHash, std::equal_to<>> types_;
  std::vector<Outcome> ready_;
  const EventId worker_;
  std::shared_ptr<Runner> runner_;
};

}  // namespace outbox::task
