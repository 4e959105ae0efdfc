#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "format/template.hpp"
#include "sink/kafka/brokers.hpp"
#include "sink/kafka/config.hpp"

namespace outbox::sink::kafka {
namespace {

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
  OUTBOX_TRY(Conf conf, read_valid(make_conf, settings));
  OUTBOX_TRY(const format::Template topic, format::Template::compile("topic", spec.topic));
  Inspection found{.destination = settings.brokers,
                   .acked = "all in-sync replicas have it",
                   .duplicates = "after a crash of the relay, a takeover or a lost answer",
                   .order = "of each key in a topic",
                   .weaknesses = find_weaknesses(settings, *conf)};
  limit_messages("kafka.message.max.bytes", parse_number(property(*conf, "message.max.bytes")),
                 "raise message.max.bytes of this sink, and max.message.bytes of the topic", found);
  if (settings.properties.contains("message.max.bytes")) found.own = found.largest;
  Brokers brokers;
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
