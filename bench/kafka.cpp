// kafka: how fast a backlog in PostgreSQL is delivered to a real broker under the no-gap rule.
// latency-kafka: the time from just before a writer's COMMIT to a consumer, at 1,000 events a
// second.
#include "support/kafka.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

using test::give_up;
using test::KafkaTopic;

/// The rate of a bare producer with 200-byte messages.
double bare_produce(const BenchOptions& options) {
  KafkaTopic topic(options.brokers, 1);
  test::KafkaProducer producer(
      topic.brokers(), topic.name(),
      {{"linger.ms", "5"}, {"batch.size", "1000000"}, {"queue.buffering.max.messages", "100000"}});
  const std::string body(200, 'x');
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < options.events; ++i) {
    while (!producer.send(std::to_string(i % 10000), body, 0)) producer.poll(1);
    if (i % 1000 == 0) producer.poll(0);
  }
  producer.flush();
  return static_cast<double>(options.events) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A broker that has just started interprets its own code, and every request takes ten times as
/// long until the JVM has compiled it. That takes some ten thousand requests, so each message is
/// one here.
constexpr Pace kWarmUp{.messages = 40'000, .per_second = 4'000, .unmeasured = 40'000};

/// Reads a topic from its beginning and notes when each message arrived.
class TopicConsumer {
 public:
  TopicConsumer(const KafkaTopic& topic, Arrivals& arrivals)
      : reader_(topic.brokers(), topic.name(), 1,
                {{"fetch.wait.max.ms", "100"},
                 {"fetch.min.bytes", "1"},
                 {"enable.partition.eof", "false"}}),
        arrivals_(arrivals),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const test::KafkaMessage message = reader_.poll(50);
      if (message && message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        arrivals_.arrived({static_cast<const char*>(message->payload), message->len});
    }
  }

  test::KafkaReader reader_;
  Arrivals& arrivals_;
  std::jthread thread_;
};

/// Latencies without database and relay: from just before producing a message to its consumer.
std::vector<double> measure_bare(const std::string& brokers, const Pace& pace,
                                 const std::string& linger_ms) {
  KafkaTopic topic(brokers, 1);
  Arrivals arrivals;
  const TopicConsumer consumer(topic, arrivals);
  test::KafkaProducer producer(brokers, topic.name(),
                               {{"linger.ms", linger_ms}, {"socket.nagle.disable", "true"}});
  send_at(pace, [&](std::int64_t number, bool measured) {
    const std::string payload = stamped_payload(measured ? now_ns() : 0);
    if (!producer.send(std::to_string(number % 10000), payload, 0))
      give_up(Errc::unavailable, "the queue of the bare producer is full");
    producer.poll(0);
  });
  producer.flush();
  return arrivals.latencies_ms(pace.messages);
}

}  // namespace

std::vector<Figure> bench_kafka(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events);
  double memory = 0;
  const Drain all = median_drain(options.repeats, [&](int number) {
    KafkaTopic topic(options.brokers, 1);
    Drain drain = log.drain(topic.subscription(fmt::format("kafka-{}", number)), options.events);
    // The bare producer is in this process, too, and does not return all of its memory.
    if (memory == 0) memory = drain.peak_rss_mib;
    drain.bare = bare_produce(options);
    // The broker counts the messages, so that the relay's own count is not trusted.
    if (const auto count = topic.count(); count != static_cast<std::size_t>(options.events)) {
      give_up(Errc::corrupt,
              fmt::format("the topic holds {} messages, not {}", count, options.events));
    }
    log.say(fmt::format("kafka: {:.0f} events/s, bare producer {:.0f}, {:.2f} us CPU per event",
                        drain.events_per_second, drain.bare, drain.cpu_us_per_event));
    return drain;
  });
  return {Figure("kafka", all.events_per_second, "events/s").beside(all.bare).at_least(250000),
          Figure("kafka.cpu", all.cpu_us_per_event, "us/event").at_most(3),
          Figure("kafka.memory", memory, "MiB").at_most(33)};
}

std::vector<Figure> bench_latency_kafka(const BenchOptions& options) {
  PostgresFixture log(options);
  log.say("warming up the broker");
  (void)measure_bare(options.brokers, kWarmUp, "0");
  const auto bare = [&] { return measure_bare(options.brokers, choose_pace(options), "1"); };
  const auto measured = [&](bool wake_up) {
    KafkaTopic topic(options.brokers, 1);
    Arrivals arrivals;
    const TopicConsumer consumer(topic, arrivals);
    return measure_latencies(log, topic.subscription("latency"), wake_up, arrivals);
  };
  return latency_figures(log, "latency-kafka", {.p50_ms = 4, .p99_ms = 12}, measured, bare);
}

}  // namespace outbox::bench
