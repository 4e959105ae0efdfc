// relays: how fast two relays that share a subscription's lanes deliver, against one, with 1 ms per
// batch at the sink.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/memory_sink.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/eventually.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 100;
constexpr std::chrono::milliseconds kEach{1};
constexpr const char* kRelaysName = "relays";
constexpr std::chrono::minutes kRelaysLimit{10};

void require(bool met, const std::string& what) {
  if (!met) test::give_up(Errc::deadline_exceeded, what, "see the relay's log");
}

/// Events per second with this many relays, measured from the subscription's resumption.
double rate_of_relays(PostgresFixture& log, int count) {
  const Count taken = std::make_shared<std::atomic<std::int64_t>>(0);
  const auto catalog = test::must(log.open_store()->catalog());
  const SubscriptionSpec spec{.name = kRelaysName, .sink = "custom"};
  (void)test::must(catalog->apply(spec));
  test::must(catalog->pause(kRelaysName, "the relays take their lanes first"));
  std::vector<std::unique_ptr<Relay>> relays;
  for (int i = 0; i < count; ++i) {
    RelayOptions options = log.relay_options(spec);
    options.name = fmt::format("bench-{}", i);
    relays.push_back(test::must(Relay::create(options)));
    test::must(relays.back()->use(kRelaysName, counting_sink(taken, kBatch, kEach)));
    test::must(relays.back()->start());
  }
  const std::string shared =
      fmt::format("SELECT count(DISTINCT owner) FROM {}.lane WHERE lane_group = 'custom:{}'",
                  kSchema, kRelaysName);
  require(test::eventually([&] { return log.admin().value(shared) == std::to_string(count); }),
          "the relays did not share the lanes");
  const auto start = Clock::now();
  test::must(catalog->resume(kRelaysName));
  require(test::eventually([&] { return *taken >= log.options().events; }, kRelaysLimit),
          "not all events were delivered");
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (const auto& relay : relays) (void)relay->stop(std::chrono::seconds(10));
  log.drop_subscriptions();
  return static_cast<double>(log.options().events) / seconds;
}

}  // namespace

std::vector<Figure> bench_relays(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events);
  std::vector<double> one;
  std::vector<double> two;
  for (int i = 0; i < options.repeats; ++i) {
    one.push_back(rate_of_relays(log, 1));
    two.push_back(rate_of_relays(log, 2));
    log.say(fmt::format("one relay {:.0f} events/s, two {:.0f}", one.back(), two.back()));
  }
  return {Figure("relays", median(two), "events/s").beside(median(one)).ratio_at_least(1.6)};
}

}  // namespace outbox::bench
