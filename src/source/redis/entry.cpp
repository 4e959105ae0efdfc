#include "source/redis/entry.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "event/base64.hpp"
#include "event/json_write.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"
#include "sink/hiredis/connection.hpp"
#include "sink/redis/command.hpp"

namespace outbox::source::redis {
namespace {

using sink::hiredis::to_text;
using sink::redis::kBodyField;
using sink::redis::kKeyField;
using sink::redis::kRenamedPrefix;

const redisReply& nil() {
  static const redisReply reply = [] {
    redisReply made{};
    made.type = REDIS_REPLY_NIL;
    return made;
  }();
  return reply;
}

/// The name of the header before the sink renamed it.
std::string_view header_name(std::string_view field) {
  if (!field.starts_with(kRenamedPrefix)) return field;
  const std::string_view name = field.substr(kRenamedPrefix.size());
  return name == kKeyField || name == kBodyField ? name : field;
}

void append_json(std::string& out, std::string_view bytes) {
  const bool is_text = event::is_utf8(bytes);
  event::append_json_string(out, is_text ? bytes : "base64:" + event::base64_text(bytes));
}

/// The fields as an object of JSON, for entries that have no body.
std::string json_object(const redisReply& fields) {
  std::string json = "{";
  for (std::size_t i = 0; i + 1 < size(fields); i += 2) {
    if (i > 0) json += ',';
    append_json(json, to_text(element(fields, i)));
    json += ':';
    append_json(json, to_text(element(fields, i + 1)));
  }
  return json + "}";
}

std::optional<Timestamp> to_timestamp(EntryId id) {
  constexpr auto kMost =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 1000;
  if (id.ms > kMost) return std::nullopt;
  const auto us = static_cast<std::int64_t>(id.ms) * 1000;
  return event::is_time(us) ? std::optional(event::timestamp(us)) : std::nullopt;
}

}  // namespace

const redisReply& element(const redisReply& array, std::size_t index) {
  return index < size(array) ? *array.element[index] : nil();
}

const redisReply& find(const redisReply& map, std::string_view name) {
  for (std::size_t i = 0; i + 1 < size(map); i += 2) {
    if (to_text(element(map, i)) == name) return element(map, i + 1);
  }
  return nil();
}

std::size_t size(const redisReply& array) {
  return array.type == REDIS_REPLY_ARRAY ? array.elements : 0;
}

std::optional<std::int64_t> number(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_INTEGER) return std::nullopt;
  return reply.integer;
}

EntryId EntryId::parse(std::string_view text) {
  EntryId id;
  const char* const end = text.data() + text.size();
  const auto [dash, wrong] = std::from_chars(text.data(), end, id.ms);
  if (wrong != std::errc() || dash == end || *dash != '-') return {};
  const auto [stop, bad] = std::from_chars(dash + 1, end, id.seq);
  return bad == std::errc() && stop == end ? id : EntryId{};
}

std::string EntryId::text() const { return fmt::format("{}-{}", ms, seq); }

Received read_entry(const std::string& stream, std::string_view id, const redisReply& fields) {
  Received message{.place = fmt::format("{}/{}", stream, id),
                   .channel = stream,
                   .sent_at = to_timestamp(EntryId::parse(id))};
  bool has_body = false;
  for (std::size_t i = 0; i + 1 < size(fields); i += 2) {
    const std::string_view name = to_text(element(fields, i));
    const std::string_view value = to_text(element(fields, i + 1));
    if (name == kKeyField) {
      message.key = value;
    } else if (name == kBodyField) {
      message.payload = value;
      has_body = true;
    } else {
      message.headers.emplace_back(header_name(name), value);
    }
  }
  if (has_body) return message;
  // The fields are no headers then: those have a limit, and here they are what was sent.
  message.headers.clear();
  message.payload = json_object(fields);
  message.content_type = "application/json";
  return message;
}

std::string_view entry_id(const Received& message) {
  return std::string_view(message.place).substr(message.channel.size() + 1);
}

}  // namespace outbox::source::redis
