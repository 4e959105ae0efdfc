// What error codes of librdkafka and the brokers mean for a message.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <outbox/error.hpp>
#include <string_view>

namespace outbox::sink::kafka {

/// What is at fault.
enum class Fault : std::uint8_t {
  none,         ///< A consequence of another error: a purge, a broken sequence.
  message,      ///< One message of the batch; the broker refuses all of them.
  destination,  ///< Topic, rights, brokers.
};

[[nodiscard]] Fault fault_of(rd_kafka_resp_err_t code) noexcept;

/// A smaller batch might have been accepted.
[[nodiscard]] bool is_about_size(rd_kafka_resp_err_t code) noexcept;

/// There is no such topic.
[[nodiscard]] bool is_missing(rd_kafka_resp_err_t code) noexcept;

/// The error for people. `topic` may be empty.
[[nodiscard]] Error describe(rd_kafka_resp_err_t code, std::string_view topic);

}  // namespace outbox::sink::kafka
