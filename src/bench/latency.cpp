// latency: from just before a writer sends COMMIT to the sink, at 1,000 events a second.
#include "bench/bench.hpp"
#include "bench/pacer.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {
namespace {

/// Notes when each event reached the sink.
class ClockingSink final : public BatchSink {
 public:
  explicit ClockingSink(Arrivals& arrivals) : arrivals_(arrivals) {}
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "clock", .gapless = true};
  }
  [[nodiscard]] Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& /*failure*/) override {
    for (const Message& message : batch) arrivals_.arrived(message.body);
    return batch.size();
  }

 private:
  Arrivals& arrivals_;
};

}  // namespace

std::vector<Figure> bench_latency(const BenchOptions& options) {
  PostgresFixture log(options);
  const auto measured = [&log](bool wake_up) {
    Arrivals arrivals;
    return measure_latencies(log, SubscriptionSpec{.name = "latency", .sink = "custom"}, wake_up,
                             arrivals, std::make_unique<ClockingSink>(arrivals));
  };
  return latency_figures(log, "latency", {.p50_ms = 2, .p99_ms = 10}, measured);
}

}  // namespace outbox::bench
