// From the settings of a Kafka sink to a librdkafka configuration. What would lose or reorder events is refused here.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <memory>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

#include "sink/registry.hpp"
#include "sink/settings.hpp"

namespace outbox::sink::kafka {

struct ConfDelete {
  void operator()(rd_kafka_conf_t* conf) const noexcept { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, ConfDelete>;

/// The sink's own settings, for the registry and docs/reference.
[[nodiscard]] SinkInfo info();

/// Refuses a property or a value that librdkafka does not know.
[[nodiscard]] Status set_property(rd_kafka_conf_t* conf, std::string_view name,
                                  const std::string& value);

/// The network sees the password as it is: SASL PLAIN without TLS.
[[nodiscard]] bool sends_password_in_clear(const rd_kafka_conf_t& conf);
/// The property batch.size.
[[nodiscard]] std::size_t configured_batch_bytes(const rd_kafka_conf_t& conf);

/// Opens nothing; files named by ssl.* are first read when the sink is opened.
[[nodiscard]] Result<Conf> make_conf(const Settings& settings);

}  // namespace outbox::sink::kafka
