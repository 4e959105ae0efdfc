// latency: the time from just before a writer sends COMMIT to the sink, at 1,000 events a second.
#include "bench/latency.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <future>
#include <outbox/postgres.hpp>
#include <outbox/relay.hpp>
#include <thread>
#include <utility>

#include "bench/bench.hpp"
#include "bench/memory_sink.hpp"
#include "support/eventually.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::must;

constexpr int kLatencyWriters = 2;
constexpr std::chrono::seconds kArrivalLimit{30};

/// Returns how long sending the event with COMMIT took in each transaction that is measured.
std::vector<double> write_share(const BenchOptions& options, const Pace& pace, int share) {
  const Pg pg(options.store_url);
  std::vector<double> commit_ms;
  const auto write = [&](std::int64_t number, bool measured) {
    postgres::Transaction tx(pg.native(), {.schema = kSchema});
    const std::int64_t before = now_ns();
    Event event{.aggregate_type = "order",
                .aggregate_id = std::to_string(number % 10000),
                .event_type = "OrderPlaced",
                .payload = stamped_payload(measured ? before : 0)};
    event.content_type = "text/plain";
    (void)tx.enqueue(event);
    tx.commit();
    if (measured) commit_ms.push_back(static_cast<double>(now_ns() - before) / 1e6);
  };
  send_at(pace, write, share, kLatencyWriters);
  return commit_ms;
}

/// Notes when each event reached the sink.
std::unique_ptr<Sink> clocking_sink(Arrivals& arrivals) {
  return std::make_unique<MemorySink>(
      SinkTraits{.name = "clock", .gapless = true},
      [&arrivals](std::span<const Message> batch, Outcome& /*failure*/) {
        for (const Message& message : batch) arrivals.arrived(message.body);
        return batch.size();
      });
}

}  // namespace

Pace choose_pace(const BenchOptions& options) {
  Pace pace;
  pace.messages = pace.unmeasured + static_cast<std::int64_t>(options.seconds * 1000);
  return pace;
}

void send_at(const Pace& pace, const std::function<void(std::int64_t number, bool measured)>& send,
             std::int64_t first, std::int64_t step) {
  const auto start = Clock::now();
  for (std::int64_t i = first; i < pace.messages; i += step) {
    std::this_thread::sleep_until(start +
                                  std::chrono::nanoseconds(i * 1'000'000'000 / pace.per_second));
    send(i, i >= pace.unmeasured);
  }
}

std::int64_t now_ns() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

std::string stamped_payload(std::int64_t sent_ns) { return fmt::format("{:<200}", sent_ns); }

void Arrivals::arrived(std::string_view body) {
  std::int64_t sent = 0;
  (void)std::from_chars(body.data(), body.data() + body.size(), sent);
  const double ms = static_cast<double>(now_ns() - sent) / 1e6;
  if (sent > 0) {
    const MutexLock lock(mutex_);
    latencies_ms_.push_back(ms);
  }
  ++count_;
}

std::vector<double> Arrivals::latencies_ms(std::int64_t count) {
  if (!test::eventually([&] { return count_ >= count; }, kArrivalLimit)) {
    test::give_up(Errc::deadline_exceeded,
                  fmt::format("only {} of {} messages arrived", count_.load(), count));
  }
  const MutexLock lock(mutex_);
  return latencies_ms_;
}

Latencies measure_latencies(PostgresFixture& log, SubscriptionSpec spec, bool wake_up,
                            Arrivals& arrivals, std::unique_ptr<Sink> sink, const Beside& beside) {
  RelayOptions options = log.relay_options(std::move(spec));
  options.wake_up = wake_up;
  options.history_interval = beside.history_interval;
  options.feed = beside.feed;
  const auto relay = must(Relay::create(options));
  if (sink) must(relay->use(options.subscriptions.front().name, std::move(sink)));
  must(relay->start());
  const auto other_work = beside.start ? beside.start(*relay) : nullptr;
  const Pace pace = beside.pace.value_or(choose_pace(log.options()));
  log.say(fmt::format("writing {} events at {} a second", pace.messages, pace.per_second));
  auto other =
      std::async(std::launch::async, write_share, std::cref(log.options()), std::cref(pace), 1);
  Latencies latencies;
  latencies.commit_ms = write_share(log.options(), pace, 0);
  const auto others = other.get();
  latencies.commit_ms.insert(latencies.commit_ms.end(), others.begin(), others.end());
  latencies.event_ms = arrivals.latencies_ms(pace.messages);
  (void)relay->stop(std::chrono::seconds(5));
  return latencies;
}

Latencies measure_latencies(PostgresFixture& log, bool wake_up, const Beside& beside) {
  Arrivals arrivals;
  return measure_latencies(log, SubscriptionSpec{.name = "latency", .sink = "custom"}, wake_up,
                           arrivals, clocking_sink(arrivals), beside);
}

std::vector<Figure> latency_figures(PostgresFixture& log, const std::string& name,
                                    LatencyTargets targets,
                                    const std::function<Latencies(bool wake_up)>& measure,
                                    const std::function<std::vector<double>()>& bare) {
  Quantiles woken;
  Quantiles polled;
  Quantiles commit;
  Quantiles without_us;
  const auto run = [&](bool wake_up) {
    log.admin().run(fmt::format("TRUNCATE {}.event", kSchema));
    const Latencies times = measure(wake_up);
    log.drop_subscriptions();
    (wake_up ? woken : polled).add(times.event_ms);
    if (wake_up) commit.add(times.commit_ms);
  };
  for (int i = 0; i < log.options().repeats; ++i) {
    if (bare) without_us.add(bare());
    run(true);
    run(false);
    log.say(fmt::format("{}: p50 {:.2f} ms, p99 {:.2f} ms; by polling {:.2f} and {:.2f} ms", name,
                        woken.p50.back(), woken.p99.back(), polled.p50.back(), polled.p99.back()));
    if (bare) {
      log.say(fmt::format("{}: without us p50 {:.2f} ms, p99 {:.2f} ms", name,
                          without_us.p50.back(), without_us.p99.back()));
    }
  }
  const Quantiles& limit = bare ? without_us : commit;
  Figure p50(name + ".p50", median(woken.p50), "ms");
  p50.beside(median(limit.p50));
  if (targets.p50_ms) p50.at_most(*targets.p50_ms);
  return {
      Figure(name + ".commit.p50", median(commit.p50), "ms"),
      p50,
      Figure(name + ".p99", median(woken.p99), "ms")
          .beside(median(limit.p99))
          .at_most(targets.p99_ms),
      Figure(name + ".poll-only.p50", median(polled.p50), "ms"),
      Figure(name + ".poll-only.p99", median(polled.p99), "ms"),
  };
}

std::vector<Figure> bench_latency(const BenchOptions& options) {
  PostgresFixture log(options);
  const auto measured = [&log](bool wake_up) { return measure_latencies(log, wake_up); };
  return latency_figures(log, "latency", {.p50_ms = 2, .p99_ms = 10}, measured);
}

}  // namespace outbox::bench
