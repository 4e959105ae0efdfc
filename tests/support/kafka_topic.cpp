#include "support/kafka_topic.hpp"

#include <librdkafka/rdkafka.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include "support/shop_options.hpp"

namespace outbox::test {
namespace {

constexpr int kPatienceMs = 30000;

template <auto Free>
struct With {
  template <class T>
  void operator()(T* pointer) const noexcept {
    Free(pointer);
  }
};
using Handle = std::unique_ptr<rd_kafka_t, With<rd_kafka_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, With<rd_kafka_queue_destroy>>;
using AdminEvent = std::unique_ptr<rd_kafka_event_t, With<rd_kafka_event_destroy>>;
using Received = std::unique_ptr<rd_kafka_message_t, With<rd_kafka_message_destroy>>;

void check(rd_kafka_resp_err_t code, const std::string& what) {
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error(what + ": " + rd_kafka_err2str(code));
}

Handle client(rd_kafka_type_t type, const std::string& brokers) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  char why[256];
  const std::map<std::string, std::string> settings = {{"bootstrap.servers", brokers},
                                                       {"group.id", "outbox-test"},
                                                       {"enable.auto.commit", "false"},
                                                       {"auto.offset.reset", "earliest"},
                                                       {"enable.partition.eof", "true"},
                                                       {"isolation.level", "read_uncommitted"},
                                                       {"log_level", "0"}};
  for (const auto& [name, value] : settings) {
    if (type == RD_KAFKA_PRODUCER && name != "bootstrap.servers" && name != "log_level") continue;
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(why);
  }
  Handle made(rd_kafka_new(type, conf, why, sizeof why));
  if (!made) throw std::runtime_error(why);
  return made;
}

/// Waits for the answer to a request of an administrator.
AdminEvent answer(rd_kafka_queue_t* queue, const std::string& what) {
  AdminEvent event(rd_kafka_queue_poll(queue, kPatienceMs));
  if (!event) throw std::runtime_error(what + ": no answer");
  check(rd_kafka_event_error(event.get()), what);
  return event;
}

std::string next_name() {
  static std::atomic<int> count{0};
  return "outbox-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

}  // namespace

KafkaTopic::KafkaTopic(std::string brokers, int partitions,
                       const std::map<std::string, std::string>& settings)
    : brokers_(std::move(brokers)), name_(next_name()), partitions_(partitions) {
  const Handle admin = client(RD_KAFKA_PRODUCER, brokers_);
  const Queue queue(rd_kafka_queue_new(admin.get()));
  char why[256];
  rd_kafka_NewTopic_t* topic =
      rd_kafka_NewTopic_new(name_.c_str(), partitions_, 1, why, sizeof why);
  if (topic == nullptr) throw std::runtime_error(why);
  for (const auto& [setting, value] : settings)
    check(rd_kafka_NewTopic_set_config(topic, setting.c_str(), value.c_str()), setting);
  rd_kafka_CreateTopics(admin.get(), &topic, 1, nullptr, queue.get());
  rd_kafka_NewTopic_destroy(topic);
  const AdminEvent event = answer(queue.get(), "create topic");
  std::size_t results = 0;
  const auto* const* created = rd_kafka_CreateTopics_result_topics(
      rd_kafka_event_CreateTopics_result(event.get()), &results);
  for (std::size_t i = 0; i < results; ++i)
    check(rd_kafka_topic_result_error(created[i]), "create topic");
}

KafkaTopic::~KafkaTopic() {
  try {
    const Handle admin = client(RD_KAFKA_PRODUCER, brokers_);
    const Queue queue(rd_kafka_queue_new(admin.get()));
    rd_kafka_DeleteTopic_t* topic = rd_kafka_DeleteTopic_new(name_.c_str());
    rd_kafka_DeleteTopics(admin.get(), &topic, 1, nullptr, queue.get());
    rd_kafka_DeleteTopic_destroy(topic);
    (void)AdminEvent(rd_kafka_queue_poll(queue.get(), kPatienceMs));
  } catch (const std::exception&) {
    // A topic that stays harms nobody: its name is not used again.
  }
}

void KafkaTopic::set(const std::string& setting, const std::string& value) {
  const Handle admin = client(RD_KAFKA_PRODUCER, brokers_);
  const Queue queue(rd_kafka_queue_new(admin.get()));
  rd_kafka_ConfigResource_t* resource =
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name_.c_str());
  check(rd_kafka_ConfigResource_set_config(resource, setting.c_str(), value.c_str()), setting);
  rd_kafka_AlterConfigs(admin.get(), &resource, 1, nullptr, queue.get());
  rd_kafka_ConfigResource_destroy(resource);
  (void)answer(queue.get(), "change " + setting);
}

std::size_t KafkaTopic::count() const {
  const Handle consumer = client(RD_KAFKA_CONSUMER, brokers_);
  std::size_t count = 0;
  for (int partition = 0; partition < partitions_; ++partition) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    if (rd_kafka_query_watermark_offsets(consumer.get(), name_.c_str(), partition, &low, &high,
                                         5000) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return 0;
    }
    count += static_cast<std::size_t>(high - low);
  }
  return count;
}

std::vector<Delivery> KafkaTopic::all() const {
  const Handle consumer = client(RD_KAFKA_CONSUMER, brokers_);
  rd_kafka_poll_set_consumer(consumer.get());
  std::vector<Delivery> everything;
  for (int partition = 0; partition < partitions_; ++partition) {
    rd_kafka_topic_partition_list_t* assigned = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(assigned, name_.c_str(), partition)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
    check(rd_kafka_assign(consumer.get(), assigned), "assign");
    rd_kafka_topic_partition_list_destroy(assigned);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    for (bool at_end = false; !at_end;) {
      if (std::chrono::steady_clock::now() > until)
        throw std::runtime_error("the topic " + name_ + " cannot be read");
      const Received message(rd_kafka_consumer_poll(consumer.get(), 1000));
      if (!message) continue;
      at_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
      if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
      Delivery delivery;
      delivery.body.assign(static_cast<const char*>(message->payload), message->len);
      delivery.key.assign(static_cast<const char*>(message->key), message->key_len);
      delivery.id = id_in(delivery.body);
      everything.push_back(std::move(delivery));
    }
  }
  return everything;
}

}  // namespace outbox::test
