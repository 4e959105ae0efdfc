// A connection to Kafka that only asks questions.
//
// Threads: One thread at a time.
// Lifetime: the client keeps its address.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <optional>
#include <outbox/error.hpp>
#include <set>
#include <string>

#include "sink/kafka/config.hpp"
#include "sink/kafka/reported.hpp"

namespace outbox::sink::kafka {

using TopicConfig = std::map<std::string, std::string, std::less<>>;
/// The number in a property's value; 0 if there is none.
[[nodiscard]] std::int64_t parse_number(const std::string& text);

class Brokers {
 public:
  Brokers() = default;
  Brokers(const Brokers&) = delete;
  Brokers& operator=(const Brokers&) = delete;
  Brokers(Brokers&&) = delete;
  Brokers& operator=(Brokers&&) = delete;
  ~Brokers() = default;

  [[nodiscard]] Status connect(Conf conf);
  /// The names of all topics that this user may describe.
  [[nodiscard]] Result<std::set<std::string>> topics();
  /// The smallest number of replicas that a partition of the topic has.
  [[nodiscard]] Result<int> replicas(const std::string& topic);
  /// The topic's configuration; nullopt if this user may not ask.
  [[nodiscard]] std::optional<TopicConfig> config(const std::string& topic);
  /// The configuration of one broker, which all share; nullopt if this user may not ask.
  [[nodiscard]] std::optional<TopicConfig> broker_config();

 private:
  /// What the brokers know of one topic, of all, or, without either, of themselves.
  [[nodiscard]] Result<Metadata> ask(bool all, rd_kafka_topic_t* topic);
  [[nodiscard]] std::optional<TopicConfig> config(rd_kafka_ResourceType_t type,
                                                  const std::string& name);

  Reported reported_;
  Handle handle_;
};

}  // namespace outbox::sink::kafka
