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
  auto paced = write_paced(log);
  if (!paced) return pass(paced);
  if (!arrivals->wait_for(paced->events, std::chrono::seconds(30))) {
    return fail(Errc::deadline_exceeded, "not every event arrived", (*relay)->report().last_error);
  }
  (void)(*relay)->stop(std::chrono::seconds(5));
  return Latencies{.event_ms = arrivals->latencies_ms(), .commit_ms = std::move(paced->commit_ms)};
}

}  // namespace

Result<std::vector<Figure>> bench_latency(const BenchOptions& options) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  PostgresFixture& log = **fixture;
  const auto measured = [&log](bool wake_up) { return measure(log, wake_up); };
  return latency_figures(log, "latency", {.p50_ms = 2, .p99_ms = 10}, measured);
}

}  // namespace outbox::bench
