#include "source/rabbitmq/delivery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "event/json_write.hpp"
#include "event/time_text.hpp"
#include "sink/rabbitmq/publication.hpp"
#include "sink/rabbitmq/table.hpp"

namespace outbox::source::rabbitmq {
namespace {

using sink::rabbitmq::to_text;

/// Where the message was published to, which AMQP has outside of its properties.
constexpr const char* kExchangeHeader = "amqp-exchange";
constexpr const char* kRoutingKeyHeader = "amqp-routing-key";
/// The time at which the server received the message, if its plugin for timestamps is enabled.
constexpr std::string_view kReceivedHeader = "timestamp_in_ms";
/// Tables that are nested more deeply become null.
constexpr int kMostDepth = 32;

/// A time in a unit of this many microseconds; nullopt outside the years 1 to 9999.
std::optional<std::int64_t> to_us(std::uint64_t time, std::int64_t unit) {
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / unit);
  if (time > most) return std::nullopt;
  const std::int64_t us = static_cast<std::int64_t>(time) * unit;
  return event::is_time(us) ? std::optional(us) : std::nullopt;
}

std::string decimal_text(const amqp_decimal_t& decimal) {
  std::string digits = std::to_string(decimal.value);
  if (decimal.decimals == 0) return digits;
  if (digits.size() <= decimal.decimals)
    digits.insert(0, decimal.decimals + 1U - digits.size(), '0');
  return digits.insert(digits.size() - decimal.decimals, ".");
}

std::string time_text(std::uint64_t seconds) {
  const auto us = to_us(seconds, 1'000'000);
  return us ? event::time_text(*us) : std::to_string(seconds);
}

/// The text of a number; nullopt for a value of another type.
std::optional<std::string> number_text(const amqp_field_value_t& value) {
  switch (value.kind) {
    case AMQP_FIELD_KIND_I8: return std::to_string(value.value.i8);
    case AMQP_FIELD_KIND_U8: return std::to_string(value.value.u8);
    case AMQP_FIELD_KIND_I16: return std::to_string(value.value.i16);
    case AMQP_FIELD_KIND_U16: return std::to_string(value.value.u16);
    case AMQP_FIELD_KIND_I32: return std::to_string(value.value.i32);
    case AMQP_FIELD_KIND_U32: return std::to_string(value.value.u32);
    case AMQP_FIELD_KIND_I64: return std::to_string(value.value.i64);
    case AMQP_FIELD_KIND_U64: return std::to_string(value.value.u64);
    case AMQP_FIELD_KIND_F32: return fmt::format("{}", value.value.f32);
    case AMQP_FIELD_KIND_F64: return fmt::format("{}", value.value.f64);
    case AMQP_FIELD_KIND_DECIMAL: return decimal_text(value.value.decimal);
    default: return std::nullopt;
  }
}

bool is_finite(const amqp_field_value_t& value) {
  if (value.kind == AMQP_FIELD_KIND_F32) return std::isfinite(value.value.f32);
  return value.kind != AMQP_FIELD_KIND_F64 || std::isfinite(value.value.f64);
}

void append_json(std::string& json, const amqp_field_value_t& value, int depth) {
  if (value.kind == AMQP_FIELD_KIND_VOID || depth > kMostDepth || !is_finite(value)) {
    json += "null";
  } else if (value.kind == AMQP_FIELD_KIND_TABLE) {
    const amqp_table_t& table = value.value.table;
    json += '{';
    for (int i = 0; i < table.num_entries; ++i) {
      if (i > 0) json += ',';
      event::append_json_string(json, to_text(table.entries[i].key));
      json += ':';
      append_json(json, table.entries[i].value, depth + 1);
    }
    json += '}';
  } else if (value.kind == AMQP_FIELD_KIND_ARRAY) {
    const amqp_array_t& array = value.value.array;
    json += '[';
    for (int i = 0; i < array.num_entries; ++i) {
      if (i > 0) json += ',';
      append_json(json, array.entries[i], depth + 1);
    }
    json += ']';
  } else if (const auto number = number_text(value)) {
    json += *number;
  } else if (value.kind == AMQP_FIELD_KIND_BOOLEAN) {
    json += value_text(value);
  } else {
    event::append_json_string(json, value_text(value));
  }
}

/// The text of a property; empty if the message does not have it.
std::string property(const amqp_basic_properties_t& properties, amqp_flags_t flag,
                     amqp_bytes_t value) {
  return (properties._flags & flag) != 0 ? std::string(to_text(value)) : std::string();
}

std::optional<std::int64_t> sent_us(const amqp_basic_properties_t& properties,
                                    const amqp_table_t& headers) {
  if ((properties._flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0)
    return to_us(properties.timestamp, 1'000'000);
  for (int i = 0; i < headers.num_entries; ++i) {
    const amqp_table_entry_t& entry = headers.entries[i];
    if (to_text(entry.key) == kReceivedHeader && entry.value.kind == AMQP_FIELD_KIND_I64 &&
        entry.value.value.i64 >= 0)
      return to_us(static_cast<std::uint64_t>(entry.value.value.i64), 1'000);
  }
  return std::nullopt;
}

}  // namespace

std::string value_text(const amqp_field_value_t& value) {
  if (auto number = number_text(value)) return std::move(*number);
  switch (value.kind) {
    case AMQP_FIELD_KIND_BOOLEAN: return value.value.boolean != 0 ? "true" : "false";
    case AMQP_FIELD_KIND_UTF8:
    case AMQP_FIELD_KIND_BYTES: return std::string(to_text(value.value.bytes));
    case AMQP_FIELD_KIND_TIMESTAMP: return time_text(value.value.u64);
    case AMQP_FIELD_KIND_TABLE:
    case AMQP_FIELD_KIND_ARRAY: {
      std::string json;
      append_json(json, value, 0);
      return json;
    }
    default: return {};
  }
}

/// A delivery tag is no place, because the next delivery of the message has another one. So each
/// delivery has a place of its own, which no other one ever has.
void Delivery::begin(const amqp_basic_deliver_t& method) {
  message_ = {};
  message_.channel = to_text(method.consumer_tag);
  message_.place = message_.channel + "/" + EventId::generate().str();
  message_.tag = method.delivery_tag;
  message_.headers = {{kExchangeHeader, std::string(to_text(method.exchange))},
                      {kRoutingKeyHeader, std::string(to_text(method.routing_key))}};
  begun_ = false;
}

void Delivery::add(const amqp_basic_properties_t& properties, std::size_t body_size) {
  begun_ = true;
  size_ = body_size;
  message_.payload.reserve(size_);
  message_.id = property(properties, AMQP_BASIC_MESSAGE_ID_FLAG, properties.message_id);
  message_.type = property(properties, AMQP_BASIC_TYPE_FLAG, properties.type);
  message_.content_type =
      property(properties, AMQP_BASIC_CONTENT_TYPE_FLAG, properties.content_type);
  message_.correlation_id =
      property(properties, AMQP_BASIC_CORRELATION_ID_FLAG, properties.correlation_id);
  const bool has_headers = (properties._flags & AMQP_BASIC_HEADERS_FLAG) != 0;
  const amqp_table_t headers = has_headers ? properties.headers : amqp_empty_table;
  if (const auto us = sent_us(properties, headers)) message_.sent_at = event::timestamp(*us);
  for (int i = 0; i < headers.num_entries; ++i) {
    const amqp_table_entry_t& entry = headers.entries[i];
    std::string text = value_text(entry.value);
    if (to_text(entry.key) == sink::rabbitmq::kKeyHeader) message_.key = text;
    message_.headers.emplace_back(to_text(entry.key), std::move(text));
  }
  // What the server says of the message counts, and not a header of the same name.
  std::rotate(message_.headers.begin(), message_.headers.begin() + 2, message_.headers.end());
}

void Delivery::add(amqp_bytes_t piece_of_body) { message_.payload.append(to_text(piece_of_body)); }

Received Delivery::take() {
  begun_ = false;
  return std::move(message_);
}

}  // namespace outbox::source::rabbitmq
