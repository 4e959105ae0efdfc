#include "integration/kafka/broker.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>

#include "support/eventually.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

constexpr int kAdminTimeoutMs = 30000;

template <auto Free>
struct Delete {
  template <class T>
  void operator()(T* what) const {
    Free(what);
  }
};
using Handle = std::unique_ptr<rd_kafka_t, Delete<rd_kafka_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Delete<rd_kafka_queue_destroy>>;
using AdminOptions =
    std::unique_ptr<rd_kafka_AdminOptions_t, Delete<rd_kafka_AdminOptions_destroy>>;
using AdminEvent = std::unique_ptr<rd_kafka_event_t, Delete<rd_kafka_event_destroy>>;
using Partitions =
    std::unique_ptr<rd_kafka_topic_partition_list_t, Delete<rd_kafka_topic_partition_list_destroy>>;
using TopicHandle = std::unique_ptr<rd_kafka_topic_t, Delete<rd_kafka_topic_destroy>>;
using Metadata = std::unique_ptr<const rd_kafka_metadata_t, Delete<rd_kafka_metadata_destroy>>;
using ReadMessage = std::unique_ptr<rd_kafka_message_t, Delete<rd_kafka_message_destroy>>;

Handle connect(rd_kafka_type_t type) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 256> why{};
  const auto set = [&](const char* name, const std::string& value) {
    EXPECT_EQ(rd_kafka_conf_set(conf, name, value.c_str(), why.data(), why.size()),
              RD_KAFKA_CONF_OK)
        << why.data();
  };
  set("bootstrap.servers", kafka_brokers().value_or(""));
  set("log_level", "0");
  if (type == RD_KAFKA_CONSUMER) {
    set("group.id", "outbox-tests");
    set("enable.auto.commit", "false");
    set("enable.partition.eof", "true");
    set("fetch.wait.max.ms", "10");
  }
  Handle made(rd_kafka_new(type, conf, why.data(), why.size()));
  EXPECT_NE(made, nullptr) << why.data();
  return made;
}

/// Runs one admin request and expects that it worked.
void administer(
    rd_kafka_admin_op_t operation,
    const std::function<void(rd_kafka_t*, rd_kafka_AdminOptions_t*, rd_kafka_queue_t*)>& request) {
  const Handle handle = connect(RD_KAFKA_PRODUCER);
  const AdminOptions options(rd_kafka_AdminOptions_new(handle.get(), operation));
  std::array<char, 256> why{};
  rd_kafka_AdminOptions_set_operation_timeout(options.get(), kAdminTimeoutMs, why.data(),
                                              why.size());
  const Queue queue(rd_kafka_queue_new(handle.get()));
  request(handle.get(), options.get(), queue.get());
  const AdminEvent event(rd_kafka_queue_poll(queue.get(), 2 * kAdminTimeoutMs));
  ASSERT_NE(event, nullptr) << "the broker does not answer";
  ASSERT_EQ(rd_kafka_event_error(event.get()), RD_KAFKA_RESP_ERR_NO_ERROR)
      << rd_kafka_event_error_string(event.get());
  if (operation != RD_KAFKA_ADMIN_OP_CREATETOPICS) return;
  std::size_t count = 0;
  const auto* results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(rd_kafka_topic_result_error(results[i]), RD_KAFKA_RESP_ERR_NO_ERROR)
        << rd_kafka_topic_result_error_string(results[i]);
  }
}

std::string fresh_name() {
  static std::atomic<int> count{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("outbox-test-{}-{}-{}", ::getpid(), now % 1'000'000'007, ++count);
}

KafkaTopic::Record record_of(const rd_kafka_message_t& message) {
  KafkaTopic::Record record;
  record.partition = message.partition;
  if (message.key != nullptr)
    record.key.emplace(static_cast<const char*>(message.key), message.key_len);
  if (message.payload != nullptr)
    record.value.emplace(static_cast<const char*>(message.payload), message.len);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return record;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    record.headers.emplace(name, std::string(static_cast<const char*>(value), size));
  }
  return record;
}

}  // namespace

std::optional<std::string> kafka_brokers() { return environment("OUTBOX_TEST_KAFKA"); }

KafkaTopic::KafkaTopic() : name_(fresh_name()) {}

KafkaTopic::KafkaTopic(int partitions, const TopicConfig& config) : KafkaTopic() {
  create(partitions, config);
}

