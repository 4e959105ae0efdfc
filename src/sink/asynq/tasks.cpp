#include "sink/asynq/tasks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/headers.hpp"
#include "sink/asynq/names.hpp"
#include "sink/asynq/task_message.hpp"

namespace outbox::sink::asynq {
namespace {

tl::unexpected<Error> refusal(std::string message, std::string hint) {
  return fail(Errc::invalid_argument, "asynq: " + std::move(message), std::move(hint));
}

Status must_not_be_blank(const char* what, std::string_view text) {
  if (!is_blank(text)) return {};
  return refusal(
      fmt::format("the {} of this event's task is {}", what, text.empty() ? "empty" : "blank"),
      fmt::format("give empty fields a value in the template "
                  "asynq.{} ({{event_type|default:event}})",
                  what));
}

/// Nanoseconds since 1970.
std::string now_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

Tasks::Tasks(TaskOptions options) : options_(std::move(options)) {}

/// A replay is meant to run again what has run: each replay is a task of its own.
void Tasks::set_id(const EventView& event) {
  id_ = options_.id.render(event, arena_);
  const std::string_view replay = event::replay_of(event, arena_);
  if (!replay.empty()) id_.append(":").append(replay);
}

void Tasks::set_headers(const Message& message) {
  headers_.assign(message.headers.begin(), message.headers.end());
  if (message.key) headers_.push_back({.name = kKeyHeader, .value = *message.key});
}

Status Tasks::check() const {
  if (const std::string_view wrong = wrong_queue_name(queue_); !wrong.empty()) {
    return refusal(fmt::format("the queue {} of this event {}", in_quotes(queue_), wrong),
                   "choose other fields for asynq.queue; |kebab and |default: help");
  }
  if (Status fine = must_not_be_blank("type", type_); !fine) return fine;
  return must_not_be_blank("task_id", id_);
}

bool Tasks::name_queue() {
  if (named_.contains(queue_)) return false;
  if (named_.size() >= kMostQueues) named_.clear();
  named_.insert(queue_);
  return true;
}

Result<hiredis::Call> Tasks::call(const Message& message, std::string_view script_hash) {
  arena_.clear();
  queue_ = options_.queue.render(*message.event, arena_);
  type_ = options_.type.render(*message.event, arena_);
  set_id(*message.event);
  if (Status fine = check(); !fine) return pass(fine);
  set_headers(message);
  const TaskMessage task{.type = type_,
                         .payload = message.body,
                         .id = id_,
                         .queue = queue_,
                         .max_retry = options_.max_retry,
                         .timeout = options_.timeout,
                         .retention = options_.retention,
                         .headers = headers_};
  if (const std::string_view wrong = not_utf8(task); !wrong.empty()) {
    return refusal(
        fmt::format("{} is not UTF-8, and asynq cannot read such a task", wrong),
        "change it where the event is written, or in the subscription; only the payload may have any bytes");
  }
  message_.clear();
  append_message(message_, task);
  task_key_.clear();
  append_prefix(task_key_, queue_);
  pending_key_ = task_key_ + "pending";
  task_key_.append("t:").append(id_);
  now_ = now_text();
  arguments_ = {"EVALSHA", script_hash, "2",  task_key_, pending_key_,
                message_,  id_,         now_, type_,     options_.wait ? "1" : "0"};
  hiredis::Call call{.arguments = arguments_, .place = fmt::format("queue {}", queue_)};
  if (name_queue()) {
    first_ = {"SADD", kQueues, queue_};
    call.first = first_;
  }
  return call;
}

}  // namespace outbox::sink::asynq
