// What librdkafka reports beside results: its log, and the errors of connections.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <outbox/error.hpp>
#include <string>

namespace outbox::sink::kafka {

struct HandleDelete {
  void operator()(rd_kafka_t* handle) const noexcept;
};
struct TopicDelete {
  void operator()(rd_kafka_topic_t* topic) const noexcept { rd_kafka_topic_destroy(topic); }
};
struct QueueDelete {
  void operator()(rd_kafka_queue_t* queue) const noexcept { rd_kafka_queue_destroy(queue); }
};
struct MetadataDelete {
  void operator()(const rd_kafka_metadata_t* metadata) const noexcept {
    rd_kafka_metadata_destroy(metadata);
  }
};

struct EventDelete {
  void operator()(rd_kafka_event_t* event) const noexcept { rd_kafka_event_destroy(event); }
};
struct AdminOptionsDelete {
  void operator()(rd_kafka_AdminOptions_t* options) const noexcept {
    rd_kafka_AdminOptions_destroy(options);
  }
};

/// Sends librdkafka's log to ours.
void log_to_ours(rd_kafka_conf_t* conf);

/// The last error.
struct Reported {
  std::string text{};  ///< Empty if there was no error.
  rd_kafka_resp_err_t code{RD_KAFKA_RESP_ERR_NO_ERROR};

  /// Notes what librdkafka told its error callback.
  void take(rd_kafka_t* handle, int error, const char* reason);
};

/// The error that no broker answers; `code` is the result of the request.
[[nodiscard]] Error no_broker(const Reported& reported, rd_kafka_resp_err_t code);

/// Waits until a broker answers, or refuses the login or TLS. Runs the callbacks of the handle.
[[nodiscard]] Status reach(rd_kafka_t* handle, const Reported& reported,
                           std::chrono::milliseconds limit);

}  // namespace outbox::sink::kafka
