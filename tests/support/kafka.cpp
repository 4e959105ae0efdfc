#include "support/kafka.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <utility>

#include "support/eventually.hpp"
#include "support/failure.hpp"

namespace outbox::test {
namespace {

constexpr int kRequestMs = 30000;
constexpr std::chrono::seconds kReadLimit{60};

using Queue = std::unique_ptr<rd_kafka_queue_t, KafkaDelete<rd_kafka_queue_destroy>>;
using Answer = std::unique_ptr<rd_kafka_event_t, KafkaDelete<rd_kafka_event_destroy>>;
using NewTopic = std::unique_ptr<rd_kafka_NewTopic_t, KafkaDelete<rd_kafka_NewTopic_destroy>>;
using OldRecords =
    std::unique_ptr<rd_kafka_DeleteRecords_t, KafkaDelete<rd_kafka_DeleteRecords_destroy>>;
using Offsets = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                KafkaDelete<rd_kafka_topic_partition_list_destroy>>;
using NewPartitions =
    std::unique_ptr<rd_kafka_NewPartitions_t, KafkaDelete<rd_kafka_NewPartitions_destroy>>;
using OldTopic = std::unique_ptr<rd_kafka_DeleteTopic_t, KafkaDelete<rd_kafka_DeleteTopic_destroy>>;
using Resource =
    std::unique_ptr<rd_kafka_ConfigResource_t, KafkaDelete<rd_kafka_ConfigResource_destroy>>;
using Partitions = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                   KafkaDelete<rd_kafka_topic_partition_list_destroy>>;

void check(rd_kafka_resp_err_t code, const std::string& what, const char* said = nullptr) {
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  give_up(Errc::unavailable, what + ": " + (said != nullptr ? said : rd_kafka_err2str(code)),
          "is the broker up, and its address right?",
          fmt::format("kafka:{}", static_cast<int>(code)));
}

/// Sends an admin request and waits for the answer.
template <class Send>
Answer administer(const std::string& brokers, const std::string& what, const Send& send) {
  const KafkaClient client = kafka_client(RD_KAFKA_PRODUCER, brokers);
  const Queue queue(rd_kafka_queue_new(client.get()));
  send(client.get(), queue.get());
  Answer answer(rd_kafka_queue_poll(queue.get(), kRequestMs));
  check(answer ? rd_kafka_event_error(answer.get()) : RD_KAFKA_RESP_ERR__TIMED_OUT, what,
        answer ? rd_kafka_event_error_string(answer.get()) : nullptr);
  return answer;
}

/// The first and the next offset of a partition.
std::pair<std::int64_t, std::int64_t> offsets(rd_kafka_t* client, const std::string& topic,
                                              int partition, rd_kafka_resp_err_t& code) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  code = rd_kafka_query_watermark_offsets(client, topic.c_str(), partition, &low, &high, 5000);
  return {low, high};
}

/// Retries on any error, because for a while a broker reports various errors for a new topic
/// (unknown, no leader, another leader).
std::int64_t read_end(rd_kafka_t* client, const std::string& topic, int partition) {
  auto code = RD_KAFKA_RESP_ERR_NO_ERROR;
  std::int64_t end = 0;
  (void)eventually(
      [&] {
        end = offsets(client, topic, partition, code).second;
        return code == RD_KAFKA_RESP_ERR_NO_ERROR;
      },
      kReadLimit);
  check(code, "ask for the end of topic " + topic);
  return end;
}

KafkaRecord to_record(const rd_kafka_message_t& message) {
  KafkaRecord record;
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
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    record.headers.emplace(name, std::string(static_cast<const char*>(value), size));
  return record;
}

}  // namespace

KafkaClient kafka_client(rd_kafka_type_t type, const std::string& brokers,
                         const KafkaProperties& properties) {
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  std::array<char, 512> text{};
  rd_kafka_conf_set_log_cb(conf, nullptr);  // errors are returned
  KafkaProperties all = properties;
  all["bootstrap.servers"] = brokers;
  bool good = true;
  for (const auto& [name, value] : all) {
    good = good && rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text.data(), text.size()) ==
                       RD_KAFKA_CONF_OK;
  }
  KafkaClient client(good ? rd_kafka_new(type, conf, text.data(), text.size()) : nullptr);
  if (client) return client;
  rd_kafka_conf_destroy(conf);
  give_up(Errc::invalid_argument, text.data());
}

