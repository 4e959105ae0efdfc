// A topic of its own on a Kafka broker, read back by a plain consumer.
#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <array>
#include <chrono>
#include <initializer_list>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "demo/destination.hpp"

namespace outbox::demo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPartitions = 3;
constexpr int kAdminTimeoutMs = 15000;
constexpr std::chrono::seconds kReadLimit{30};
constexpr int kPollMs = 200;

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* thing) const {
    destroy(thing);
  }
};
using Client = std::unique_ptr<rd_kafka_t, Destroy<rd_kafka_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Destroy<rd_kafka_queue_destroy>>;
using AdminAnswer = std::unique_ptr<rd_kafka_event_t, Destroy<rd_kafka_event_destroy>>;
using Message = std::unique_ptr<rd_kafka_message_t, Destroy<rd_kafka_message_destroy>>;
using Partitions = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                   Destroy<rd_kafka_topic_partition_list_destroy>>;

Error trouble(const std::string& what, const std::string& said, rd_kafka_resp_err_t code) {
  return Error{.code = Errc::unavailable,
               .remedy = Remedy::fix,
               .effect = Effect::none,
               .message = what + ": " + said,
               .hint = "is the broker up, and --brokers right?",
               .origin = fmt::format("kafka:{}", static_cast<int>(code))};
}

Error trouble(const std::string& what, rd_kafka_resp_err_t code) {
  return trouble(what, rd_kafka_err2str(code), code);
}

using Properties = std::initializer_list<std::pair<const char*, std::string>>;

Result<Client> make_client(rd_kafka_type_t type, Properties properties) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 512> text{};
  // Its log goes nowhere: what matters comes back as an error.
  rd_kafka_conf_set_log_cb(conf, nullptr);
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name, value.c_str(), text.data(), text.size()) !=
        RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      return fail(Errc::invalid_argument, text.data());
    }
  }
  rd_kafka_t* const client = rd_kafka_new(type, conf, text.data(), text.size());
  if (client == nullptr) {
    rd_kafka_conf_destroy(conf);
    return fail(Errc::invalid_argument, text.data());
  }
  return Client(client);
}

class KafkaReading final : public Reading {
 public:
  KafkaReading(Client client, std::string topic)
      : client_(std::move(client)), topic_(std::move(topic)) {}

  Status assign() {
    const Partitions all(rd_kafka_topic_partition_list_new(kPartitions));
    for (int partition = 0; partition < kPartitions; ++partition) {
      rd_kafka_topic_partition_list_add(all.get(), topic_.c_str(), partition)->offset =
          RD_KAFKA_OFFSET_BEGINNING;
    }
    const auto code = rd_kafka_assign(client_.get(), all.get());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(trouble("read topic " + topic_, code));
    return {};
  }

  /// Up to what the broker says is the end now.
  Status next(const Each& each) override {
    std::array<std::int64_t, kPartitions> ends{};
    for (int partition = 0; partition < kPartitions; ++partition) {
      const auto code = ask_for_end(partition, ends.at(static_cast<std::size_t>(partition)));
      if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return fail(trouble("ask for the end of topic " + topic_, code));
    }
    const auto until = Clock::now() + kReadLimit;
    while (!reached(ends)) {
      const Message message(rd_kafka_consumer_poll(client_.get(), kPollMs));
      if (message && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        read_.at(static_cast<std::size_t>(message->partition)) = message->offset + 1;
        each(parse_order({static_cast<const char*>(message->payload), message->len}));
      } else if (Clock::now() > until) {
        return fail(
            trouble("read topic " + topic_, message ? message->err : RD_KAFKA_RESP_ERR__TIMED_OUT));
      }
    }
    return {};
  }

 private:
  /// A broker that has made a topic does not know its partitions at once, and says so in several ways (a leader that is none
  /// yet, or another one). So whatever it says is asked again.
  rd_kafka_resp_err_t ask_for_end(int partition, std::int64_t& end) {
    const auto until = Clock::now() + kReadLimit;
    while (true) {
      std::int64_t beginning = 0;
      const auto code = rd_kafka_query_watermark_offsets(client_.get(), topic_.c_str(), partition,
                                                         &beginning, &end, kAdminTimeoutMs);
      if (code == RD_KAFKA_RESP_ERR_NO_ERROR || Clock::now() > until) return code;
      std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
    }
  }

