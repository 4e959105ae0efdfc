// latency-kafka: from just before a writer sends COMMIT to a consumer's hands, at 1,000 events a second.
#include <chrono>
#include <thread>

#include "bench/bench.hpp"
#include "bench/pacer.hpp"
#include "bench/postgres_fixture.hpp"
#include "testkit/failure.hpp"
#include "testkit/kafka.hpp"

namespace outbox::bench {
namespace {

using testkit::KafkaTopic;

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
  Consumer(const KafkaTopic& topic, Arrivals& arrivals)
      : reader_(topic.brokers(), topic.name(), 1,
                {{"fetch.wait.max.ms", "100"},
                 {"fetch.min.bytes", "1"},
                 {"enable.partition.eof", "false"}}),
        arrivals_(arrivals),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const testkit::KafkaMessage message = reader_.poll(50);
      if (message && message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        arrivals_.arrived({static_cast<const char*>(message->payload), message->len});
    }
  }

  testkit::KafkaReader reader_;
  Arrivals& arrivals_;
  std::jthread thread_;
};

/// Latencies without a database and a relay: from just before the producer gets a message to the consumer.
std::vector<double> measure_bare(const std::string& brokers, Pace pace) {
  KafkaTopic topic(brokers, testkit::unique_name("bench-latency-bare"));
  topic.create(1);
  Arrivals arrivals;
  const Consumer consumer(topic, arrivals);
  testkit::KafkaProducer producer(
      brokers, topic.name(), {{"linger.ms", pace.linger_ms}, {"socket.nagle.disable", "true"}});
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < pace.messages; ++i) {
    std::this_thread::sleep_until(start +
                                  std::chrono::nanoseconds(i * 1'000'000'000 / pace.per_second));
    // If the queue is full, the wait for the arrivals fails.
    const std::string payload = stamped_payload(i < pace.unmeasured ? 0 : now_ns());
    if (!producer.send(std::to_string(i % 10000), payload, 0)) break;
    producer.poll(0);
  }
  producer.flush();
  if (!arrivals.wait_for(pace.messages)) {
    testkit::give_up(Errc::deadline_exceeded, "not every message of the bare producer arrived");
  }
  return arrivals.latencies_ms();
}

}  // namespace

std::vector<Figure> bench_latency_kafka(const BenchOptions& options) {
  PostgresFixture log(options);
  log.say("warming up the broker");
  (void)measure_bare(options.brokers, kWarmUp);
  const auto bare = [&] { return measure_bare(options.brokers, as_our_events(options)); };
  const auto measured = [&](bool wake_up) {
    KafkaTopic topic(options.brokers, testkit::unique_name("bench-latency"));
    topic.create(1);
    Arrivals arrivals;
    const Consumer consumer(topic, arrivals);
    return measure_latencies(log, topic.subscription("latency"), wake_up, arrivals);
  };
  return latency_figures(log, "latency-kafka", {.p50_ms = 4, .p99_ms = 12}, measured, bare);
}

}  // namespace outbox::bench