// ---- writing

KafkaProducer::KafkaProducer(const std::string& brokers, const std::string& topic,
                             const KafkaProperties& properties) {
  KafkaProperties all = properties;
  all.insert({{"enable.idempotence", "true"},
              {"enable.gapless.guarantee", "true"},
              {"acks", "all"},
              {"message.timeout.ms", "0"},
              {"compression.type", "lz4"}});
  client_ = kafka_client(RD_KAFKA_PRODUCER, brokers, all);
  topic_.reset(rd_kafka_topic_new(client_.get(), topic.c_str(), nullptr));
}

bool KafkaProducer::send(const std::string& key, const std::string& value, std::int32_t partition) {
  return rd_kafka_produce(topic_.get(), partition, RD_KAFKA_MSG_F_COPY,
                          const_cast<char*>(value.data()), value.size(), key.data(), key.size(),
                          nullptr) == 0;
}

void KafkaProducer::flush() {
  check(rd_kafka_flush(client_.get(), 2 * kRequestMs), "send to Kafka");
}

// ---- reading

KafkaReader::KafkaReader(const std::string& brokers, std::string topic, int partitions,
                         const KafkaProperties& properties)
    : topic_(std::move(topic)), read_(static_cast<std::size_t>(partitions)) {
  KafkaProperties all = properties;
  all.insert({{"group.id", "outbox-test"},
              {"enable.auto.commit", "false"},
              {"enable.partition.eof", "true"},
              {"isolation.level", "read_uncommitted"},
              {"fetch.wait.max.ms", "20"}});
  client_ = kafka_client(RD_KAFKA_CONSUMER, brokers, all);
  rd_kafka_poll_set_consumer(client_.get());
  const Partitions assigned(rd_kafka_topic_partition_list_new(partitions));
  for (int partition = 0; partition < partitions; ++partition) {
    rd_kafka_topic_partition_list_add(assigned.get(), topic_.c_str(), partition)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
  }
  check(rd_kafka_assign(client_.get(), assigned.get()), "read topic " + topic_);
}

KafkaMessage KafkaReader::poll(int timeout_ms) {
  return KafkaMessage(rd_kafka_consumer_poll(client_.get(), timeout_ms));
}

void KafkaReader::read_to_end(const std::function<void(const rd_kafka_message_t&)>& each) {
  std::vector<std::int64_t> ends;
  for (std::size_t partition = 0; partition < read_.size(); ++partition)
    ends.push_back(read_end(client_.get(), topic_, static_cast<int>(partition)));
  const auto behind = [&] {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (read_[i] < ends[i]) return true;
    }
    return false;
  };
  const auto until = std::chrono::steady_clock::now() + kReadLimit;
  while (behind()) {
    const KafkaMessage message = poll(200);
    const auto code = message ? message->err : RD_KAFKA_RESP_ERR__TIMED_OUT;
    const bool arrived = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    // The end of a partition has an offset, too, which lies behind what compaction or aborted
    // transactions have removed.
    if (arrived || code == RD_KAFKA_RESP_ERR__PARTITION_EOF)
      read_.at(static_cast<std::size_t>(message->partition)) = message->offset + (arrived ? 1 : 0);
    if (arrived) each(*message);
    if (std::chrono::steady_clock::now() > until) check(code, "read topic " + topic_);
  }
}

// ---- the topic

