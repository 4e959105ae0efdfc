// kafka: a backlog in PostgreSQL to a real broker under the no-gap rule.
#include <fmt/format.h>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/kafka_topic.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {

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
    auto drained = log.drain((*topic)->subscription(fmt::format("kafka-{}", i)), options.events);
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

}  // namespace outbox::bench
