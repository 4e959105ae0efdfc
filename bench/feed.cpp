// feed: the time from just before a writer sends COMMIT to the sink, at 1,000 and 10 events a
// second, of a relay that polls with the armed wake-up, one that only polls, and one that follows
// the write-ahead log.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <outbox/relay.hpp>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/postgres_fixture.hpp"
#include "store/store.hpp"
#include "support/eventually.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

struct FeedWay {
  const char* name;
  bool wake_up;
  Feed feed;
};
constexpr std::array kFeedWays{FeedWay{"poll", true, Feed::poll},
                               FeedWay{"poll-only", false, Feed::poll},
                               FeedWay{"wal", true, Feed::wal}};

struct FeedTimes {
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> commit;
};

void drop_publication(PostgresFixture& log) {
  log.admin().run(fmt::format("DROP PUBLICATION IF EXISTS {}_wal", kSchema));
}

/// Waits until the stream runs, since a relay polls until its slot is made.
std::shared_ptr<void> wait_for_stream(const Relay& relay) {
  std::string trouble;
  const bool streams = test::eventually(
      [&] {
        const RelayReport report = relay.report();
        trouble = report.feed_trouble;
        return report.feed == "wal";
      },
      std::chrono::seconds(30));
  if (!streams) test::give_up(Errc::unsupported, "the log cannot be followed: " + trouble);
  return nullptr;
}

void measure_way(PostgresFixture& log, const FeedWay& way, const Pace& pace, FeedTimes& times) {
  log.admin().run(fmt::format("TRUNCATE {}.event", kSchema));
  Beside beside{.feed = way.feed, .pace = pace};
  if (way.feed == Feed::wal) beside.start = wait_for_stream;
  const Latencies seen = measure_latencies(log, way.wake_up, beside);
  log.drop_subscriptions();
  times.p50.push_back(quantile(seen.event_ms, 0.5));
  times.p99.push_back(quantile(seen.event_ms, 0.99));
  times.commit.push_back(quantile(seen.commit_ms, 0.5));
  log.say(fmt::format("feed: {} at {}/s: p50 {:.2f} ms, p99 {:.2f} ms, COMMIT {:.2f} ms", way.name,
                      pace.per_second, times.p50.back(), times.p99.back(), times.commit.back()));
}

std::vector<Figure> compare_ways(PostgresFixture& log, const Pace& pace) {
  std::map<std::string, FeedTimes> all;
  for (int i = 0; i < log.options().repeats; ++i) {
    for (const FeedWay& way : kFeedWays) measure_way(log, way, pace, all[way.name]);
  }
  const FeedTimes& armed = all["poll"];
  std::vector<Figure> figures;
  for (const FeedWay& way : kFeedWays) {
    const FeedTimes& times = all[way.name];
    const std::string name = fmt::format("feed.{}.{}", way.name, pace.per_second);
    Figure p50(name + ".p50", median(times.p50), "ms");
    Figure commit(name + ".commit.p50", median(times.commit), "ms");
    if (way.feed == Feed::wal) {
      p50.beside(median(armed.p50)).ratio_at_most(0.9);
      commit.beside(median(armed.commit)).ratio_at_most(1.05);
    }
    figures.push_back(p50);
    figures.push_back(Figure(name + ".p99", median(times.p99), "ms"));
    figures.push_back(commit);
  }
  return figures;
}

}  // namespace

std::vector<Figure> bench_feed(const BenchOptions& options) {
  PostgresFixture log(options);
  drop_publication(log);
  const auto store = test::must(store::open_store({.url = options.store_url, .schema = kSchema}));
  (void)test::must(store->make_wal_publication());
  std::vector<Figure> figures = compare_ways(log, choose_pace(options));
  const auto few = static_cast<std::int64_t>(std::max(options.seconds, 10.0) * 10);
  const auto rare = compare_ways(log, {.messages = few + 10, .per_second = 10, .unmeasured = 10});
  figures.insert(figures.end(), rare.begin(), rare.end());
  drop_publication(log);
  return figures;
}

}  // namespace outbox::bench
