// What librdkafka's and the broker's error codes mean for a message. The only place that knows.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <outbox/error.hpp>
#include <string_view>

namespace outbox::sink::kafka {

/// Who is at fault.
enum class Fault : std::uint8_t {
  nobody,       ///< A consequence of something else: a purge, a broken sequence.
  message,      ///< One message of the batch; the broker fails all of them.
  destination,  ///< Topic, rights, brokers.
};

[[nodiscard]] Fault fault_of(rd_kafka_resp_err_t code) noexcept;

/// A batch of fewer bytes might have passed.
[[nodiscard]] bool is_about_size(rd_kafka_resp_err_t code) noexcept;

/// The error as people read it. `topic` may be empty.
[[nodiscard]] Error describe(rd_kafka_resp_err_t code, std::string_view topic);

}  // namespace outbox::sink::kafka
