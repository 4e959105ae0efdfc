// feed: the time from just before a writer sends COMMIT to the sink, at 1,000 and 10 events a
// second, of a relay that polls with the armed wake-up, one that only polls, and one that follows
// the write-ahead log. Then what 64 writers can do beside each of them, and what it costs to follow
// the log.
#include <fmt/format.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <outbox/postgres.hpp>
#include <outbox/relay.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/rate.hpp"
#include "bench/relay_under_test.hpp"
#include "store/store.hpp"
#include "support/eventually.hpp"
#include "support/failure.hpp"
#include "support/temp_dir.hpp"

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
  Quantiles event;
  Quantiles commit;
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
  times.event.add(seen.event_ms);
  times.commit.add(seen.commit_ms);
  log.say(fmt::format("feed: {} at {}/s: p50 {:.2f} ms, p99 {:.2f} ms, COMMIT {:.2f} ms", way.name,
                      pace.per_second, times.event.p50.back(), times.event.p99.back(),
                      times.commit.p50.back()));
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
    Figure p50(name + ".p50", median(times.event.p50), "ms");
    Figure commit(name + ".commit.p50", median(times.commit.p50), "ms");
    if (way.feed == Feed::wal) {
      p50.beside(median(armed.event.p50)).ratio_at_most(0.9);
      commit.beside(median(armed.commit.p50)).ratio_at_most(1.05);
    }
    figures.push_back(p50);
    figures.push_back(Figure(name + ".p99", median(times.event.p99), "ms"));
    figures.push_back(commit);
  }
  return figures;
}

// ---- what writers pay, and what the server and the relay do

constexpr std::size_t kFeedWriters = 64;
constexpr double kMostMemoryMib = 64;

double used_seconds(pid_t pid) { return cpu_seconds("/proc/" + std::to_string(pid)); }
double peak_mib(pid_t pid) { return peak_rss_mib(std::to_string(pid)); }

/// An `outbox relay` process that learns of events in one way.
class FeedProcess {
 public:
  FeedProcess(PostgresFixture& log, const FeedWay& way)
      : log_(log),
        relay_(log.options(), "feed", folder_.path().string(), {},
               {{"OUTBOX_RELAY_FEED", way.feed == Feed::wal ? "wal" : "poll"},
                {"OUTBOX_RELAY_WAKE_UP", way.wake_up ? "true" : "false"}}) {
    const bool runs = test::eventually([&] {
      const bool owns =
          log_.admin().value(fmt::format("SELECT count(*) FROM {}.subscription", kSchema)) == "1";
      return owns && (way.feed != Feed::wal || sender() != 0);
    });
    if (!runs) test::give_up(Errc::deadline_exceeded, "the relay does not follow the log");
  }

  /// The server's process that sends the log; 0 if there is none.
  [[nodiscard]] pid_t sender() {
    return std::stoi(log_.admin().value(
        "SELECT coalesce(max(active_pid), 0) FROM pg_replication_slots WHERE slot_name LIKE 'outbox_wal_%'"));
  }
  [[nodiscard]] RelayUnderTest& relay() { return relay_; }
  /// Waits until nothing arrives any more.
  void wait_until_quiet() {
    int quiet = 0;
    const bool done = test::eventually(
        [&] {
          quiet = relay_.has_news() ? 0 : quiet + 1;
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          return quiet == 20;
        },
        std::chrono::seconds(120));
    if (!done) test::give_up(Errc::deadline_exceeded, "the relay does not come to rest");
  }

 private:
  PostgresFixture& log_;
  const test::TempDir folder_;
  RelayUnderTest relay_;
};

class FeedWriter {
 public:
  explicit FeedWriter(const std::string& url) : pg_(url) {}
  void transact(int number) {
    postgres::Transaction tx(pg_.native(), {.schema = kSchema});
    (void)tx.enqueue(Event{.aggregate_type = "order",
                           .aggregate_id = std::to_string(number),
                           .event_type = "OrderPlaced",
                           .payload = R"({"text": ")" + std::string(188, 'x') + R"("})"});
    tx.commit();
  }

 private:
  Pg pg_;
};

/// What was measured beside writers at full speed.
struct FeedCost {
  std::vector<double> per_second;
  std::vector<double> sender_us;  ///< CPU time per event.
  std::vector<double> relay_us;
  double peak_mib{0};
};

