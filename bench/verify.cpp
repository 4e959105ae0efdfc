// verify: how fast a drained log is verified, alone and against the inbox of a consumer, and in how
// much memory.
#include "verify/verify.hpp"

#include <fmt/format.h>

#include <chrono>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/failure.hpp"
#include "verify/verify_inbox.hpp"
#include "verify/verify_sink.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

using test::must;

struct Verified {
  double events_per_second{0};
  double peak_rss_mib{0};
};

/// A consumer that has received each event once.
void fill_inbox(PostgresFixture& log) {
  log.admin().run(fmt::format(
      "TRUNCATE {0}.inbox; INSERT INTO {0}.inbox (consumer, message_id, event_type, place, task) "
      "SELECT 'bench', id::text, event_type, 'orders/0/' || seq, id FROM {0}.event",
      kSchema));
  log.admin().run(fmt::format("VACUUM ANALYZE {}.inbox", kSchema));
}

/// Verifies the only subscription, against the inbox too if `inbox`.
Verified verify_log(PostgresFixture& log, std::int64_t events, bool inbox) {
  const auto store = log.open_store();
  const auto subscriptions = must(must(store->catalog())->subscriptions());
  const auto reader = must(store->ledger_reader());
  const auto rows = must(store->inbox());
  const auto read = [&](const sink::TakeId& take) -> Result<sink::ReadParts> {
    OUTBOX_TRY(sink::ReadPart part,
               verify::read_inbox(*rows, "bench", std::chrono::hours(24 * 30), 0, take));
    sink::ReadParts parts;
    parts.push_back(std::move(part));
    return parts;
  };
  reset_peak_rss();
  const auto start = Clock::now();
  const verify::Verification found =
      inbox ? must(verify::verify_sink(*reader, subscriptions.at(0).id, read)).ledger
            : must(verify::verify(*reader, subscriptions.at(0).id));
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
  std::vector<double> inbox_rates;
  double memory = 0;
  double inbox_memory = 0;
  for (int i = 0; i < options.repeats; ++i) {
    const SubscriptionSpec spec{.name = fmt::format("verify-{}", i), .sink = "null"};
    drains.push_back(log.deliver(spec, options.events).events_per_second);
    const Verified verified = verify_log(log, options.events, false);
    if (i == 0) fill_inbox(log);
    const Verified received = verify_log(log, options.events, true);
    log.drop_subscriptions();
    rates.push_back(verified.events_per_second);
    memory = std::max(memory, verified.peak_rss_mib);
    inbox_rates.push_back(received.events_per_second);
    inbox_memory = std::max(inbox_memory, received.peak_rss_mib);
    log.say(fmt::format("verify: {:.0f} events/s, with an inbox {:.0f}, drain {:.0f}", rates.back(),
                        inbox_rates.back(), drains.back()));
  }
  return {Figure("verify", median(rates), "events/s").beside(median(drains)).ratio_at_least(0.5),
          Figure("verify.memory", memory, "MiB").at_most(64),
          Figure("verify.inbox", median(inbox_rates), "events/s").at_least(200'000),
          Figure("verify.inbox.memory", inbox_memory, "MiB").at_most(64)};
}

}  // namespace outbox::bench
