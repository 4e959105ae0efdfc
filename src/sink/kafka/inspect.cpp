#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "format/template.hpp"
#include "sink/kafka/config.hpp"
#include "sink/kafka/error_map.hpp"
#include "sink/kafka/reported.hpp"

namespace outbox::sink::kafka {
namespace {

constexpr std::chrono::milliseconds kInspectLimit{10'000};

using TopicConfig = std::map<std::string, std::string, std::less<>>;

struct ConfigResourceDelete {
  void operator()(rd_kafka_ConfigResource_t* resource) const noexcept {
    rd_kafka_ConfigResource_destroy(resource);
  }
};

/// A connection that only asks questions.
class Brokers {
 public:
  [[nodiscard]] Status connect(Conf conf) {
    log_to_ours(conf.get());
    rd_kafka_conf_set_opaque(conf.get(), &reported_);
    rd_kafka_conf_set_error_cb(
        conf.get(), [](rd_kafka_t* handle, int code, const char* reason, void* reported) {
          static_cast<Reported*>(reported)->take(handle, code, reason);
        });
    char why[512] = "";
    handle_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), why, sizeof why));
    if (!handle_) {
      return fail(Errc::invalid_argument, std::string("kafka: ") + why,
                  "check the settings of this sink");
    }
    (void)conf.release();  // The handle owns it now.
    return reach(handle_.get(), reported_, kInspectLimit);
  }

  /// The smallest number of replicas that a partition of the topic has.
  [[nodiscard]] Result<int> replicas(const std::string& topic) {
    const std::unique_ptr<rd_kafka_topic_t, TopicDelete> asked(
        rd_kafka_topic_new(handle_.get(), topic.c_str(), nullptr));
    const rd_kafka_metadata_t* answer = nullptr;
    const auto code = rd_kafka_metadata(handle_.get(), 0, asked.get(), &answer,
                                        static_cast<int>(kInspectLimit.count()));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(no_broker(reported_, code));
    const std::unique_ptr<const rd_kafka_metadata_t, MetadataDelete> owned(answer);
    if (answer->topic_cnt != 1) return fail(describe(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, topic));
    const rd_kafka_metadata_topic& found = answer->topics[0];
    if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(describe(found.err, topic));
    if (found.partition_cnt == 0)
      return fail(describe(RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, topic));
    int least = found.partitions[0].replica_cnt;
    for (int i = 1; i < found.partition_cnt; ++i)
      least = std::min(least, found.partitions[i].replica_cnt);
    return least;
  }

  /// The topic's configuration; nullopt if this user may not ask.
  [[nodiscard]] std::optional<TopicConfig> config(const std::string& topic) {
    return config(RD_KAFKA_RESOURCE_TOPIC, topic);
  }

  /// The configuration of one broker, which all share; nullopt if this user may not ask.
  [[nodiscard]] std::optional<TopicConfig> broker_config() {
    const rd_kafka_metadata_t* answer = nullptr;
    const auto code = rd_kafka_metadata(handle_.get(), 0, nullptr, &answer,
                                        static_cast<int>(kInspectLimit.count()));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return std::nullopt;
    const std::unique_ptr<const rd_kafka_metadata_t, MetadataDelete> owned(answer);
    if (answer->broker_cnt == 0) return std::nullopt;
    return config(RD_KAFKA_RESOURCE_BROKER, std::to_string(answer->brokers[0].id));
  }

