// What error codes of librdkafka and the brokers mean for a message.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <outbox/error.hpp>
#include <string_view>

namespace outbox::sink::kafka {

/// What an error blames.
enum class Fault : std::uint8_t {
  none,         ///< Nothing: it follows from another error, such as a purge or a broken sequence.
  message,      ///< One message of the batch, all of which the broker refuses.
  destination,  ///< The topic, rights or brokers.
};

[[nodiscard]] Fault find_fault(rd_kafka_resp_err_t code) noexcept;

/// Whether a smaller batch might have been accepted.
[[nodiscard]] bool is_about_size(rd_kafka_resp_err_t code) noexcept;

/// Whether the topic does not exist.
[[nodiscard]] bool is_missing(rd_kafka_resp_err_t code) noexcept;

/// The error for people. `topic` may be empty.
[[nodiscard]] Error describe(rd_kafka_resp_err_t code, std::string_view topic);

}  // namespace outbox::sink::kafka
