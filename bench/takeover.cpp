// takeover: from the death of a relay to the first delivery by another one, which cannot see that the process is gone.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/relay_under_test.hpp"
#include "testkit/eventually.hpp"
#include "testkit/failure.hpp"
#include "testkit/temp_dir.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTakeoversPerRun = 10;
constexpr int kTakeoverKeys = 256;
constexpr std::chrono::seconds kLease = kLeaseUnderTest;

class Takeovers {
 public:
  explicit Takeovers(PostgresFixture& log) : log_(log) {}

  /// Of a relay that was killed at some moment between two heartbeats. Unit: seconds.
  double measure(int number) {
    if (!heir_) heir_ = start();
    auto victim = start();
    share();
    // Nobody can see whether the process lives: as on another machine.
    log_.admin().run(fmt::format("UPDATE {}.relay SET boot_id = 'another machine'", kSchema));
    const std::string lanes = lanes_of(victim_name());
    std::this_thread::sleep_for(kLease / 3 * (number % kTakeoversPerRun) / kTakeoversPerRun);
    victim->kill();
    const auto start = Clock::now();
    (void)heir_->has_news();
    // Events of lanes that were the victim's, until one arrives.
    while (Clock::now() - start < std::chrono::minutes(2)) {
      write_to(lanes);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (heir_->has_news()) return std::chrono::duration<double>(Clock::now() - start).count();
    }
    testkit::give_up(Errc::deadline_exceeded, "nobody took the lanes over");
  }

 private:
  [[nodiscard]] std::string victim_name() const { return fmt::format("relay-{}", started_); }
  std::unique_ptr<RelayUnderTest> start() {
    ++started_;
    return std::make_unique<RelayUnderTest>(log_.options(), victim_name(), folder_.path().string());
  }
  /// Both have their half, and nothing of older events is on its way.
  void share() {
    const std::string sql = fmt::format(
        "SELECT count(*) FROM (SELECT FROM {0}.lane l JOIN {0}.relay r ON r.id = l.owner "
        "WHERE l.lane_group = 'default' AND r.heartbeat_at + r.lease > clock_timestamp() GROUP BY r.id HAVING count(*) = 32) half",
        kSchema);
    if (!testkit::eventually([&] { return log_.admin().value(sql) == "2"; }))
      testkit::give_up(Errc::deadline_exceeded, "the relays did not share the lanes");
  }
  [[nodiscard]] std::string lanes_of(const std::string& name) {
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
  testkit::TempDir folder_;
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
