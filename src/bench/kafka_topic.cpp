#include "bench/kafka_topic.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/error.hpp"

namespace outbox::bench {
namespace {

constexpr int kAdminTimeoutMs = 10000;

Error kafka_error(const std::string& what, rd_kafka_resp_err_t code) {
  return Error{.code = Errc::unavailable,
               .remedy = Remedy::fix,
               .effect = Effect::none,
               .message = what + ": " + rd_kafka_err2str(code),
               .hint = "is the broker up, and --brokers right?",
               .origin = fmt::format("kafka:{}", static_cast<int>(code))};
}

struct DestroyQueue {
  void operator()(rd_kafka_queue_t* queue) const { rd_kafka_queue_destroy(queue); }
};
struct DestroyEvent {
  void operator()(rd_kafka_event_t* event) const { rd_kafka_event_destroy(event); }
};

}  // namespace

Result<KafkaClient> make_client(
    rd_kafka_type_t type, std::initializer_list<std::pair<const char*, std::string>> properties) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  char text[512];
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name, value.c_str(), text, sizeof text) != RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      return fail(Errc::invalid_argument, text);
    }
  }
  rd_kafka_conf_set_log_cb(conf, nullptr);  // errors come as return values
  rd_kafka_t* client = rd_kafka_new(type, conf, text, sizeof text);
  if (client == nullptr) {
    rd_kafka_conf_destroy(conf);
    return fail(Errc::invalid_argument, text);
  }
  return KafkaClient(client);
}

Result<std::unique_ptr<KafkaTopic>> KafkaTopic::create(const std::string& brokers,
                                                       const std::string& prefix) {
  const auto stamp = std::chrono::system_clock::now().time_since_epoch().count();
  std::unique_ptr<KafkaTopic> topic(
      new KafkaTopic(brokers, fmt::format("{}-{}-{}", prefix, getpid(), stamp)));
  if (Status status = topic->administer(true); !status) return pass(status);
  // The broker has made it and leads it a little later; that is not to be measured.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kAdminTimeoutMs);
  auto count = topic->count();
  while (!count && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    count = topic->count();
  }
  if (!count) return pass(count);
  return topic;
}

KafkaTopic::~KafkaTopic() { (void)administer(false); }

Status KafkaTopic::administer(bool create) {
  auto client = make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", brokers_}});
  if (!client) return pass(client);
  const std::unique_ptr<rd_kafka_queue_t, DestroyQueue> queue(rd_kafka_queue_new(client->get()));
  if (create) {
    char text[256];
    rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(name_.c_str(), 1, 1, text, sizeof text);
    rd_kafka_CreateTopics(client->get(), &wanted, 1, nullptr, queue.get());
    rd_kafka_NewTopic_destroy(wanted);
  } else {
    rd_kafka_DeleteTopic_t* gone = rd_kafka_DeleteTopic_new(name_.c_str());
    rd_kafka_DeleteTopics(client->get(), &gone, 1, nullptr, queue.get());
    rd_kafka_DeleteTopic_destroy(gone);
  }
  const std::unique_ptr<rd_kafka_event_t, DestroyEvent> event(
      rd_kafka_queue_poll(queue.get(), kAdminTimeoutMs));
  if (!event) return fail(kafka_error("administer topic " + name_, RD_KAFKA_RESP_ERR__TIMED_OUT));
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return fail(kafka_error("administer topic " + name_, rd_kafka_event_error(event.get())));
  }
  return {};
}

SubscriptionSpec KafkaTopic::subscription(const std::string& name) const {
  SubscriptionSpec spec{.name = name, .sink = "kafka"};
  spec.topic = name_;
  spec.sink_settings["brokers"] = brokers_;
  return spec;
}

Result<std::int64_t> KafkaTopic::count() {
  auto client = make_client(RD_KAFKA_CONSUMER,
                            {{"bootstrap.servers", brokers_}, {"group.id", "outbox-bench"}});
  if (!client) return pass(client);
  std::int64_t low = 0;
  std::int64_t high = 0;
  const auto error = rd_kafka_query_watermark_offsets(client->get(), name_.c_str(), 0, &low, &high,
                                                      kAdminTimeoutMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(kafka_error("count messages", error));
  return high - low;
}

Result<double> KafkaTopic::bare_produce(std::int64_t messages) {
  auto client = make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", brokers_},
                                                {"enable.idempotence", "true"},
                                                {"enable.gapless.guarantee", "true"},
                                                {"acks", "all"},
                                                {"message.timeout.ms", "0"},
                                                {"linger.ms", "5"},
                                                {"batch.size", "1000000"},
                                                {"compression.type", "lz4"},
                                                {"queue.buffering.max.messages", "100000"}});
  if (!client) return pass(client);
  rd_kafka_topic_t* topic = rd_kafka_topic_new(client->get(), name_.c_str(), nullptr);
  const std::string body(200, 'x');
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < messages; ++i) {
    std::string key = std::to_string(i % 10000);
    while (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, const_cast<char*>(body.data()),
                            body.size(), key.data(), key.size(), nullptr) != 0) {
      rd_kafka_poll(client->get(), 1);
    }
    if (i % 1000 == 0) rd_kafka_poll(client->get(), 0);
  }
  const auto flushed = rd_kafka_flush(client->get(), 60000);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rd_kafka_topic_destroy(topic);
  if (flushed != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(kafka_error("flush", flushed));
  return static_cast<double>(messages) / seconds;
}

}  // namespace outbox::bench
