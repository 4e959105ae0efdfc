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

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

constexpr int kWriters = 2;

Status write_share(const PostgresFixture& log, int share, std::int64_t events, int per_second,
                   std::vector<double>& commit_ms) {
  auto pg = Pg::connect(log.options().store_url);
  if (!pg) return pass(pg);
  const postgres::Outbox box({.schema = kSchema});
  const auto start = Clock::now();
  try {
    for (std::int64_t i = share; i < events; i += kWriters) {
      std::this_thread::sleep_until(start +
                                    std::chrono::nanoseconds(i * 1'000'000'000 / per_second));
      postgres::Transaction tx(pg->native());
      Event event{.aggregate_type = "order",
                  .aggregate_id = std::to_string(i % 10000),
                  .event_type = "OrderPlaced",
                  .payload = fmt::format("{:<200}", now_ns())};
      event.content_type = "text/plain";
      (void)box.enqueue(tx, event);
      const std::int64_t before = now_ns();
      tx.commit();
      commit_ms.push_back(static_cast<double>(now_ns() - before) / 1e6);
    }
  } catch (const Exception& error) {
    return fail(error.error());
  }
  return {};
}

}  // namespace

void Arrivals::arrived(std::string_view body) {
  std::int64_t sent = 0;
  (void)std::from_chars(body.data(), body.data() + body.size(), sent);
  const double ms = static_cast<double>(now_ns() - sent) / 1e6;
  {
    const std::scoped_lock lock(mutex_);
    latencies_ms_.push_back(ms);
  }
  changed_.notify_one();
}

bool Arrivals::wait_for(std::size_t count, std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return latencies_ms_.size() >= count; });
}

std::vector<double> Arrivals::latencies_ms() {
  const std::scoped_lock lock(mutex_);
  return latencies_ms_;
}

Result<std::vector<double>> write_paced(PostgresFixture& log, std::int64_t events, int per_second) {
  log.say(fmt::format("writing {} events at {} a second", events, per_second));
  std::array<Status, kWriters> results;
  std::array<std::vector<double>, kWriters> commit_ms;
  std::vector<std::jthread> writers;
  for (int share = 0; share < kWriters; ++share) {
    writers.emplace_back([&, share] {
      results[static_cast<std::size_t>(share)] =
          write_share(log, share, events, per_second, commit_ms[static_cast<std::size_t>(share)]);
    });
  }
  writers.clear();
  for (const Status& result : results) {
    if (!result) return fail(result.error());
  }
  for (int share = 1; share < kWriters; ++share) {
    const auto& more = commit_ms[static_cast<std::size_t>(share)];
    commit_ms[0].insert(commit_ms[0].end(), more.begin(), more.end());
  }
  return commit_ms[0];
}

}  // namespace outbox::bench
