#include "sink/asynq/task_message.hpp"

#include <algorithm>
#include <protozero/pbf_builder.hpp>

#include "event/utf8.hpp"

namespace outbox::sink::asynq {
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
/// Of an entry of a map ("Encoding", Maps).
enum class Entry : protozero::pbf_tag_type { key = 1, value = 2 };

using protozero::data_view;

data_view view(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

/// In proto3 what is zero or empty is left out.
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

}  // namespace outbox::sink::asynq
