// beside: what a live subscription delivers beside one that is paused, one whose destination is
// down and one whose destination is slow.
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

constexpr std::chrono::minutes kBesideLimit{10};

class DownSink final : public BatchSink {
 public:
  [[nodiscard]] SinkTraits traits() const noexcept override { return {.name = "down"}; }
  [[nodiscard]] Status open() override {
    return fail(Errc::unavailable, Remedy::retry_call, "the destination is down");
  }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> /*batch*/, Outcome&) override {
    return 0;
  }
};

SubscriptionSpec custom(const std::string& name) { return {.name = name, .sink = "custom"}; }

/// The live subscription's events per second, measured from its resumption, when everything stands.
double rate_beside(PostgresFixture& log, bool beside) {
  const Count taken = std::make_shared<std::atomic<std::int64_t>>(0);
  const Count taken_slowly = std::make_shared<std::atomic<std::int64_t>>(0);
  const auto catalog = test::must(log.open_store()->catalog());
  RelayOptions options = log.relay_options(custom("live"));
  if (beside)
    options.subscriptions.insert(options.subscriptions.end(),
                                 {custom("paused"), custom("down"), custom("slow")});
  for (const SubscriptionSpec& spec : options.subscriptions) (void)test::must(catalog->apply(spec));
  test::must(catalog->pause("live", "the others start first"));
  if (beside) test::must(catalog->pause("paused", "for the benchmark"));
  const auto relay = test::must(Relay::create(options));
  test::must(relay->use("live", counting_sink(taken, 1000, std::chrono::microseconds(0))));
  if (beside) {
    test::must(relay->use("paused", std::make_unique<DownSink>()));
    test::must(relay->use("down", std::make_unique<DownSink>()));
    test::must(relay->use("slow", counting_sink(taken_slowly, 1, std::chrono::milliseconds(1))));
  }
  test::must(relay->start());
  if (beside && !test::eventually([&] { return *taken_slowly > 0; }))
    test::give_up(Errc::deadline_exceeded, "the slow subscription did not start");
  test::must(catalog->resume("live"));
  if (!test::eventually([&] { return *taken > 0; }))
    test::give_up(Errc::deadline_exceeded, "the live subscription did not start");
  const std::int64_t first = *taken;
  const auto start = Clock::now();
  if (!test::eventually([&] { return *taken >= log.options().events; }, kBesideLimit))
    test::give_up(Errc::deadline_exceeded, "not all events were delivered");
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  (void)relay->stop(std::chrono::seconds(10));
  log.drop_subscriptions();
  return static_cast<double>(log.options().events - first) / seconds;
}

}  // namespace

std::vector<Figure> bench_beside(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events);
  std::vector<double> alone;
  std::vector<double> beside;
  for (int i = 0; i < options.repeats; ++i) {
    alone.push_back(rate_beside(log, false));
    beside.push_back(rate_beside(log, true));
    log.say(fmt::format("alone {:.0f} events/s, beside three others {:.0f}", alone.back(),
                        beside.back()));
  }
  return {Figure("beside", median(beside), "events/s").beside(median(alone)).ratio_at_least(0.95)};
}

}  // namespace outbox::bench