KafkaTopic::~KafkaTopic() {
  if (partitions_ == 0) return;
  administer(RD_KAFKA_ADMIN_OP_DELETETOPICS, [this](auto* handle, auto* options, auto* queue) {
    rd_kafka_DeleteTopic_t* topic = rd_kafka_DeleteTopic_new(name_.c_str());
    rd_kafka_DeleteTopics(handle, &topic, 1, options, queue);
    rd_kafka_DeleteTopic_destroy(topic);
  });
}

void KafkaTopic::create(int partitions, const TopicConfig& config) {
  administer(RD_KAFKA_ADMIN_OP_CREATETOPICS, [&](auto* handle, auto* options, auto* queue) {
    rd_kafka_NewTopic_t* topic = rd_kafka_NewTopic_new(name_.c_str(), partitions, 1, nullptr, 0);
    for (const auto& [name, value] : config)
      rd_kafka_NewTopic_set_config(topic, name.c_str(), value.c_str());
    rd_kafka_CreateTopics(handle, &topic, 1, options, queue);
    rd_kafka_NewTopic_destroy(topic);
  });
  partitions_ = partitions;
  wait_until_known();
}

/// What the controller has made, the broker learns of a little later.
void KafkaTopic::wait_until_known() const {
  const Handle handle = connect(RD_KAFKA_PRODUCER);
  const TopicHandle topic(rd_kafka_topic_new(handle.get(), name_.c_str(), nullptr));
  EXPECT_TRUE(eventually([&] {
    const rd_kafka_metadata_t* seen = nullptr;
    if (rd_kafka_metadata(handle.get(), 0, topic.get(), &seen, kAdminTimeoutMs) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
      return false;
    const Metadata metadata(seen);
    if (seen->topic_cnt != 1 || seen->topics[0].partition_cnt != partitions_) return false;
    const std::span partitions(seen->topics[0].partitions, static_cast<std::size_t>(partitions_));
    // A leader that is named need not lead yet.
    return std::all_of(partitions.begin(), partitions.end(), [&](const auto& partition) {
      std::int64_t low = 0;
      std::int64_t high = 0;
      return partition.leader >= 0 &&
             rd_kafka_query_watermark_offsets(handle.get(), name_.c_str(), partition.id, &low,
                                              &high, kAdminTimeoutMs) == RD_KAFKA_RESP_ERR_NO_ERROR;
    });
  })) << name_
      << " is made and does not appear";
}

void KafkaTopic::change(const TopicConfig& config) const {
  administer(RD_KAFKA_ADMIN_OP_ALTERCONFIGS, [&](auto* handle, auto* options, auto* queue) {
    rd_kafka_ConfigResource_t* topic =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name_.c_str());
    for (const auto& [name, value] : config)
      rd_kafka_ConfigResource_set_config(topic, name.c_str(), value.c_str());
    rd_kafka_AlterConfigs(handle, &topic, 1, options, queue);
    rd_kafka_ConfigResource_destroy(topic);
  });
}

std::vector<KafkaTopic::Record> KafkaTopic::read() const {
  const Handle consumer = connect(RD_KAFKA_CONSUMER);
  rd_kafka_poll_set_consumer(consumer.get());
  const Partitions assignment(rd_kafka_topic_partition_list_new(partitions_));
  for (int partition = 0; partition < partitions_; ++partition) {
    rd_kafka_topic_partition_list_add(assignment.get(), name_.c_str(), partition)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
  }
  EXPECT_EQ(rd_kafka_assign(consumer.get(), assignment.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  std::vector<Record> records;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int ended = 0; ended < partitions_ && std::chrono::steady_clock::now() < until;) {
    const ReadMessage message(rd_kafka_consumer_poll(consumer.get(), 100));
    if (!message) continue;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      ++ended;
    } else if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      records.push_back(record_of(*message));
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now(), until) << "the topic could not be read to its end";
  rd_kafka_consumer_close(consumer.get());
  return records;
}

std::vector<Arrived> KafkaTopic::arrived() const {
  std::vector<Arrived> all;
  for (const Record& record : read()) {
    const auto id = record.headers.find("outbox-id");
    all.push_back({.id = id == record.headers.end() ? "" : id->second,
                   .key = record.key,
                   .body = record.value.value_or("(null)")});
  }
  return all;
}

}  // namespace outbox::test
