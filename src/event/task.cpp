#include "event/task.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/text.hpp"
#include "event/headers.hpp"
#include "event/json_scan.hpp"
#include "event/json_write.hpp"
#include "event/text_rules.hpp"
#include "event/time_text.hpp"

namespace outbox {
namespace event {
namespace {

/// Keeps the name of the queue's subscription within the limit of any other.
constexpr std::size_t kLongestQueue = 50;

}  // namespace

Status check_queue(std::string_view queue) {
  const auto allowed = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; };
  if (!queue.empty() && queue.size() <= kLongestQueue &&
      std::all_of(queue.begin(), queue.end(), allowed))
    return {};
  return bad_field("queue",
                   queue.empty() ? "is empty" : in_quotes(queue) + " is no name of a queue",
                   "at most 50 letters, digits, '-', '_' and '.'");
}

TaskPlace parse_task_place(std::string_view aggregate_type) {
  const std::string_view rest = aggregate_type.substr(kTaskPrefix.size());
  const std::size_t end = rest.find('!');
  if (end == std::string_view::npos) return {.queue = rest};
  const std::string_view priority = rest.substr(end + 1);
  const bool known = priority.size() == 1 && priority[0] >= '1' && priority[0] <= '4';
  return {.queue = rest.substr(0, end),
          .priority = known ? static_cast<std::size_t>(priority[0] - '0') : kDefaultPriority};
}

std::string make_aggregate_type(std::string_view queue, std::size_t priority) {
  std::string type = std::string(kTaskPrefix).append(queue);
  if (priority != kDefaultPriority) type.append("!").append(std::to_string(priority));
  return type;
}

namespace {

Status check_told(std::string_view field, const TaskEvent& told) {
  const auto in_field = [&](Status status) {
    return status ? status : bad_field(field, status.error().message, status.error().hint);
  };
  Status status = check_required_name("aggregate_type", told.aggregate_type);
  if (status) status = check_name("aggregate_id", told.aggregate_id);
  if (status) status = check_required_name("event_type", told.event_type);
  return in_field(std::move(status));
}

Result<std::optional<TaskEvent>> read_told(std::string_view headers, std::string_view name,
                                           Arena& arena) {
  const auto text = find_header(headers, name, arena);
  if (text.empty()) return std::optional<TaskEvent>();
  TaskEvent told;
  const auto fault = for_each_member(text, [&](JsonString member, std::string_view value) {
    const std::string field = decode_json(member);
    if (field == "aggregate_type") told.aggregate_type = json_text(value);
    if (field == "aggregate_id") told.aggregate_id = json_text(value);
    if (field == "event_type") told.event_type = json_text(value);
  });
  const std::string field = std::string("header ").append(name);
  if (fault) return bad_field(field, "is no JSON object: " + std::string(fault->what));
  OUTBOX_TRY(check_told(field, told));
  return std::optional(std::move(told));
}

std::string to_text(const TaskEvent& told) {
  std::string json = "{\"aggregate_type\":";
  append_json_string(json, told.aggregate_type);
  append_json_string(json.append(",\"aggregate_id\":"), told.aggregate_id);
  append_json_string(json.append(",\"event_type\":"), told.event_type);
  return json.append("}");
}

Result<std::optional<std::size_t>> read_max_attempts(std::string_view headers, Arena& arena) {
  const auto text = find_header(headers, kMaxAttemptsHeader, arena);
  if (text.empty()) return std::optional<std::size_t>();
  std::size_t most = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), most);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && most > 0 &&
      most <= kMostAttempts)
    return std::optional(most);
  return bad_field("header task-max-attempts", in_quotes(text) + " is no number from 1 to 1000");
}

}  // namespace

Result<TaskRules> parse_task_rules(std::string_view headers, Arena& arena) {
  TaskRules rules;
  if (const auto reason = find_header(headers, kUnreadableHeader, arena); !reason.empty())
    return fail(Errc::invalid_argument, "the message cannot be understood: " + std::string(reason));
  if (const auto text = find_header(headers, kExecuteAtHeader, arena); !text.empty()) {
    rules.execute_at_us = read_time(text);
    if (!rules.execute_at_us)
      return bad_field("header task-execute-at", in_quotes(text) + " is no time",
                       "RFC 3339, such as 2026-10-31T08:00:00Z");
  }
  OUTBOX_TRY(rules.max_attempts, read_max_attempts(headers, arena));
  rules.unique_key = find_header(headers, kUniqueKeyHeader, arena);
  OUTBOX_TRY(rules.on_done, read_told(headers, kOnDoneHeader, arena));
  // It is used only when the task is dead, but an unreadable header makes the task dead at once.
  OUTBOX_TRY(const auto on_dead, read_told(headers, kOnDeadHeader, arena));
  return rules;
}

