#include "sink/kafka/brokers.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "sink/kafka/error_map.hpp"

namespace outbox::sink::kafka {
namespace {

constexpr std::chrono::milliseconds kLimit{10'000};

}  // namespace

std::int64_t parse_number(const std::string& text) {
  std::int64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Status Brokers::connect(Conf conf) {
  reported_.listen(conf.get());
  OUTBOX_TRY(handle_, make_handle(RD_KAFKA_PRODUCER, std::move(conf), "connection"));
  return reach(handle_.get(), reported_, kLimit);
}

Result<Metadata> Brokers::ask(bool all, rd_kafka_topic_t* topic) {
  const rd_kafka_metadata_t* answer = nullptr;
  const auto code = rd_kafka_metadata(handle_.get(), all ? 1 : 0, topic, &answer,
                                      static_cast<int>(kLimit.count()));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(no_broker(reported_, code));
  return Metadata(answer);
}

Result<std::set<std::string>> Brokers::topics() {
  OUTBOX_TRY(const Metadata answer, ask(true, nullptr));
  std::set<std::string> names;
  for (int i = 0; i < answer->topic_cnt; ++i) names.insert(answer->topics[i].topic);
  return names;
}

Result<int> Brokers::replicas(const std::string& topic) {
  const TopicHandle asked(rd_kafka_topic_new(handle_.get(), topic.c_str(), nullptr));
  OUTBOX_TRY(const Metadata answer, ask(false, asked.get()));
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

std::optional<TopicConfig> Brokers::config(const std::string& topic) {
  return config(RD_KAFKA_RESOURCE_TOPIC, topic);
}

std::optional<TopicConfig> Brokers::broker_config() {
  const auto answer = ask(false, nullptr);
  if (!answer || (*answer)->broker_cnt == 0) return std::nullopt;
  return config(RD_KAFKA_RESOURCE_BROKER, std::to_string((*answer)->brokers[0].id));
}

std::optional<TopicConfig> Brokers::config(rd_kafka_ResourceType_t type, const std::string& name) {
  const Owned<rd_kafka_ConfigResource_t, rd_kafka_ConfigResource_destroy> resource(
      rd_kafka_ConfigResource_new(type, name.c_str()));
  const AdminOptions options(
      rd_kafka_AdminOptions_new(handle_.get(), RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS));
  const Queue queue(rd_kafka_queue_new(handle_.get()));
  rd_kafka_ConfigResource_t* only = resource.get();
  rd_kafka_DescribeConfigs(handle_.get(), &only, 1, options.get(), queue.get());
  const Event event(rd_kafka_queue_poll(queue.get(), static_cast<int>(kLimit.count())));
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

}  // namespace outbox::sink::kafka
