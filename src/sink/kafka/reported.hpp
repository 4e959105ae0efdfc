// What librdkafka reports beside results: its log, and the errors of connections.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <memory>
#include <outbox/error.hpp>
#include <string>

#include "base/owned.hpp"

namespace outbox::sink::kafka {

struct HandleDelete {
  void operator()(rd_kafka_t* handle) const noexcept;
};
using Handle = std::unique_ptr<rd_kafka_t, HandleDelete>;
using Conf = Owned<rd_kafka_conf_t, rd_kafka_conf_destroy>;
using TopicHandle = Owned<rd_kafka_topic_t, rd_kafka_topic_destroy>;
using Queue = Owned<rd_kafka_queue_t, rd_kafka_queue_destroy>;
using Metadata = Owned<const rd_kafka_metadata_t, rd_kafka_metadata_destroy>;
using Event = Owned<rd_kafka_event_t, rd_kafka_event_destroy>;
using MessagePtr = Owned<rd_kafka_message_t, rd_kafka_message_destroy>;
using AdminOptions = Owned<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>;

/// A client whose log is ours. `whose` says what is configured: "sink".
[[nodiscard]] Result<Handle> make_handle(rd_kafka_type_t type, Conf conf, const char* whose);

/// The last error.
struct Reported {
  std::string text{};  ///< Empty if there was no error.
  rd_kafka_resp_err_t code{RD_KAFKA_RESP_ERR_NO_ERROR};

  /// Makes a client note its errors here. Must outlive the client.
  void listen(rd_kafka_conf_t* conf);
  /// Notes what librdkafka told its error callback.
  void take(rd_kafka_t* handle, int error, const char* reason);
};

/// The error that no broker answers; `code` is the result of the request.
[[nodiscard]] Error no_broker(const Reported& reported, rd_kafka_resp_err_t code);

/// Waits until a broker answers, or refuses the login or TLS. Runs the callbacks of the handle.
[[nodiscard]] Status reach(rd_kafka_t* handle, const Reported& reported,
                           std::chrono::milliseconds limit);

}  // namespace outbox::sink::kafka