std::optional<TaskEvent> read_on_dead(std::string_view headers, Arena& arena) {
  if (headers.find(kOnDeadHeader) == std::string_view::npos) return std::nullopt;
  auto told = read_told(headers, kOnDeadHeader, arena);
  return told ? std::move(*told) : std::nullopt;
}

Event make_event(const TaskEvent& told, const TaskNews& news) {
  std::string json = "{\"task\":\"" + news.id.str() + "\",\"queue\":";
  append_json_string(json, news.queue);
  append_json_string(json.append(",\"type\":"), news.type);
  append_json_string(json.append(",\"key\":"), news.key);
  json.append(",\"attempts\":").append(std::to_string(news.attempts));
  if (news.result) {
    json.append(",\"result\":");
    is_json(*news.result) ? (void)json.append(*news.result)
                          : append_json_string(json, *news.result);
  }
  if (!news.error.empty()) append_json_string(json.append(",\"error\":"), news.error);
  return {.aggregate_type = told.aggregate_type,
          .aggregate_id = told.aggregate_id,
          .event_type = told.event_type,
          .payload = json.append("}")};
}

}  // namespace event

namespace {

/// Checks names as a task calls them: an event's event_type is the type.
Status check_names(const Task& task) {
  OUTBOX_TRY(event::check_queue(task.queue));
  if (Status status =
          event::check_required_name("type", task.type, "what is to be done, such as report.make");
      !status)
    return status;
  return event::check_name("key", task.key);
}

Status check_rules(const Task& task) {
  if (task.execute_at && !event::is_time(task.execute_at->time_since_epoch().count()))
    return bad_field("execute_at", "is not in the years 1 to 9999");
  if (task.max_attempts && (*task.max_attempts == 0 || *task.max_attempts > event::kMostAttempts))
    return bad_field("max_attempts", "must be from 1 to " + std::to_string(event::kMostAttempts));
  if (task.priority == 0 || task.priority > event::kPriorities)
    return bad_field("priority", "must be from 1 to " + std::to_string(event::kPriorities));
  OUTBOX_TRY(event::check_name("unique_key", task.unique_key));
  if (task.on_done) {
    OUTBOX_TRY(event::check_told("on_done", *task.on_done));
  }
  return task.on_dead ? event::check_told("on_dead", *task.on_dead) : Status();
}

Event make_unchecked_event(Task task) {
  Event event;
  event.aggregate_type = event::make_aggregate_type(task.queue, task.priority);
  event.aggregate_id = std::move(task.key);
  event.event_type = std::move(task.type);
  event.payload = std::move(task.payload);
  event.headers = std::move(task.headers);
  if (task.execute_at) {
    event.headers.emplace_back(kExecuteAtHeader,
                               event::time_text(task.execute_at->time_since_epoch().count()));
  }
  if (task.max_attempts)
    event.headers.emplace_back(kMaxAttemptsHeader, std::to_string(*task.max_attempts));
  if (!task.unique_key.empty())
    event.headers.emplace_back(kUniqueKeyHeader, std::move(task.unique_key));
  if (task.on_done) event.headers.emplace_back(kOnDoneHeader, event::to_text(*task.on_done));
  if (task.on_dead) event.headers.emplace_back(kOnDeadHeader, event::to_text(*task.on_dead));
  event.content_type = std::move(task.content_type);
  event.id = task.id;
  return event;
}

}  // namespace

Status validate(const Task& task, const EventLimits& limits) {
  OUTBOX_TRY(check_names(task));
  OUTBOX_TRY(check_rules(task));
  return validate(make_unchecked_event(task), limits);
}

Event to_event(Task task) {
  if (Status status = check_names(task); !status) throw Exception(std::move(status.error()));
  if (Status status = check_rules(task); !status) throw Exception(std::move(status.error()));
  return make_unchecked_event(std::move(task));
}

}  // namespace outbox
