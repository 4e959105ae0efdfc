// events: what it costs to find an event by its id with its states, and what `status` costs, with
// 20 subscriptions. http: what it costs to ask a relay for its metrics and the console for the same
// two things, with 100 subscriptions.
#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "store/store.hpp"
#include "support/child_process.hpp"
#include "support/failure.hpp"
#include "support/free_port.hpp"
#include "support/temp_dir.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::give_up;
using test::must;

constexpr int kEventSubscriptions = 20;
constexpr int kHttpSubscriptions = 100;
constexpr int kLooks = 31;
constexpr std::int64_t kEventChunk = 5000;

// One transaction writes events whose ids the benchmark makes, and settles the subscriptions that
// keep up. For the others everything is pending. {0} is the schema, {1} the number of events, {2}
// which subscriptions keep up.
constexpr const char* kChunkSql = R"(
INSERT INTO {0}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers)
SELECT {0}.new_id(), 'order', (i % 10000)::text, 'OrderPlaced', convert_to(rpad('{{"text": "', 197, 'x') || '"}}', 'UTF8'),
       'application/json', '{{}}' FROM generate_series(1, {1}) i;
INSERT INTO {0}.settlement (subscription, kind, lanes, generation, config_version, s1, s2, l)
SELECT id, 'settle', -1, 1, 1, '3:3:', pg_current_snapshot(), currval('{0}.event_seq') FROM {0}.subscription WHERE {2})";

void add_subscriptions(store::Store& store, int count) {
  const auto catalog = must(store.catalog());
  for (int i = 0; i < count; ++i) {
    SubscriptionSpec spec;
    spec.name = fmt::format("s{}", i);
    spec.sink = "null";
    (void)must(catalog->apply(spec));
  }
}

void fill(PostgresFixture& log, const char* keep_up) {
  const std::int64_t events = log.options().events;
  log.say(fmt::format("writing {} events", events));
  log.admin().run("SET synchronous_commit = off; SET outbox.wake = 'off'");
  for (std::int64_t written = 0; written < events; written += kEventChunk)
    log.admin().run(fmt::format(fmt::runtime(kChunkSql), kSchema,
                                std::min(kEventChunk, events - written), keep_up));
  log.admin().run("CHECKPOINT");
}

/// The median of some runs, in milliseconds.
double median_ms(const std::function<void(int number)>& look) {
  std::vector<double> times;
  for (int i = 0; i < kLooks; ++i) {
    const auto start = Clock::now();
    look(i);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return median(times);
}

/// The ids of events from the whole log.
std::vector<EventId> some_ids(PostgresFixture& log) {
  std::vector<EventId> ids;
  for (int i = 0; i < kLooks; ++i) {
    const std::int64_t seq = 1 + log.options().events / kLooks * i;
    ids.push_back(must(EventId::parse(log.admin().value(fmt::format(
        "SELECT id FROM {}.event WHERE seq >= {} ORDER BY seq LIMIT 1", kSchema, seq)))));
  }
  return ids;
}

/// A process of `outbox` that answers over HTTP.
class Answering {
 public:
  explicit Answering(std::vector<std::string> command, int port)
      : process_({.command = std::move(command), .program = test::program_beside_us("outbox")}),
        client_("127.0.0.1", port) {
    client_.set_read_timeout(std::chrono::seconds(60));
  }

  /// The body of the answer. Throws if it is not 200.
  std::string get(const std::string& path) {
    const auto answer = client_.Get(path);
    if (!answer || answer->status != 200)
      give_up(Errc::unavailable, path + " was not answered with 200", "");
    return answer->body;
  }
  void wait_for(const std::string& path, const std::string& text) {
    constexpr std::chrono::seconds kLimit{120};
    for (const auto start = Clock::now(); Clock::now() - start < kLimit;) {
      const auto answer = client_.Get(path);
      if (answer && answer->status == 200 && answer->body.find(text) != std::string::npos) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    give_up(Errc::deadline_exceeded, path + " did not answer with " + text, "");
  }

 private:
  test::ChildProcess process_;
  httplib::Client client_;
};

std::string configuration(const PostgresFixture& log, const std::string& folder, int port) {
  std::string path = folder + "/outbox.toml";
  std::ofstream(path) << "[store]\nurl = \"" << log.options().store_url << "\"\nschema = \""
                      << kSchema << "\"\n[http]\nlisten = \"127.0.0.1:" << port << "\"\n";
  return path;
}

}  // namespace

std::vector<Figure> bench_http(const BenchOptions& options) {
  PostgresFixture log(options);
  const auto store = log.open_store();
  add_subscriptions(*store, kHttpSubscriptions);
  fill(log, "true");
  const std::vector<EventId> ids = some_ids(log);
  const test::TempDir folder;
  const int metrics_port = test::free_port();
  const int console_port = test::free_port();
  const std::string config = configuration(log, folder.path().string(), metrics_port);
  log.say("asking");
  Answering relay({"outbox", "relay", "-c", config, "--log-level", "off"}, metrics_port);
  Answering console({"outbox", "console", "-c", config, "--log-level", "off", "--listen",
                     fmt::format("127.0.0.1:{}", console_port)},
                    console_port);
  relay.wait_for("/metrics", fmt::format("subscription=\"s{}\"", kHttpSubscriptions - 1));
  console.wait_for("/api/v1/session", "{");
  const double scrape = median_ms([&](int) { (void)relay.get("/metrics"); });
  const double overview = median_ms([&](int) { (void)console.get("/api/v1/status"); });
  const double by_id = median_ms([&](int i) {
    (void)console.get("/api/v1/events/" + ids[static_cast<std::size_t>(i)].str());
  });
  const double connect = median_ms([&](int) { Pg(options.store_url).run("SELECT 1"); });
  return {Figure("http.scrape", scrape, "ms").at_most(20),
          Figure("http.overview", overview, "ms").beside(connect).at_most(100),
          Figure("http.event", by_id, "ms").beside(connect).at_most(150)};
}

std::vector<Figure> bench_events(const BenchOptions& options) {
  PostgresFixture log(options);
  const auto store = log.open_store();
  add_subscriptions(*store, kEventSubscriptions);
  fill(log, "id % 2 = 0");
  const std::vector<EventId> ids = some_ids(log);
  log.say("looking");
  // Looks as the commands do, with connections of its own.
  const double by_id = median_ms([&](int i) {
    must(store->check());
    const auto page =
        must(must(store->events())->list({.id = ids[static_cast<std::size_t>(i)]}, 1, false));
    if (page.events.size() != 1 || page.events[0].subscriptions.size() != kEventSubscriptions)
      give_up(Errc::internal, "an event was not found", "");
  });
  const double status = median_ms([&](int) {
    must(store->check());
    if (must(must(store->catalog())->overview(10'000)).size() != kEventSubscriptions)
      give_up(Errc::internal, "a subscription was not found", "");
  });
  const double connect = median_ms([&](int) { Pg(options.store_url).run("SELECT 1"); });
  return {Figure("events.id", by_id, "ms").beside(connect).at_most(100),
          Figure("events.status", status, "ms").beside(connect).at_most(50)};
}

}  // namespace outbox::bench