std::string unique_name(const std::string& prefix) {
  static std::atomic<int> count{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("{}-{}-{}-{}", prefix, getpid(), now % 1'000'000'007, ++count);
}

KafkaTopic::~KafkaTopic() {
  if (!made_) return;
  try {
    remove();
  } catch (const std::exception&) {
    // A remaining topic does no harm, because its name is not used again.
  }
}

void KafkaTopic::remove() {
  const OldTopic topic(rd_kafka_DeleteTopic_new(name_.c_str()));
  (void)administer(brokers_, "delete topic " + name_, [&](auto* client, auto* queue) {
    rd_kafka_DeleteTopic_t* all[] = {topic.get()};
    rd_kafka_DeleteTopics(client, all, 1, nullptr, queue);
  });
  made_ = false;
}

void KafkaTopic::create(int partitions, const KafkaProperties& settings) {
  std::array<char, 256> text{};
  // -1 stands for the broker's default number of replicas.
  const NewTopic topic(
      rd_kafka_NewTopic_new(name_.c_str(), partitions, -1, text.data(), text.size()));
  if (!topic) give_up(Errc::invalid_argument, text.data());
  for (const auto& [setting, value] : settings)
    check(rd_kafka_NewTopic_set_config(topic.get(), setting.c_str(), value.c_str()), setting);
  const std::string what = "make topic " + name_;
  const Answer answer = administer(brokers_, what, [&](auto* client, auto* queue) {
    rd_kafka_NewTopic_t* all[] = {topic.get()};
    rd_kafka_CreateTopics(client, all, 1, nullptr, queue);
  });
  // A request may succeed although its result for the topic is an error.
  std::size_t count = 0;
  const auto* const* results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(answer.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    check(rd_kafka_topic_result_error(results[i]), what,
          rd_kafka_topic_result_error_string(results[i]));
  }
  made_ = true;
  partitions_ = partitions;
  await_partitions(partitions);
}

void KafkaTopic::await_partitions(int partitions) const {
  const KafkaClient client = kafka_client(RD_KAFKA_PRODUCER, brokers_);
  for (int partition = 0; partition < partitions; ++partition)
    (void)read_end(client.get(), name_, partition);
}

void KafkaTopic::remove_before(int partition, std::int64_t offset) const {
  const Offsets offsets(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(offsets.get(), name_.c_str(), partition)->offset = offset;
  const OldRecords records(rd_kafka_DeleteRecords_new(offsets.get()));
  (void)administer(brokers_, "remove messages of topic " + name_, [&](auto* client, auto* queue) {
    rd_kafka_DeleteRecords_t* all[] = {records.get()};
    rd_kafka_DeleteRecords(client, all, 1, nullptr, queue);
  });
}

void KafkaTopic::grow(int partitions) const {
  std::array<char, 256> text{};
  const NewPartitions more(rd_kafka_NewPartitions_new(
      name_.c_str(), static_cast<std::size_t>(partitions), text.data(), text.size()));
  if (!more) give_up(Errc::invalid_argument, text.data());
  (void)administer(brokers_, "add partitions to topic " + name_, [&](auto* client, auto* queue) {
    rd_kafka_NewPartitions_t* all[] = {more.get()};
    rd_kafka_CreatePartitions(client, all, 1, nullptr, queue);
  });
  await_partitions(partitions);
}

void KafkaTopic::adopt(int partitions) {
  made_ = true;
  partitions_ = partitions;
}

void KafkaTopic::change(const KafkaProperties& settings) const {
  const Resource resource(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name_.c_str()));
  for (const auto& [setting, value] : settings) {
    check(rd_kafka_ConfigResource_set_config(resource.get(), setting.c_str(), value.c_str()),
          setting);
  }
  (void)administer(brokers_, "change topic " + name_, [&](auto* client, auto* queue) {
    rd_kafka_ConfigResource_t* all[] = {resource.get()};
    rd_kafka_AlterConfigs(client, all, 1, nullptr, queue);
  });
}

SubscriptionSpec KafkaTopic::subscription(const std::string& name) const {
  SubscriptionSpec spec{.name = name, .sink = "kafka"};
  spec.topic = name_;
  spec.sink_settings["brokers"] = brokers_;
  return spec;
}

std::size_t KafkaTopic::count() const {
  const KafkaClient client = kafka_client(RD_KAFKA_PRODUCER, brokers_);
  std::size_t count = 0;
  for (int partition = 0; partition < partitions_; ++partition) {
    auto code = RD_KAFKA_RESP_ERR_NO_ERROR;
    const auto [low, high] = offsets(client.get(), name_, partition, code);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return 0;
    count += static_cast<std::size_t>(high - low);
  }
  return count;
}

std::vector<KafkaRecord> KafkaTopic::read() const {
  std::vector<KafkaRecord> records;
  KafkaReader(brokers_, name_, partitions_).read_to_end([&](const rd_kafka_message_t& message) {
    records.push_back(to_record(message));
  });
  return records;
}

}  // namespace outbox::test