  [[nodiscard]] bool reached(const std::array<std::int64_t, kPartitions>& ends) const {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (read_.at(i) < ends.at(i)) return false;
    }
    return true;
  }

  Client client_;
  const std::string topic_;
  std::array<std::int64_t, kPartitions> read_{};
};

class KafkaDestination final : public Destination {
 public:
  KafkaDestination(std::string brokers, std::string topic)
      : brokers_(std::move(brokers)), topic_(std::move(topic)) {}

  Status open() override {
    std::array<char, 256> text{};
    // -1: as many replicas as the broker's default.
    rd_kafka_NewTopic_t* topic =
        rd_kafka_NewTopic_new(topic_.c_str(), kPartitions, -1, text.data(), text.size());
    if (topic == nullptr) return fail(Errc::invalid_argument, text.data());
    Status status =
        administer("make topic " + topic_, [&topic](rd_kafka_t* client, rd_kafka_queue_t* queue) {
          rd_kafka_CreateTopics(client, &topic, 1, nullptr, queue);
        });
    rd_kafka_NewTopic_destroy(topic);
    made_ = status.has_value();
    return status;
  }

  SubscriptionSpec subscription() const override {
    SubscriptionSpec spec{.name = kSubscription, .sink = "kafka"};
    spec.sink_settings["brokers"] = brokers_;
    spec.topic = topic_;
    return spec;
  }

  Result<std::unique_ptr<Reading>> read() const override {
    auto client = make_client(RD_KAFKA_CONSUMER, {{"bootstrap.servers", brokers_},
                                                  {"group.id", topic_},
                                                  {"enable.auto.commit", "false"},
                                                  {"fetch.wait.max.ms", "20"}});
    if (!client) return pass(client);
    auto reading = std::make_unique<KafkaReading>(std::move(*client), topic_);
    if (Status status = reading->assign(); !status) return pass(status);
    return reading;
  }

  Status clear() override {
    if (!made_) return {};
    rd_kafka_DeleteTopic_t* topic = rd_kafka_DeleteTopic_new(topic_.c_str());
    Status status =
        administer("delete topic " + topic_, [&topic](rd_kafka_t* client, rd_kafka_queue_t* queue) {
          rd_kafka_DeleteTopics(client, &topic, 1, nullptr, queue);
        });
    rd_kafka_DeleteTopic_destroy(topic);
    return status;
  }

  std::string place() const override { return "Kafka topic " + topic_ + " at " + brokers_; }

 private:
  template <class Ask>
  Status administer(const std::string& what, const Ask& ask) const {
    auto client = make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", brokers_}});
    if (!client) return pass(client);
    const Queue queue(rd_kafka_queue_new(client->get()));
    ask(client->get(), queue.get());
    const AdminAnswer answer(rd_kafka_queue_poll(queue.get(), kAdminTimeoutMs));
    if (!answer) return fail(trouble(what, RD_KAFKA_RESP_ERR__TIMED_OUT));
    if (const auto code = rd_kafka_event_error(answer.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return fail(trouble(what, rd_kafka_event_error_string(answer.get()), code));
    }
    return result_of(what, answer.get());
  }

  /// The request as a whole may succeed while the topic's part of it fails.
  static Status result_of(const std::string& what, rd_kafka_event_t* answer) {
    std::size_t count = 0;
    const rd_kafka_topic_result_t** results = nullptr;
    if (const auto* const made = rd_kafka_event_CreateTopics_result(answer); made != nullptr) {
      results = rd_kafka_CreateTopics_result_topics(made, &count);
    } else if (const auto* const gone = rd_kafka_event_DeleteTopics_result(answer);
               gone != nullptr) {
      results = rd_kafka_DeleteTopics_result_topics(gone, &count);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto code = rd_kafka_topic_result_error(results[i]);
      if (code == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
      const char* const said = rd_kafka_topic_result_error_string(results[i]);
      return fail(trouble(what, said != nullptr ? said : rd_kafka_err2str(code), code));
    }
    return {};
  }

  const std::string brokers_;
  const std::string topic_;
  bool made_{false};
};

}  // namespace

std::unique_ptr<Destination> make_kafka_destination(std::string brokers, std::string topic) {
  return std::make_unique<KafkaDestination>(std::move(brokers), std::move(topic));
}

}  // namespace outbox::demo
