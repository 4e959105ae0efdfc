// poison: how fast the others are delivered while events of some keys are rejected and parked.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "event/key.hpp"
#include "testkit/failure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kName = "poison";

/// Rejects the events of one key in so many; 0: none.
class RejectingSink final : public Sink {
 public:
  explicit RejectingSink(std::uint64_t one_in) : one_in_(one_in) {}
  [[nodiscard]] SinkTraits traits() const noexcept override { return {.name = "rejecting"}; }
  [[nodiscard]] Status open() override { return {}; }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override {
    for (const Message& message : messages) {
      Outcome outcome{.token = message.token, .kind = Outcome::Kind::acked};
      const auto key = event::key_hash(message.event->aggregate_type, message.event->aggregate_id);
      if (one_in_ != 0 && key % one_in_ == 0) {
        outcome.kind = Outcome::Kind::rejected;
        outcome.error.message = "rejected by the benchmark";
      }
      outcomes_.push_back(std::move(outcome));
    }
    return messages.size();
  }
  void receive(std::vector<Outcome>& outcomes) override {
    outcomes.insert(outcomes.end(), std::make_move_iterator(outcomes_.begin()),
                    std::make_move_iterator(outcomes_.end()));
    outcomes_.clear();
  }
  void purge() override {}
  void close() noexcept override {}

 private:
  const std::uint64_t one_in_;
  std::vector<Outcome> outcomes_;
};

/// Events delivered per second, until nothing is pending.
double rate_of(PostgresFixture& log, std::uint64_t one_in) {
  SubscriptionSpec spec{.name = kName, .sink = "custom"};
  spec.max_waiting = 10'000'000;
  spec.retry_base = std::chrono::hours(1);
  spec.retry_cap = std::chrono::hours(1);
  const auto relay = testkit::must(Relay::create(log.relay_options(spec)));
  testkit::must(relay->use(kName, std::make_unique<RejectingSink>(one_in)));
  const auto start = Clock::now();
  const RunReport report = testkit::must(relay->run_once(std::chrono::minutes(20)));
  if (!report.settled) testkit::give_up(Errc::deadline_exceeded, report.reason);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto parked =
      std::stoll(log.admin().value(fmt::format("SELECT count(*) FROM {}.parked", kSchema)));
  log.admin().run(fmt::format("TRUNCATE {}.parked", kSchema));
  log.drop_subscriptions();
  return static_cast<double>(log.options().events - parked) / seconds;
}

}  // namespace

std::vector<Figure> bench_poison(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events);
  std::vector<double> none;
  std::vector<double> one;
  std::vector<double> many;
  for (int i = 0; i < options.repeats; ++i) {
    none.push_back(rate_of(log, 0));
    one.push_back(rate_of(log, 10'000));
    many.push_back(rate_of(log, 10));
    log.say(fmt::format(
        "others per second: none rejected {:.0f}, one key in 10,000 {:.0f}, one in 10 {:.0f}",
        none.back(), one.back(), many.back()));
  }
  return {
      Figure("poison.one-key", median(one), "events/s").beside(median(none)).ratio_at_least(0.9),
      Figure("poison.tenth", median(many), "events/s").beside(median(none)).ratio_at_least(0.9)};
}

}  // namespace outbox::bench
