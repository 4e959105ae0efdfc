#include "bench/pacer.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <outbox/postgres.hpp>
#include <thread>

#include "base/error.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWriters = 2;
constexpr int kPerSecond = 1000;
constexpr std::int64_t kWarmUp = kPerSecond;

Status write_share(const PostgresFixture& log, int share, std::int64_t events,
                   std::vector<double>& commit_ms) {
  auto pg = Pg::connect(log.options().store_url);
  if (!pg) return pass(pg);
  const postgres::Outbox box({.schema = kSchema});
  const auto start = Clock::now();
  try {
    for (std::int64_t i = share; i < events; i += kWriters) {
      const bool warming_up = i < kWarmUp;
      std::this_thread::sleep_until(start +
                                    std::chrono::nanoseconds(i * 1'000'000'000 / kPerSecond));
      postgres::Transaction tx(pg->native());
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
  } catch (const Exception& error) {
    return fail(error.error());
  }
  return {};
}

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
    const std::scoped_lock lock(mutex_);
    ++count_;
    if (sent > 0) latencies_ms_.push_back(ms);
  }
  changed_.notify_one();
}

bool Arrivals::wait_for(std::int64_t count, std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return count_ >= count; });
}

std::vector<double> Arrivals::latencies_ms() {
  const std::scoped_lock lock(mutex_);
  return latencies_ms_;
}

Result<Paced> write_paced(PostgresFixture& log) {
  Paced paced;
  paced.events = kWarmUp + static_cast<std::int64_t>(log.options().seconds * kPerSecond);
  log.say(fmt::format("writing {} events at {} a second", paced.events, kPerSecond));
  std::array<Status, kWriters> results;
  std::array<std::vector<double>, kWriters> commit_ms;
  std::vector<std::jthread> writers;
  for (std::size_t share = 0; share < kWriters; ++share) {
    writers.emplace_back([&, share] {
      results[share] = write_share(log, static_cast<int>(share), paced.events, commit_ms[share]);
    });
  }
  writers.clear();
  for (const Status& result : results) {
    if (!result) return fail(result.error());
  }
  for (const auto& some : commit_ms)
    paced.commit_ms.insert(paced.commit_ms.end(), some.begin(), some.end());
  return paced;
}

namespace {

struct Quantiles {
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> commit_p50;

  void add(std::vector<double>& latencies_ms) {
    p50.push_back(quantile(latencies_ms, 0.5));
    p99.push_back(quantile(latencies_ms, 0.99));
  }
};

Figure beside(Figure figure, const std::vector<double>& limits) {
  if (limits.empty()) return figure;
  figure.limit = median(limits);
  figure.ratio = figure.value / *figure.limit;
  return figure;
}

}  // namespace

Result<std::vector<Figure>> latency_figures(
    PostgresFixture& log, const std::string& name, LatencyTargets targets,
    const std::function<Result<Latencies>(bool wake_up)>& measure,
    const std::function<Result<std::vector<double>>()>& bare) {
  Quantiles woken;
  Quantiles polled;
  Quantiles limit;
  for (int i = 0; i < log.options().repeats; ++i) {
    if (bare) {
      auto times = bare();
      if (!times) return pass(times);
      limit.add(*times);
    }
    for (const bool wake_up : {true, false}) {
      if (Status status = log.admin().run(fmt::format("TRUNCATE {}.event", kSchema)); !status)
        return pass(status);
      auto times = measure(wake_up);
      if (!times) return pass(times);
      if (Status status = log.drop_subscriptions(); !status) return pass(status);
      Quantiles& all = wake_up ? woken : polled;
      all.add(times->event_ms);
      all.commit_p50.push_back(quantile(times->commit_ms, 0.5));
      if (wake_up && !bare) limit.add(times->commit_ms);
    }
    log.say(fmt::format("{}: p50 {:.2f} ms, p99 {:.2f} ms; by polling {:.2f} and {:.2f} ms", name,
                        woken.p50.back(), woken.p99.back(), polled.p50.back(), polled.p99.back()));
    if (bare) {
      log.say(fmt::format("{}: without us p50 {:.2f} ms, p99 {:.2f} ms", name, limit.p50.back(),
                          limit.p99.back()));
    }
  }
  return std::vector<Figure>{
      stated(name + ".commit.p50", median(woken.commit_p50), "ms"),
      beside(at_most(name + ".p50", median(woken.p50), "ms", targets.p50_ms), limit.p50),
      beside(at_most(name + ".p99", median(woken.p99), "ms", targets.p99_ms), limit.p99),
      stated(name + ".poll-only.p50", median(polled.p50), "ms"),
      stated(name + ".poll-only.p99", median(polled.p99), "ms"),
  };
}

}  // namespace outbox::bench
