// Texts and tables of AMQP in librabbitmq's types. They borrow what they are made of. Pure.
#pragma once

#include <span>
#include <string_view>

#include "sink/rabbitmq/librabbitmq.hpp"

namespace outbox::sink::rabbitmq {

[[nodiscard]] inline amqp_bytes_t to_bytes(std::string_view text) noexcept {
  return {.len = text.size(), .bytes = const_cast<char*>(text.data())};
}

[[nodiscard]] inline std::string_view to_text(amqp_bytes_t bytes) noexcept {
  return bytes.len == 0 ? std::string_view()
                        : std::string_view(static_cast<const char*>(bytes.bytes), bytes.len);
}

[[nodiscard]] inline amqp_table_t make_table(std::span<amqp_table_entry_t> entries) noexcept {
  return {.num_entries = static_cast<int>(entries.size()), .entries = entries.data()};
}

/// An entry with a long string, which may have any bytes.
[[nodiscard]] inline amqp_table_entry_t make_entry(std::string_view name,
                                                   std::string_view value) noexcept {
  amqp_table_entry_t entry{};
  entry.key = to_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = to_bytes(value);
  return entry;
}

[[nodiscard]] inline amqp_table_entry_t true_entry(std::string_view name) noexcept {
  amqp_table_entry_t entry{};
  entry.key = to_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_BOOLEAN;
  entry.value.value.boolean = 1;
  return entry;
}

[[nodiscard]] inline amqp_table_entry_t make_entry(std::string_view name,
                                                   amqp_table_t table) noexcept {
  amqp_table_entry_t entry{};
  entry.key = to_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_TABLE;
  entry.value.value.table = table;
  return entry;
}

}  // namespace outbox::sink::rabbitmq
