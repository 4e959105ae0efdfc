#include "bench/pacer.hpp"

#include <fmt/format.h>

#include <charconv>
#include <future>
#include <outbox/postgres.hpp>
#include <outbox/relay.hpp>
#include <thread>
#include <utility>

#include "testkit/failure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using testkit::must;

constexpr int kWriters = 2;
constexpr int kPerSecond = 1000;
constexpr std::int64_t kWarmUp = kPerSecond;
constexpr std::chrono::seconds kArrivalLimit{30};

/// Returns how long sending the event with COMMIT took in each transaction, the warm-up excepted.
std::vector<double> write_share(const BenchOptions& options, int share, std::int64_t events) {
  const Pg pg(options.store_url);
  const postgres::Outbox box({.schema = kSchema});
  std::vector<double> commit_ms;
  const auto start = Clock::now();
  for (std::int64_t i = share; i < events; i += kWriters) {
    const bool warming_up = i < kWarmUp;
    std::this_thread::sleep_until(start + std::chrono::nanoseconds(i * 1'000'000'000 / kPerSecond));
    postgres::Transaction tx(pg.native());
    const std::int64_t before = now_ns();
    Event event{.aggregate_type = "order",
                .aggregate_id = std::to_string(i % 10000),
                .event_type = "OrderPlaced",
                .payload = stamped_payload(warming_up ? 0 : before)};
    event.content_type = "text/plain";
    (void)box.enqueue(tx, event);
    tx.commit();
    if (!warming_up) commit_ms.push_back(static_cast<double>(now_ns() - before) / 1e6);
  }
  return commit_ms;
}

struct Quantiles {
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> commit_p50;

  void add(std::vector<double>& latencies_ms) {
    p50.push_back(quantile(latencies_ms, 0.5));
    p99.push_back(quantile(latencies_ms, 0.99));
  }
};

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

std::string stamped_payload(std::int64_t sent_ns) { return fmt::format("{:<200}", sent_ns); }

void Arrivals::arrived(std::string_view body) {
  std::int64_t sent = 0;
  (void)std::from_chars(body.data(), body.data() + body.size(), sent);
  const double ms = static_cast<double>(now_ns() - sent) / 1e6;
  {
    const MutexLock lock(mutex_);
    ++count_;
    if (sent > 0) latencies_ms_.push_back(ms);
  }
  changed_.notify_one();
}

bool Arrivals::wait_for(std::int64_t count) {
  const MutexLock lock(mutex_);
  const auto all = [&]() OUTBOX_REQUIRES(mutex_) { return count_ >= count; };
  return changed_.wait_for(mutex_, kArrivalLimit, all);
}

std::vector<double> Arrivals::latencies_ms() {
  const MutexLock lock(mutex_);
  return latencies_ms_;
}

Latencies measure_latencies(PostgresFixture& log, SubscriptionSpec spec, bool wake_up,
                            Arrivals& arrivals, std::unique_ptr<Sink> sink) {
  RelayOptions options = log.relay_options();
  options.wake_up = wake_up;
  options.subscriptions = {std::move(spec)};
  const auto relay = must(Relay::create(options));
  if (sink) must(relay->use(options.subscriptions.front().name, std::move(sink)));
  must(relay->start());
  const auto events = kWarmUp + static_cast<std::int64_t>(log.options().seconds * kPerSecond);
  log.say(fmt::format("writing {} events at {} a second", events, kPerSecond));
  auto other = std::async(std::launch::async, write_share, std::cref(log.options()), 1, events);
  Latencies latencies;
  latencies.commit_ms = write_share(log.options(), 0, events);
  const auto others = other.get();
  latencies.commit_ms.insert(latencies.commit_ms.end(), others.begin(), others.end());
  if (!arrivals.wait_for(events)) {
    testkit::give_up(Errc::deadline_exceeded, "not every event arrived",
                     relay->report().last_error);
  }
  (void)relay->stop(std::chrono::seconds(5));
  latencies.event_ms = arrivals.latencies_ms();
  return latencies;
}

std::vector<Figure> latency_figures(PostgresFixture& log, const std::string& name,
                                    LatencyTargets targets,
                                    const std::function<Latencies(bool wake_up)>& measure,
                                    const std::function<std::vector<double>()>& bare) {
  Quantiles woken;
  Quantiles polled;
  Quantiles limit;
  for (int i = 0; i < log.options().repeats; ++i) {
    if (bare) {
      auto times = bare();
      limit.add(times);
    }
    for (const bool wake_up : {true, false}) {
      log.admin().run(fmt::format("TRUNCATE {}.event", kSchema));
      Latencies times = measure(wake_up);
      log.drop_subscriptions();
      Quantiles& all = wake_up ? woken : polled;
      all.add(times.event_ms);
      all.commit_p50.push_back(quantile(times.commit_ms, 0.5));
      if (wake_up && !bare) limit.add(times.commit_ms);
    }
    log.say(fmt::format("{}: p50 {:.2f} ms, p99 {:.2f} ms; by polling {:.2f} and {:.2f} ms", name,
                        woken.p50.back(), woken.p99.back(), polled.p50.back(), polled.p99.back()));
    if (bare) {
      log.say(fmt::format("{}: without us p50 {:.2f} ms, p99 {:.2f} ms", name, limit.p50.back(),
                          limit.p99.back()));
    }
  }
  return {
      stated(name + ".commit.p50", median(woken.commit_p50), "ms"),
      with_limit(at_most(name + ".p50", median(woken.p50), "ms", targets.p50_ms),
                 median(limit.p50)),
      with_limit(at_most(name + ".p99", median(woken.p99), "ms", targets.p99_ms),
                 median(limit.p99)),
      stated(name + ".poll-only.p50", median(polled.p50), "ms"),
      stated(name + ".poll-only.p99", median(polled.p99), "ms"),
  };
}

}  // namespace outbox::bench
