// idle: what a relay with 20 subscriptions costs while nothing happens, alone and with metrics,
// history and continuous verification.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/watchers.hpp"
#include "store/postgres/connection.hpp"
#include "support/eventually.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

constexpr std::size_t kIdleSubscriptions = 20;
/// The time for the last settlements, and for the frequent polls that follow work.
constexpr std::chrono::seconds kUntilAtRest{5};

/// Sets what a login of outbox_relay has; for another one each read sends three more statements.
std::string with_plan_settings(const std::string& url) {
  std::string options;
  for (const char* setting :
       {"jit=off", "enable_seqscan=off", "enable_bitmapscan=off", "enable_sort=off",
        "max_parallel_workers_per_gather=0", "plan_cache_mode=force_generic_plan"})
    options += fmt::format("-c%20{}%20",
                           std::string(setting).replace(std::string(setting).find('='), 1, "%3D"));
  return fmt::format("{}{}options={}", url, url.find('?') == std::string::npos ? '?' : '&',
                     options);
}

struct Rest {
  double cpu{0};         ///< In % of a core.
  double statements{0};  ///< Per second.
};

/// What a relay that has delivered everything costs, alone or with what watches it in production.
Rest measure_rest(const BenchOptions& options, bool watched) {
  PostgresFixture log(options);
  RelayOptions relay_options = log.relay_options({.name = "idle-0", .sink = "null"});
  for (std::size_t i = 1; i < kIdleSubscriptions; ++i)
    relay_options.subscriptions.push_back({.name = fmt::format("idle-{}", i), .sink = "null"});
  relay_options.store_url = with_plan_settings(options.store_url);
  if (!watched) relay_options.history_interval = std::chrono::milliseconds(0);
  const auto relay = test::must(Relay::create(relay_options));
  test::must(relay->start());
  log.write(1000);
  const auto all_delivered = [&] {
    const RelayReport report = relay->report();
    return report.subscriptions.size() == kIdleSubscriptions &&
           std::all_of(report.subscriptions.begin(), report.subscriptions.end(),
                       [](const auto& each) { return each.delivered == 1000; });
  };
  if (!test::eventually(all_delivered))
    test::give_up(Errc::deadline_exceeded, "the relay did not deliver", relay->report().last_error);
  std::unique_ptr<Watchers> watchers;
  if (watched) {
    watchers =
        std::make_unique<Watchers>(options, WatchOptions(), [&relay] { return relay->report(); });
  }
  log.say(watched ? "resting, watched" : "resting");
  // With the first look of what watches, which connects and compares everything.
  std::this_thread::sleep_for(kUntilAtRest);
  const double cpu_before = cpu_us();
  const std::uint64_t before = store::postgres::Connection::statements_of_process();
  const auto length = std::chrono::duration<double>(std::max(options.seconds, 30.0));
  std::this_thread::sleep_for(length);
  const double cpu = (cpu_us() - cpu_before) / 1e6 / length.count() * 100;
  const auto sent =
      static_cast<double>(store::postgres::Connection::statements_of_process() - before);
  watchers.reset();
  (void)relay->stop(std::chrono::seconds(10));
  return {.cpu = cpu, .statements = sent / length.count()};
}

}  // namespace

std::vector<Figure> bench_idle(const BenchOptions& options) {
  const Rest alone = measure_rest(options, false);
  const Rest watched = measure_rest(options, true);
  return {
      Figure("idle.cpu", alone.cpu, "% of a core").at_most(1),
      Figure("idle.statements", alone.statements, "per second").at_most(5),
      Figure("idle.watched.cpu", watched.cpu, "% of a core").beside(alone.cpu).at_most(1),
      Figure("idle.watched.statements", watched.statements, "per second").beside(alone.statements)};
}

}  // namespace outbox::bench
