// Makes a topic.
#pragma once

#include <librdkafka/rdkafka.h>

#include <optional>
#include <stop_token>
#include <string>

#include "sink/kafka/config.hpp"

namespace outbox::sink::kafka {

/// Why a topic was not made.
struct TopicRefusal {
  rd_kafka_resp_err_t code{RD_KAFKA_RESP_ERR_NO_ERROR};
  std::string text{};  ///< The broker's.
};

/// Waits for the broker's answer. None: there is one now, or the stop was requested.
[[nodiscard]] std::optional<TopicRefusal> make_topic(rd_kafka_t* handle, const char* name,
                                                     const NewTopics& like,
                                                     const std::stop_token& stop);

}  // namespace outbox::sink::kafka
