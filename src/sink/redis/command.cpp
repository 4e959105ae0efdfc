#include "sink/redis/command.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "event/headers.hpp"
#include "event/id.hpp"
#include "sink/redis/script.hpp"

namespace outbox::sink::redis {
namespace {

/// The part between the first opening brace and the next closing one, or else the whole name.
std::string_view hashed_part(std::string_view name) {
  const std::size_t open = name.find('{');
  if (open == std::string_view::npos) return name;
  const std::size_t close = name.find('}', open);
  if (close == std::string_view::npos || close == open + 1) return name;
  return name.substr(open + 1, close - open - 1);
}

std::string_view field_name(std::string_view header) {
  static constexpr std::string_view kRenamedKey = "header:key";
  static constexpr std::string_view kRenamedBody = "header:body";
  static_assert(kRenamedKey.starts_with(kRenamedPrefix) && kRenamedKey.ends_with(kKeyField));
  static_assert(kRenamedBody.starts_with(kRenamedPrefix) && kRenamedBody.ends_with(kBodyField));
  if (header == kKeyField) return kRenamedKey;
  if (header == kBodyField) return kRenamedBody;
  return header;
}

Status check(const Message& message) {
  if (message.topic.empty()) {
    return fail(Errc::invalid_argument, "redis: the event's stream has an empty name",
                "the name is the subscription's topic: give empty fields a value in that template "
                "({header:tenant|default:all})");
  }
  if (message.headers.size() + 2 <= kMostFields) return {};
  return fail(Errc::too_large,
              fmt::format("redis: stream {}: the event has {} headers, an entry can have {} fields",
                          message.topic, message.headers.size(), kMostFields),
              "send fewer headers with the event");
}

}  // namespace

void append_dedup_key(std::string& out, std::string_view stream, std::string_view id) {
  const std::string_view tag = hashed_part(stream);
  out.append(kDedupPrefix).append("{").append(tag).append("}:");
  if (tag.size() != stream.size()) out.append(stream).append(":");
  out.append(id);
}

Command::Command(std::chrono::milliseconds dedup_window, std::size_t max_length)
    : window_(std::to_string(dedup_window.count())), max_length_(std::to_string(max_length)) {}

/// Appends the number of a replay, which is meant to send again what was delivered; within the
/// replay its own messages are remembered.
void Command::append_id(const EventView& event) {
  const std::size_t from = dedup_key_.size();
  dedup_key_.resize(from + event::kIdChars);
  event::write_id(event.id, dedup_key_.data() + from);
  arena_.clear();
  const std::string_view replay = event::read_replay(event, arena_);
  if (!replay.empty()) dedup_key_.append(":").append(replay);
}

Result<hiredis::Call> Command::call(const Message& message, std::string_view script_hash) {
  OUTBOX_TRY(check(message));
  const bool remembered = window_ != "0" && message.event != nullptr;
  arguments_ = {"EVALSHA", script_hash, remembered ? "2" : "1", message.topic};
  if (remembered) {
    dedup_key_.clear();
    append_dedup_key(dedup_key_, message.topic, {});
    append_id(*message.event);
    arguments_.push_back(dedup_key_);
  }
  const auto add = [this](std::string_view first, std::string_view second) {
    arguments_.push_back(first);
    arguments_.push_back(second);
  };
  add(remembered ? std::string_view(window_) : "0", max_length_);
  for (const HeaderView& header : message.headers) {
    if (!header.absent) add(field_name(header.name), header.value);
  }
  if (message.key) add(kKeyField, *message.key);
  add(kBodyField, message.body);
  return hiredis::Call{.arguments = arguments_, .place = fmt::format("stream {}", message.topic)};
}

}  // namespace outbox::sink::redis
