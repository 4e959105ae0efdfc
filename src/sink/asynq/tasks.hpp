// The commands that make a task of an event: EVALSHA of script.hpp, and SADD for a queue that was not named on this connection.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "event/arena.hpp"
#include "event/template.hpp"
#include "sink/hiredis/purpose.hpp"

namespace outbox::sink::asynq {

/// Of CloudEvents attributes in the headers of a task. No protocol binding exists for asynq.
inline constexpr std::string_view kAttributePrefix = "ce_";
/// The header with the message key.
inline constexpr std::string_view kKeyHeader = "outbox-key";
/// Of the queues that were named, so many are remembered.
inline constexpr std::size_t kMostQueues = 1000;

struct TaskOptions {
  event::Template queue;
  event::Template type;
  event::Template id;
  std::int32_t max_retry{0};
  std::chrono::seconds timeout{0};
  std::chrono::seconds retention{0};
  bool wait{false};  ///< WAIT follows.
};

class Tasks final : public hiredis::Calls {
 public:
  explicit Tasks(TaskOptions options);

  [[nodiscard]] Result<hiredis::Call> call(const Message& message,
                                           std::string_view script_hash) override;
  void connected() override { named_.clear(); }

 private:
  void set_id(const EventView& event);
  void set_headers(const Message& message);
  [[nodiscard]] Status check() const;
  /// True: for the first time.
  [[nodiscard]] bool name_queue();

  const TaskOptions options_;
  std::unordered_set<std::string> named_;

  // Of the event at hand.
  event::Arena arena_;
  std::string queue_;
  std::string type_;
  std::string id_;
  std::vector<HeaderView> headers_;
  std::string message_;
  std::string task_key_;
  std::string pending_key_;
  std::string now_;
  std::array<std::string_view, 10> arguments_;
  std::array<std::string_view, 3> first_;
};

}  // namespace outbox::sink::asynq
