// latency: from just before a writer sends COMMIT to the sink, at 1,000 events a second.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/pacer.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {
namespace {

/// Notes when each event reached the sink.
class ClockingSink final : public BatchSink {
 public:
  explicit ClockingSink(std::shared_ptr<Arrivals> arrivals) : arrivals_(std::move(arrivals)) {}
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "clock", .gapless = true};
  }
  [[nodiscard]] Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& /*failure*/) override {
    for (const Message& message : batch) arrivals_->arrived(message.body);
    return batch.size();
  }

 private:
  std::shared_ptr<Arrivals> arrivals_;
};

Result<Latencies> measure(PostgresFixture& log, bool wake_up) {
  auto arrivals = std::make_shared<Arrivals>();
  RelayOptions options = log.relay_options();
  options.wake_up = wake_up;
  options.subscriptions = {SubscriptionSpec{.name = "latency", .sink = "custom"}};
  auto relay = Relay::create(options);
  if (!relay) return pass(relay);
  if (Status status = (*relay)->use("latency", std::make_unique<ClockingSink>(arrivals)); !status)
    return pass(status);
  if (Status status = (*relay)->start(); !status) return pass(status);
  const auto events = static_cast<std::int64_t>(log.options().seconds * 1000);
  auto commits = write_paced(log, events, 1000);
  if (!commits) return pass(commits);
  if (!arrivals->wait_for(static_cast<std::size_t>(events), std::chrono::seconds(30))) {
    return fail(Errc::deadline_exceeded, "not every event arrived", (*relay)->report().last_error);
  }
  (void)(*relay)->stop(std::chrono::seconds(5));
  relay->reset();
  if (Status status = log.drop_subscriptions(); !status) return pass(status);
  return Latencies{.event_ms = arrivals->latencies_ms(), .commit_ms = std::move(*commits)};
}

}  // namespace

Result<std::vector<Figure>> bench_latency(const BenchOptions& options) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  std::vector<Figure> figures;
  for (const bool wake_up : {true, false}) {
    // A log of its own for each: a relay that starts at the beginning would first see the other's events.
    if (Status status = (*fixture)->admin().run(fmt::format("TRUNCATE {}.event", kSchema)); !status)
      return pass(status);
    auto times = measure(**fixture, wake_up);
    if (!times) return pass(times);
    const double p50 = quantile(times->event_ms, 0.5);
    const double p99 = quantile(times->event_ms, 0.99);
    if (wake_up) {
      figures.push_back(stated("latency.commit.p50", quantile(times->commit_ms, 0.5), "ms"));
      figures.push_back(at_most("latency.p50", p50, "ms", 2));
      figures.push_back(at_most("latency.p99", p99, "ms", 10));
    } else {
      figures.push_back(stated("latency.poll-only.p50", p50, "ms"));
      figures.push_back(stated("latency.poll-only.p99", p99, "ms"));
    }
  }
  return figures;
}

}  // namespace outbox::bench
