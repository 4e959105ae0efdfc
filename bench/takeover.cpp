// takeover: the time from a relay's death to the first delivery by another one, which cannot see
// the process.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/relay_under_test.hpp"
#include "support/eventually.hpp"
#include "support/failure.hpp"
#include "support/temp_dir.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTakeoversPerRun = 10;
constexpr int kTakeoverKeys = 256;
constexpr std::chrono::seconds kLease = kLeaseUnderTest;

class Takeovers {
 public:
  explicit Takeovers(PostgresFixture& log) : log_(log) {}

  /// The takeover, in seconds, from a relay that was killed at some moment between two heartbeats.
  double measure(int number) {
    if (!heir_) heir_ = start();
    auto victim = start();
    share();
    // The relay looks like one on another machine: nobody can see whether its process lives.
    log_.admin().run(fmt::format("UPDATE {}.relay SET boot_id = 'another machine'", kSchema));
    const std::string lanes = count_lanes(victim_name());
    std::this_thread::sleep_for(kLease / 3 * (number % kTakeoversPerRun) / kTakeoversPerRun);
    victim->kill();
    const auto start = Clock::now();
    (void)heir_->has_news();
    // Writes events to lanes that were the victim's, until one arrives.
    while (Clock::now() - start < std::chrono::minutes(2)) {
      write_to(lanes);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (heir_->has_news()) return std::chrono::duration<double>(Clock::now() - start).count();
    }
    test::give_up(Errc::deadline_exceeded, "nobody took the lanes over");
  }

 private:
  [[nodiscard]] std::string victim_name() const { return fmt::format("relay-{}", started_); }
  std::unique_ptr<RelayUnderTest> start() {
    ++started_;
    return std::make_unique<RelayUnderTest>(log_.options(), victim_name(), folder_.path().string());
  }
  /// Waits until both have half of the lanes and no older event is on its way.
  void share() {
    const std::string sql = fmt::format(
        "SELECT count(*) FROM (SELECT FROM {0}.lane l JOIN {0}.relay r ON r.id = l.owner "
        "WHERE l.lane_group = 'default' AND r.heartbeat_at + r.lease > clock_timestamp() GROUP BY r.id HAVING count(*) = 32) half",
        kSchema);
    if (!test::eventually([&] { return log_.admin().value(sql) == "2"; }))
      test::give_up(Errc::deadline_exceeded, "the relays did not share the lanes");
  }
  [[nodiscard]] std::string count_lanes(const std::string& name) {
    return log_.admin().value(
        fmt::format("SELECT array_agg(l.lane) FROM {0}.lane l JOIN {0}.relay r ON r.id = l.owner "
                    "WHERE l.lane_group = 'default' AND r.name = '{1}'",
                    kSchema, name));
  }
  void write_to(const std::string& lanes) {
    log_.admin().run(fmt::format(
        "SELECT {0}.enqueue('order', k::text, 'OrderPlaced', '{{}}') FROM generate_series(1, {1}) k "
        "WHERE {0}.lane_of('order', k::text, NULL) = ANY ('{2}'::smallint[]) LIMIT 1",
        kSchema, kTakeoverKeys, lanes));
  }

  PostgresFixture& log_;
  test::TempDir folder_;
  std::unique_ptr<RelayUnderTest> heir_;
  int started_{0};
};

}  // namespace

std::vector<Figure> bench_takeover(const BenchOptions& options) {
  PostgresFixture log(options);
  Takeovers takeovers(log);
  std::vector<double> seconds;
  for (int i = 0; i < options.repeats * kTakeoversPerRun; ++i) {
    seconds.push_back(takeovers.measure(i));
    log.say(fmt::format("takeover {}: {:.2f} s", i + 1, seconds.back()));
  }
  const auto lease = static_cast<double>(kLease.count());
  return {
      Figure("takeover.p50", median(seconds), "s").beside(lease),
      Figure("takeover.p99", quantile(seconds, 0.99), "s").beside(lease).above_limit_at_most(1)};
}

}  // namespace outbox::bench
