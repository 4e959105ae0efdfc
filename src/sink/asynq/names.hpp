// Names of asynq's keys in Redis, and which queues it takes. Pure.
#pragma once

#include <string>
#include <string_view>

namespace outbox::sink::asynq {

/// The set of all queues. Workers look at the queues that they are configured with; asynq's tools list those in this set.
inline constexpr std::string_view kQueues = "asynq:queues";

/// "asynq:{QUEUE}:", with which the keys of a queue begin. The braces are its hash tag.
void append_prefix(std::string& out, std::string_view queue);

/// asynq refuses queues, types and ids of these texts.
[[nodiscard]] bool is_blank(std::string_view text);

/// What is wrong with it, such as "is blank"; empty: nothing.
[[nodiscard]] std::string_view wrong_queue_name(std::string_view name);

}  // namespace outbox::sink::asynq
