// kafka, latency-kafka: PostgreSQL to a real broker under the no-gap rule.
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/kafka_topic.hpp"
#include "bench/pacer.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {
namespace {

SubscriptionSpec to_kafka(const std::string& name, const std::string& brokers,
                          const std::string& topic) {
  SubscriptionSpec spec{.name = name, .sink = "kafka"};
  spec.topic = topic;
  spec.sink_settings["brokers"] = brokers;
  return spec;
}

/// Reads a topic from its end on and notes when each message arrived.
class Consumer {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Consumer>> start(const std::string& brokers,
                                                               const std::string& topic,
                                                               Arrivals& arrivals) {
    auto client = make_client(RD_KAFKA_CONSUMER, {{"bootstrap.servers", brokers},
                                                  {"group.id", "outbox-bench"},
                                                  {"enable.auto.commit", "false"},
                                                  {"fetch.wait.max.ms", "100"},
                                                  {"fetch.min.bytes", "1"}});
    if (!client) return pass(client);
    std::unique_ptr<Consumer> made(new Consumer(std::move(*client), arrivals));
    rd_kafka_topic_partition_list_t* partitions = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(partitions, topic.c_str(), 0)->offset =
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

Result<Latencies> measure(PostgresFixture& log, KafkaTopic& topic, bool wake_up) {
  Arrivals arrivals;
  RelayOptions options = log.relay_options();
  options.wake_up = wake_up;
  options.subscriptions = {to_kafka("latency", log.options().brokers, topic.name())};
  auto relay = Relay::create(options);
  if (!relay) return pass(relay);
  auto consumer = Consumer::start(log.options().brokers, topic.name(), arrivals);
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

}  // namespace

Result<std::vector<Figure>> bench_kafka(const BenchOptions& options) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  PostgresFixture& log = **fixture;
  if (Status status = log.fill(options.events); !status) return pass(status);
  if (Status status = log.warm_up(); !status) return pass(status);
  std::vector<double> bare;
  std::vector<double> ours;
  std::vector<double> cpu;
  for (int i = 0; i < options.repeats; ++i) {
    auto limit_topic = KafkaTopic::create(options.brokers, "bench-bare");
    if (!limit_topic) return pass(limit_topic);
    auto limit = (*limit_topic)->bare_produce(options.events);
    if (!limit) return pass(limit);
    auto topic = KafkaTopic::create(options.brokers, "bench");
    if (!topic) return pass(topic);
    auto drained = log.drain(
        to_kafka(fmt::format("kafka-{}", i), options.brokers, (*topic)->name()), options.events);
    if (!drained) return pass(drained);
    // The broker's word, not ours.
    auto count = (*topic)->count();
    if (!count) return pass(count);
    if (*count != options.events) {
      return fail(Errc::corrupt,
                  fmt::format("the topic holds {} messages, not {}", *count, options.events));
    }
    log.say(fmt::format("kafka: {:.0f} events/s, bare producer {:.0f}, {:.2f} us CPU per event",
                        drained->events_per_second, *limit, drained->cpu_us_per_event));
    bare.push_back(*limit);
    ours.push_back(drained->events_per_second);
    cpu.push_back(drained->cpu_us_per_event);
  }
  Figure rate = at_least("kafka", median(ours), "events/s", 250000);
  rate.limit = median(bare);
  rate.ratio = rate.value / *rate.limit;
  return std::vector<Figure>{rate, at_most("kafka.cpu", median(cpu), "us/event", 3)};
}

Result<std::vector<Figure>> bench_latency_kafka(const BenchOptions& options) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  PostgresFixture& log = **fixture;
  const auto measured = [&log](bool wake_up) -> Result<Latencies> {
    auto topic = KafkaTopic::create(log.options().brokers, "bench-latency");
    if (!topic) return pass(topic);
    return measure(log, **topic, wake_up);
  };
  return latency_figures(log, "latency-kafka", {.p50_ms = 4, .p99_ms = 12}, measured);
}

}  // namespace outbox::bench
