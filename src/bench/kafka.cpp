// kafka: a backlog in PostgreSQL to a real broker under the no-gap rule.
#include "testkit/kafka.hpp"

#include <fmt/format.h>

#include <chrono>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "testkit/failure.hpp"

namespace outbox::bench {
namespace {

using testkit::KafkaTopic;

/// Rate of a bare producer with 200-byte messages.
double bare_produce(const BenchOptions& options) {
  KafkaTopic topic(options.brokers, testkit::unique_name("bench-bare"));
  topic.create(1);
  testkit::KafkaProducer producer(
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

}  // namespace

std::vector<Figure> bench_kafka(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events);
  std::vector<double> bare;
  std::vector<double> ours;
  std::vector<double> cpu;
  for (int i = 0; i < options.repeats; ++i) {
    bare.push_back(bare_produce(options));
    KafkaTopic topic(options.brokers, testkit::unique_name("bench"));
    topic.create(1);
    const auto drained = log.drain(topic.subscription(fmt::format("kafka-{}", i)), options.events);
    // Counted by the broker, not by the relay.
    if (const auto count = topic.count(); count != static_cast<std::size_t>(options.events)) {
      testkit::give_up(Errc::corrupt,
                       fmt::format("the topic holds {} messages, not {}", count, options.events));
    }
    log.say(fmt::format("kafka: {:.0f} events/s, bare producer {:.0f}, {:.2f} us CPU per event",
                        drained.events_per_second, bare.back(), drained.cpu_us_per_event));
    ours.push_back(drained.events_per_second);
    cpu.push_back(drained.cpu_us_per_event);
  }
  return {with_limit(at_least("kafka", median(ours), "events/s", 250000), median(bare)),
          at_most("kafka.cpu", median(cpu), "us/event", 3)};
}

}  // namespace outbox::bench
