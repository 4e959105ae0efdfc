// freezes: three relays share a subscription that has a backlog and a rate. 20 times in a row one
// of them is frozen for longer than its lease, or killed and started again. It measures how long
// after the last fault the subscription delivers at half of its rate.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/relay_under_test.hpp"
#include "support/failure.hpp"
#include "support/temp_dir.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFaults = 20;
constexpr std::size_t kRelaysUnderFault = 3;
constexpr std::chrono::milliseconds kFrozenFor = kLeaseUnderTest + std::chrono::milliseconds(600);
constexpr std::chrono::milliseconds kBetweenFaults{300};
constexpr std::chrono::milliseconds kRateWindow{500};
constexpr std::chrono::minutes kFaultLimit{3};
/// The rate is lower than what a relay can do, so that the backlog lasts until the end.
constexpr const char* kFaultRate = "rate = \"15000/s\"\n";

class Fleet {
 public:
  explicit Fleet(const BenchOptions& options) : options_(options) {
    for (std::size_t i = 0; i < kRelaysUnderFault; ++i) relays_.push_back(start());
  }

  void freeze(std::size_t which) {
    relays_[which]->freeze();
    std::this_thread::sleep_for(kFrozenFor);
    relays_[which]->thaw();
  }
  void kill(std::size_t which) {
    relays_[which]->kill();
    gone_bytes_ += relays_[which]->bytes();
    relays_[which] = start();
  }
  /// The rate of all relays together, in bytes per second.
  [[nodiscard]] double rate(std::chrono::milliseconds time) const {
    const auto start = Clock::now();
    const auto before = bytes();
    std::this_thread::sleep_for(time);
    return static_cast<double>(bytes() - before) * 1000 / ms_since(start);
  }

 private:
  [[nodiscard]] std::unique_ptr<RelayUnderTest> start() {
    return std::make_unique<RelayUnderTest>(options_, fmt::format("relay-{}", ++started_),
                                            folder_.path().string(), kFaultRate);
  }
  [[nodiscard]] std::uintmax_t bytes() const {
    std::uintmax_t all = gone_bytes_;
    for (const auto& relay : relays_) all += relay->bytes();
    return all;
  }

  const BenchOptions& options_;
  test::TempDir folder_;
  std::vector<std::unique_ptr<RelayUnderTest>> relays_;
  std::uintmax_t gone_bytes_{0};
  int started_{0};
};

}  // namespace

std::vector<Figure> bench_freezes(const BenchOptions& options) {
  PostgresFixture log(options);
  log.write(options.events);
  Fleet fleet(options);
  std::this_thread::sleep_for(2 * kLeaseUnderTest);
  const double undisturbed = fleet.rate(std::chrono::seconds(3));
  log.say(fmt::format("freezes: {:.0f} bytes/s before", undisturbed));
  for (int fault = 0; fault < kFaults; ++fault) {
    std::this_thread::sleep_for(kBetweenFaults);
    const std::size_t which = static_cast<std::size_t>(fault) % kRelaysUnderFault;
    if (fault % 2 == 0) {
      fleet.kill(which);
    } else {
      fleet.freeze(which);
    }
  }
  const auto start = Clock::now();
  double rate = fleet.rate(kRateWindow);
  for (; rate < undisturbed / 2; rate = fleet.rate(kRateWindow)) {
    if (Clock::now() - start > kFaultLimit)
      test::give_up(Errc::deadline_exceeded, "it stayed below half of its rate");
  }
  const double seconds = ms_since(start) / 1000;
  log.say(fmt::format("freezes: {:.0f} bytes/s after {:.1f} s", rate, seconds));
  return {Figure("freezes", seconds, "s").at_most(2)};
}

}  // namespace outbox::bench
