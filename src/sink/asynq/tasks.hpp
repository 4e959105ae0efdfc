// The commands that make a task of an event: EVALSHA of script.hpp, and SADD for a queue that this
// connection has not named yet.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "event/arena.hpp"
#include "format/template.hpp"
#include "sink/hiredis/purpose.hpp"

namespace outbox::sink::asynq {

// ---- Names of asynq's keys in Redis, and which queues it takes. Pure.

/// The set of all queues, for asynq's tools. Workers do not read it: they have queues configured.
inline constexpr std::string_view kQueues = "asynq:queues";

/// "asynq:{QUEUE}:", with which the keys of a queue begin. The braces are its hash tag.
void append_prefix(std::string& out, std::string_view queue);

/// Whether the text is empty or white space, which asynq refuses as a queue, type or id.
[[nodiscard]] bool is_blank(std::string_view text);

/// What is wrong with the name, such as "is blank"; empty if it is valid.
[[nodiscard]] std::string_view wrong_queue_name(std::string_view name);

// ---- The message of a task: asynq.TaskMessage of asynq 0.26 (internal/proto/asynq.proto), in the
// encoding of Protocol Buffers. Pure.

struct TaskMessage {
  std::string_view type;  ///< UTF-8, as are id, queue and headers.
  std::string_view payload;
  std::string_view id;
  std::string_view queue;
  std::int32_t max_retry{0};
  std::chrono::seconds timeout{0};
  std::chrono::seconds retention{0};
  std::span<const HeaderView> headers;  ///< Absent headers are left out.
};

void append_message(std::string& out, const TaskMessage& task);

/// Which of the message's texts is not UTF-8 ("its type"); empty if all are. asynq cannot read such
/// a message, and would stop recovering the tasks of crashed workers in all queues.
[[nodiscard]] std::string_view not_utf8(const TaskMessage& task);

// ---- Commands

/// The prefix of CloudEvents attributes in a task's headers. No protocol binding exists for asynq.
inline constexpr std::string_view kAttributePrefix = "ce_";
/// The header with the message key.
inline constexpr std::string_view kKeyHeader = "outbox-key";
/// How many queues are remembered as named.
inline constexpr std::size_t kMostQueues = 1000;

struct TaskOptions {
  format::Template queue;
  format::Template type;
  format::Template id;
  std::int32_t max_retry{0};
  std::chrono::seconds timeout{0};
  std::chrono::seconds retention{0};
  bool wait{false};  ///< Whether WAIT follows the command.
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
  /// Whether the queue is named for the first time on this connection.
  [[nodiscard]] bool name_queue();

  const TaskOptions options_;
  std::unordered_set<std::string> named_;

  // What was rendered for the current event.
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
