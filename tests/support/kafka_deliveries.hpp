// Reads the messages of a Kafka topic for the judge.
#pragma once

#include <vector>

#include "support/kafka.hpp"
#include "support/ledger.hpp"
#include "support/shop_options.hpp"

namespace outbox::test {

[[nodiscard]] inline Delivery to_delivery(const rd_kafka_message_t& message) {
  const auto text = [](const void* bytes, std::size_t size) {
    return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
  };
  Delivery delivery{.id = {},
                    .key = text(message.key, message.key_len),
                    .body = text(message.payload, message.len)};
  delivery.id = id_in(delivery.body);
  return delivery;
}

/// The id that the relay sent with the message.
[[nodiscard]] inline std::string read_event_id(const rd_kafka_message_t& message) {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, "outbox-id", &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return {};
  return {static_cast<const char*>(value), size};
}

/// Everything on the topic, in order within each key.
[[nodiscard]] inline std::vector<Delivery> deliveries_on(const KafkaTopic& topic) {
  std::vector<Delivery> all;
  for (const KafkaRecord& record : topic.read()) {
    const std::string body = record.value.value_or("");
    all.push_back({.id = id_in(body), .key = record.key.value_or(""), .body = body});
  }
  return all;
}

}  // namespace outbox::test