 private:
  [[nodiscard]] std::optional<TopicConfig> config(rd_kafka_ResourceType_t type,
                                                  const std::string& name) {
    const std::unique_ptr<rd_kafka_ConfigResource_t, ConfigResourceDelete> resource(
        rd_kafka_ConfigResource_new(type, name.c_str()));
    const std::unique_ptr<rd_kafka_AdminOptions_t, AdminOptionsDelete> options(
        rd_kafka_AdminOptions_new(handle_.get(), RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS));
    const std::unique_ptr<rd_kafka_queue_t, QueueDelete> queue(rd_kafka_queue_new(handle_.get()));
    rd_kafka_ConfigResource_t* only = resource.get();
    rd_kafka_DescribeConfigs(handle_.get(), &only, 1, options.get(), queue.get());
    const std::unique_ptr<rd_kafka_event_t, EventDelete> event(
        rd_kafka_queue_poll(queue.get(), static_cast<int>(kInspectLimit.count())));
    const auto* const result = event ? rd_kafka_event_DescribeConfigs_result(event.get()) : nullptr;
    if (result == nullptr || rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR)
      return std::nullopt;
    std::size_t count = 0;
    const auto* const described = rd_kafka_DescribeConfigs_result_resources(result, &count);
    if (count != 1 || rd_kafka_ConfigResource_error(described[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
      return std::nullopt;
    const auto* const entries = rd_kafka_ConfigResource_configs(described[0], &count);
    TopicConfig config;
    for (std::size_t i = 0; i < count; ++i) {
      const char* const value = rd_kafka_ConfigEntry_value(entries[i]);
      config.emplace(rd_kafka_ConfigEntry_name(entries[i]), value == nullptr ? "" : value);
    }
    return config;
  }

  Reported reported_;
  std::unique_ptr<rd_kafka_t, HandleDelete> handle_;
};

void check_replicas(int replicas, Inspection& found) {
  if (replicas >= 3) return;
  found.weaknesses.push_back(
      {fmt::format("replication factor {}", replicas),
       replicas == 1 ? "events are lost with the disk of one broker"
                     : "with one broker down, events are lost with the disk of the other",
       "replication factor 3 and min.insync.replicas 2"});
}

void check_config(const TopicConfig& config, Inspection& found) {
  const auto value = [&](std::string_view name) {
    const auto at = config.find(name);
    return at == config.end() ? std::string() : at->second;
  };
  if (value("min.insync.replicas") == "1") {
    found.weaknesses.push_back({"min.insync.replicas 1",
                                "while other replicas lag, acked events are on one broker only",
                                "min.insync.replicas 2"});
  }
  if (value("unclean.leader.election.enable") == "true") {
    found.weaknesses.push_back({"unclean.leader.election.enable true",
                                "acked events are lost when a replica that lags becomes the leader",
                                "unclean.leader.election.enable false"});
  }
  if (value("cleanup.policy").find("compact") != std::string::npos) {
    found.weaknesses.push_back({"cleanup.policy " + value("cleanup.policy"),
                                "only the last event of each key is kept",
                                "cleanup.policy delete, if consumers need each event"});
  }
}

std::int64_t parse_number(const std::string& text) {
  std::int64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Keeps the smaller one of two limits.
void limit_messages(const char* setting, std::int64_t bytes, const char* hint, Inspection& found) {
  if (bytes <= 0 || (found.largest && found.largest->bytes <= bytes)) return;
  found.largest = {setting, bytes, hint};
}

/// Looks up the limit of topics that have none of their own.
void look_at_broker(Brokers& brokers, Inspection& found) {
  const auto config = brokers.broker_config();
  if (!config) return;
  if (const auto at = config->find("message.max.bytes"); at != config->end())
    limit_messages("message.max.bytes of the brokers", parse_number(at->second),
                   "raise message.max.bytes of the brokers, or max.message.bytes of the topics",
                   found);
}

/// Fails if fewer replicas exist than must be in sync: no event would ever be acked.
Status check_in_sync(const TopicConfig& config, int replicas, const std::string& topic) {
  const auto at = config.find("min.insync.replicas");
  if (at == config.end() || parse_number(at->second) <= replicas) return {};
  return fail(Errc::unsupported,
              fmt::format("kafka: topic {}: min.insync.replicas is {}, but it has {} replica{}",
                          topic, at->second, replicas, replicas == 1 ? "" : "s"),
              "more replicas (kafka-reassign-partitions.sh), or a smaller min.insync.replicas");
}

Status look_at_topic(Brokers& brokers, const std::string& topic, Inspection& found) {
  found.destination += ", topic " + topic;
  OUTBOX_TRY(const int replicas, brokers.replicas(topic));
  check_replicas(replicas, found);
  if (const auto config = brokers.config(topic)) {
    OUTBOX_TRY(check_in_sync(*config, replicas, topic));
    check_config(*config, found);
    if (const auto at = config->find("max.message.bytes"); at != config->end())
      limit_messages("max.message.bytes of the topic", parse_number(at->second),
                     "raise max.message.bytes of the topic", found);
  } else {
    found.weaknesses.push_back({"the user may not ask for the topic's configuration",
                                "min.insync.replicas and others are not checked",
                                "give it the right DescribeConfigs"});
  }
  return {};
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::inspect
Result<Inspection> inspect(KafkaSettings settings, const SubscriptionSpec& spec) {
  FieldErrors errors;
  Conf conf = make_conf(settings, errors);
  OUTBOX_TRY(errors.status());
  OUTBOX_TRY(const format::Template topic, format::Template::compile("topic", spec.topic));
  Inspection found{.destination = settings.brokers,
                   .acked = "all in-sync replicas have it",
                   .duplicates = "after a crash of the relay, a takeover or a lost answer",
                   .order = "of each key in a topic",
                   .weaknesses = find_weaknesses(settings, *conf)};
  limit_messages("kafka.message.max.bytes", parse_number(property(*conf, "message.max.bytes")),
                 "raise message.max.bytes of this sink, and max.message.bytes of the topic", found);
  if (settings.properties.contains("message.max.bytes")) found.own = found.largest;
  Brokers brokers;  // Declared first, because the client keeps its address.
  OUTBOX_TRY(brokers.connect(std::move(conf)));
  const auto name = topic.fixed();
  if (!name) {  // The topics depend on the events.
    look_at_broker(brokers, found);
    return found;
  }
  OUTBOX_TRY(look_at_topic(brokers, *name, found));
  return found;
}

}  // namespace outbox::sink::kafka
