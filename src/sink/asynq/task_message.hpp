// The message of a task: asynq.TaskMessage of asynq 0.26 (internal/proto/asynq.proto), in the encoding of Protocol Buffers. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <string_view>

namespace outbox::sink::asynq {

struct TaskMessage {
  std::string_view type;  ///< UTF-8, as are id, queue and headers.
  std::string_view payload;
  std::string_view id;
  std::string_view queue;
  std::int32_t max_retry{0};
  std::chrono::seconds timeout{0};
  std::chrono::seconds retention{0};
  std::span<const HeaderView> headers;  ///< Absent ones are left out.
};

void append_message(std::string& out, const TaskMessage& task);

/// Which text of it is not UTF-8 ("its type"); empty: none. Such a message cannot be read: it would stop asynq from recovering the tasks of crashed
/// workers, in all queues.
[[nodiscard]] std::string_view not_utf8(const TaskMessage& task);

}  // namespace outbox::sink::asynq
