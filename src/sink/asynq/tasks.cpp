#include "sink/asynq/tasks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_builder.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/headers.hpp"
#include "event/utf8.hpp"

namespace outbox::sink::asynq {

void append_prefix(std::string& out, std::string_view queue) {
  out.append("asynq:{").append(queue).append("}:");
}

bool is_blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
}

std::string_view wrong_queue_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (is_blank(name)) return "is blank";
  if (name.find_first_of("{}") != std::string_view::npos) return "has a brace";
  if (!event::is_utf8(name)) return "is not UTF-8";
  return {};
}

namespace {

enum class Field : protozero::pbf_tag_type {
  type = 1,
  payload = 2,
  id = 3,
  queue = 4,
  max_retry = 5,
  timeout = 8,
  retention = 12,
  headers = 15,
};
/// The fields of one entry of a map ("Encoding", Maps).
enum class Entry : protozero::pbf_tag_type { key = 1, value = 2 };

using protozero::data_view;

data_view view(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

/// Leaves out what is zero or empty, as proto3 does.
void append_message(std::string& out, const TaskMessage& task) {
  protozero::pbf_builder<Field> message(out);
  const auto add_bytes = [&](Field field, std::string_view text) {
    if (!text.empty()) message.add_bytes(field, view(text));
  };
  add_bytes(Field::type, task.type);
  add_bytes(Field::payload, task.payload);
  add_bytes(Field::id, task.id);
  add_bytes(Field::queue, task.queue);
  if (task.max_retry != 0) message.add_int32(Field::max_retry, task.max_retry);
  if (task.timeout.count() != 0) message.add_int64(Field::timeout, task.timeout.count());
  if (task.retention.count() != 0) message.add_int64(Field::retention, task.retention.count());
  for (const HeaderView& header : task.headers) {
    if (header.absent) continue;
    protozero::pbf_builder<Entry> entry(message, Field::headers);
    entry.add_string(Entry::key, view(header.name));
    entry.add_string(Entry::value, view(header.value));
  }
}

std::string_view not_utf8(const TaskMessage& task) {
  if (!event::is_utf8(task.type)) return "its type";
  if (!event::is_utf8(task.id)) return "its id";
  if (!event::is_utf8(task.queue)) return "its queue";
  const auto is_wrong = [](const HeaderView& header) {
    return !header.absent && !(event::is_utf8(header.name) && event::is_utf8(header.value));
  };
  return std::any_of(task.headers.begin(), task.headers.end(), is_wrong) ? "a header"
                                                                         : std::string_view();
}

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

/// The time now, in nanoseconds since 1970.
std::string now_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

Tasks::Tasks(TaskOptions options) : options_(std::move(options)) {}

/// A replay is meant to run again what has run already, so each replay makes a task of its own.
void Tasks::set_id(const EventView& event) {
  id_ = options_.id.render(event, arena_);
  const std::string_view replay = event::read_replay(event, arena_);
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
  OUTBOX_TRY(must_not_be_blank("type", type_));
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
  OUTBOX_TRY(check());
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
