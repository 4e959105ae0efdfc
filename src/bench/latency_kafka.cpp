// latency-kafka: from just before a writer sends COMMIT to a consumer's hands, at 1,000 events a second.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/kafka_topic.hpp"
#include "bench/pacer.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {
namespace {

struct Pace {
  std::int64_t messages;
  std::int64_t per_second;
  std::int64_t unmeasured;  ///< At the beginning.
  const char* linger_ms;
};

/// A broker that has just started interprets its own code, and every request takes ten times as long until the JVM has
/// compiled it. That takes some ten thousand requests, so each message is one here.
constexpr Pace kWarmUp{
    .messages = 40'000, .per_second = 4'000, .unmeasured = 40'000, .linger_ms = "0"};

Pace as_our_events(const BenchOptions& options) {
  return {.messages = 1000 + static_cast<std::int64_t>(options.seconds * 1000),
          .per_second = 1000,
          .unmeasured = 1000,
          .linger_ms = "1"};
}

/// Reads a topic from its beginning and notes when each message arrived.
class Consumer {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Consumer>> start(const KafkaTopic& topic,
                                                               Arrivals& arrivals) {
    auto client = make_client(RD_KAFKA_CONSUMER, {{"bootstrap.servers", topic.brokers()},
                                                  {"group.id", "outbox-bench"},
                                                  {"enable.auto.commit", "false"},
                                                  {"fetch.wait.max.ms", "100"},
                                                  {"fetch.min.bytes", "1"}});
    if (!client) return pass(client);
    std::unique_ptr<Consumer> made(new Consumer(std::move(*client), arrivals));
    rd_kafka_topic_partition_list_t* partitions = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(partitions, topic.name().c_str(), 0)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(made->client_.get(), partitions);
    rd_kafka_topic_partition_list_destroy(partitions);
    made->thread_ =
        std::jthread([consumer = made.get()](const std::stop_token& stop) { consumer->run(stop); });
    return made;
  }

 private:
  Consumer(KafkaClient client, Arrivals& arrivals)
      : client_(std::move(client)), arrivals_(arrivals) {
    rd_kafka_poll_set_consumer(client_.get());
  }
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      rd_kafka_message_t* message = rd_kafka_consumer_poll(client_.get(), 50);
      if (message == nullptr) continue;
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        arrivals_.arrived({static_cast<const char*>(message->payload), message->len});
      }
      rd_kafka_message_destroy(message);
    }
  }
  KafkaClient client_;
  Arrivals& arrivals_;
  std::jthread thread_;
};

Result<Latencies> measure(PostgresFixture& log, const KafkaTopic& topic, bool wake_up) {
  Arrivals arrivals;
  RelayOptions options = log.relay_options();
  options.wake_up = wake_up;
  options.subscriptions = {topic.subscription("latency")};
  auto relay = Relay::create(options);
  if (!relay) return pass(relay);
  auto consumer = Consumer::start(topic, arrivals);
  if (!consumer) return pass(consumer);
  if (Status status = (*relay)->start(); !status) return pass(status);
  auto paced = write_paced(log);
  if (!paced) return pass(paced);
  if (!arrivals.wait_for(paced->events, std::chrono::seconds(30))) {
    return fail(Errc::deadline_exceeded, "not every event arrived", (*relay)->report().last_error);
  }
  (void)(*relay)->stop(std::chrono::seconds(5));
  return Latencies{.event_ms = arrivals.latencies_ms(), .commit_ms = std::move(paced->commit_ms)};
}

/// A librdkafka producer with the settings of our sink and nothing around it: the stamp is of just before the call.
Status produce_paced(const KafkaTopic& topic, Pace pace) {
  auto client = make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", topic.brokers()},
                                                {"enable.idempotence", "true"},
                                                {"enable.gapless.guarantee", "true"},
                                                {"acks", "all"},
                                                {"message.timeout.ms", "0"},
                                                {"linger.ms", pace.linger_ms},
                                                {"compression.type", "lz4"},
                                                {"socket.nagle.disable", "true"}});
  if (!client) return pass(client);
  rd_kafka_topic_t* handle = rd_kafka_topic_new(client->get(), topic.name().c_str(), nullptr);
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < pace.messages; ++i) {
    std::this_thread::sleep_until(start +
                                  std::chrono::nanoseconds(i * 1'000'000'000 / pace.per_second));
    std::string key = std::to_string(i % 10000);
    std::string body = stamped_payload(i < pace.unmeasured ? 0 : now_ns());
    if (rd_kafka_produce(handle, 0, RD_KAFKA_MSG_F_COPY, body.data(), body.size(), key.data(),
                         key.size(), nullptr) != 0) {
      break;  // the queue is full: the wait for the arrivals says so
    }
    rd_kafka_poll(client->get(), 0);
  }
  const auto flushed = rd_kafka_flush(client->get(), 30000);
  rd_kafka_topic_destroy(handle);
  if (flushed == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return fail(Errc::deadline_exceeded, "the bare producer's messages were not delivered",
              "is the broker up, and --brokers right?");
}

/// The same way of a message without a database and a relay.
Result<std::vector<double>> measure_bare(const std::string& brokers, Pace pace) {
  auto topic = KafkaTopic::create(brokers, "bench-latency-bare");
  if (!topic) return pass(topic);
  Arrivals arrivals;
  auto consumer = Consumer::start(**topic, arrivals);
  if (!consumer) return pass(consumer);
  if (Status status = produce_paced(**topic, pace); !status) return pass(status);
  if (!arrivals.wait_for(pace.messages, std::chrono::seconds(30)))
    return fail(Errc::deadline_exceeded, "not every message of the bare producer arrived");
  return arrivals.latencies_ms();
}

}  // namespace

Result<std::vector<Figure>> bench_latency_kafka(const BenchOptions& options) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  PostgresFixture& log = **fixture;
  log.say("warming up the broker");
  if (auto warm = measure_bare(options.brokers, kWarmUp); !warm) return pass(warm);
  const auto bare = [&] { return measure_bare(options.brokers, as_our_events(options)); };
  const auto measured = [&](bool wake_up) -> Result<Latencies> {
    auto topic = KafkaTopic::create(options.brokers, "bench-latency");
    if (!topic) return pass(topic);
    return measure(log, **topic, wake_up);
  };
  return latency_figures(log, "latency-kafka", {.p50_ms = 4, .p99_ms = 12}, measured, bare);
}

}  // namespace outbox::bench
