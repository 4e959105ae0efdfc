// verify: how fast a drained log is verified, and in how much memory.
#include "verify/verify.hpp"

#include <fmt/format.h>

#include <chrono>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/store.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

using test::must;

struct Verified {
  double events_per_second{0};
  double peak_rss_mib{0};
};

/// Verifies the only subscription.
Verified verify_log(PostgresFixture& log, std::int64_t events) {
  const auto store = test::migrated_store(log.options().store_url, kSchema, "outbox-bench");
  const auto subscriptions = must(must(store->catalog())->subscriptions());
  const auto reader = must(store->ledger_reader());
  reset_peak_rss();
  const auto start = Clock::now();
  const verify::Verification found = must(verify::verify(*reader, subscriptions.at(0).id));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!found.ok() || found.ledger.events != events)
    test::give_up(Errc::corrupt, "the drained log does not add up", "run outbox verify");
  return {.events_per_second = static_cast<double>(events) / seconds,
          .peak_rss_mib = peak_rss_mib()};
}

}  // namespace

std::vector<Figure> bench_verify(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events);
  std::vector<double> drains;
  std::vector<double> rates;
  double memory = 0;
  for (int i = 0; i < options.repeats; ++i) {
    const SubscriptionSpec spec{.name = fmt::format("verify-{}", i), .sink = "null"};
    drains.push_back(log.deliver(spec, options.events).events_per_second);
    const Verified verified = verify_log(log, options.events);
    log.drop_subscriptions();
    rates.push_back(verified.events_per_second);
    memory = std::max(memory, verified.peak_rss_mib);
    log.say(fmt::format("verify: {:.0f} events/s, drain {:.0f}", rates.back(), drains.back()));
  }
  return {Figure("verify", median(rates), "events/s").beside(median(drains)).ratio_at_least(0.5),
          Figure("verify.memory", memory, "MiB").at_most(64)};
}

}  // namespace outbox::bench