void write_at_full_speed(PostgresFixture& log, const FeedWay& way, FeedCost& cost) {
  log.admin().run(fmt::format("TRUNCATE {}.event", kSchema));
  FeedProcess process(log, way);
  std::vector<FeedWriter> writers;
  writers.reserve(kFeedWriters);
  Side side;
  for (std::size_t i = 0; i < kFeedWriters; ++i) {
    FeedWriter& writer = writers.emplace_back(log.options().store_url);
    side.push_back([&writer](int number) { writer.transact(number); });
  }
  const pid_t sender = process.sender();
  const double sender_before = sender == 0 ? 0 : used_seconds(sender);
  const double relay_before = used_seconds(process.relay().pid());
  cost.per_second.push_back(rates({side}, 1, log.options().seconds)[0]);
  process.wait_until_quiet();
  const double events =
      std::stod(log.admin().value(fmt::format("SELECT count(*) FROM {}.event", kSchema)));
  if (sender != 0) cost.sender_us.push_back((used_seconds(sender) - sender_before) * 1e6 / events);
  cost.relay_us.push_back((used_seconds(process.relay().pid()) - relay_before) * 1e6 / events);
  cost.peak_mib = std::max(cost.peak_mib, peak_mib(process.relay().pid()));
  log.say(fmt::format("feed: {} writers beside {}: {:.0f} tx/s, relay {:.1f} us per event",
                      kFeedWriters, way.name, cost.per_second.back(), cost.relay_us.back()));
}

std::vector<Figure> compare_writers(PostgresFixture& log) {
  std::map<std::string, FeedCost> all;
  for (int i = 0; i < log.options().repeats; ++i) {
    for (const FeedWay& way : kFeedWays) {
      write_at_full_speed(log, way, all[way.name]);
      log.drop_subscriptions();
    }
  }
  const double bare = median(all["poll-only"].per_second);
  std::vector<Figure> figures;
  for (const FeedWay& way : kFeedWays) {
    const FeedCost& cost = all[way.name];
    const std::string name = fmt::format("feed.{}.writers", way.name);
    Figure writers(name, median(cost.per_second), "tx/s");
    if (way.wake_up || way.feed == Feed::wal) writers.beside(bare);
    if (way.feed == Feed::wal) writers.ratio_at_least(1.0);
    figures.push_back(writers);
    figures.push_back(Figure(name + ".relay-cpu", median(cost.relay_us), "us/event"));
    if (way.feed != Feed::wal) continue;
    figures.push_back(Figure(name + ".sender-cpu", median(cost.sender_us), "us/event"));
    figures.push_back(Figure(name + ".memory", cost.peak_mib, "MiB").at_most(kMostMemoryMib));
  }
  return figures;
}

/// What following the log costs when others write to it: a gigabyte of another table in
/// transactions of about 4 MB, one transaction of as much, and one of a million events.
std::vector<Figure> measure_others(PostgresFixture& log) {
  log.admin().run(
      fmt::format("TRUNCATE {}.event; CREATE TABLE {}.bench_other (text text)", kSchema, kSchema));
  FeedProcess process(log, kFeedWays.back());
  const pid_t sender = process.sender();
  const pid_t relay = process.relay().pid();
  const std::string fill = fmt::format(
      "INSERT INTO {}.bench_other SELECT (SELECT string_agg(md5(i::text || j), '') FROM generate_series(1, 60) j) "
      "FROM generate_series(1, {{}}) i",
      kSchema);
  const auto measure = [&](const std::string& name, const std::function<void()>& write) {
    const auto position = [&] {
      return std::stod(log.admin().value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"));
    };
    const double from = position();
    const double sender_before = used_seconds(sender);
    const double relay_before = used_seconds(relay);
    write();
    const std::string end = log.admin().value("SELECT pg_current_wal_insert_lsn()");
    const bool passed = test::eventually(
        [&] {
          return log.admin().value(fmt::format(
                     "SELECT count(*) FROM pg_stat_replication WHERE pid = {} AND sent_lsn >= '{}'",
                     sender, end)) == "1";
        },
        std::chrono::minutes(5));
    if (!passed) test::give_up(Errc::deadline_exceeded, "the stream stands still");
    const double gigabytes = (position() - from) / (1 << 30);
    return std::vector<Figure>{
        Figure(name + ".sender-cpu", (used_seconds(sender) - sender_before) / gigabytes, "s/GiB"),
        Figure(name + ".relay-cpu", (used_seconds(relay) - relay_before) / gigabytes, "s/GiB")};
  };
  log.say("feed: writing a gigabyte beside it, twice");
  auto figures = measure("feed.wal.others", [&] {
    for (int i = 0; i < 250; ++i) log.admin().run(fmt::format(fmt::runtime(fill), 2000));
  });
  for (const Figure& figure : measure("feed.wal.others-at-once", [&] {
         log.admin().run(fmt::format(fmt::runtime(fill), 500'000));
       }))
    figures.push_back(figure);
  log.say("feed: writing a million events in one transaction");
  log.admin().run(fmt::format(
      "INSERT INTO {}.new_event (aggregate_type, aggregate_id, event_type, payload) SELECT 'a', (i % 10000)::text, "
      "'b', '{{}}' FROM generate_series(1, 1000000) i",
      kSchema));
  process.wait_until_quiet();
  figures.push_back(Figure("feed.wal.memory", peak_mib(relay), "MiB").at_most(kMostMemoryMib));
  if (process.sender() != sender) test::give_up(Errc::unavailable, "the stream was lost meanwhile");
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
  log.drop_subscriptions();
  for (const auto& more : {compare_writers(log), measure_others(log)})
    figures.insert(figures.end(), more.begin(), more.end());
  drop_publication(log);
  return figures;
}

}  // namespace outbox::bench
