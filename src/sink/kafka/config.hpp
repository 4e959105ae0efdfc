// The settings of a Kafka sink, and the librdkafka configuration made from them. Settings that
// would lose or reorder events are refused here.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.hpp"
#include "sink/kafka/reported.hpp"
#include "sink/kind.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::kafka {

/// The prefix of CloudEvents attributes in headers: Kafka protocol binding, 3.2.3.1.
inline constexpr std::string_view kAttributePrefix = "ce_";

/// How missing topics are made.
struct NewTopics {
  std::size_t partitions{0};   ///< With 0 topics are not made.
  std::size_t replication{0};  ///< With 0 the brokers' default applies.
};

struct KafkaSettings {
  std::string brokers;
  bool encrypted{false};
  std::string username{};
  std::string password{};
  std::string mechanism{"SCRAM-SHA-512"};
  TlsSettings tls{};
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  std::chrono::microseconds delivery_deadline{std::chrono::seconds(10)};
  std::chrono::microseconds linger{std::chrono::milliseconds(1)};
  std::size_t max_in_flight{2000};
  NewTopics create{};
  Texts properties{};  ///< Properties of librdkafka.
};

/// Sets the property. The error is librdkafka's, for an unknown property or a refused value.
[[nodiscard]] std::optional<FieldError> set_property(rd_kafka_conf_t* conf, std::string_view name,
                                                     const std::string& value);

/// Opens nothing; the files that ssl.* name are read when the sink is opened.
[[nodiscard]] Conf make_conf(const KafkaSettings& settings, FieldErrors& errors);

/// The value of a property whose values are short; empty if it has none.
[[nodiscard]] std::string property(const rd_kafka_conf_t& conf, const char* name);

/// The rows of the settings and their checks.
[[nodiscard]] const Declaration<KafkaSettings>& declaration();

/// What the settings leave open to whoever controls the network.
[[nodiscard]] std::vector<Weakness> find_weaknesses(const KafkaSettings& settings,
                                                    const rd_kafka_conf_t& conf);

/// Whether the property's value is the path of a file.
[[nodiscard]] bool names_file(std::string_view property, std::string_view value);
/// Whether the property's value may be a secret.
[[nodiscard]] bool is_secret(std::string_view property);

/// What the brokers and the topic promise: replication, and the topic's configuration as far as
/// this user may ask for it.
[[nodiscard]] Result<Inspection> inspect(KafkaSettings settings, const SubscriptionSpec& spec);

}  // namespace outbox::sink::kafka
