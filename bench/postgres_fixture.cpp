#include "bench/postgres_fixture.hpp"

#include <endian.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>
#include <utility>

#include "support/store.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::give_up;
using test::must;

constexpr int kPage = 1000;
/// The comment on the schema, by which the benchmarks recognize that they may drop it.
constexpr const char* kMarker = "made by outbox-bench";

constexpr const char* kFillEvents = R"(
DO $$ BEGIN
  FOR i IN {1} .. {2} LOOP
    INSERT INTO {0}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers)
    VALUES (gen_random_uuid(), {3}, {4}, {5},
            convert_to(rpad('{{"n": ' || i || ', "text": "', 197, 'x') || '"}}', 'UTF8'), 'application/json', {6});
    COMMIT;
  END LOOP;
END $$)";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Replaces what a killed run left, but no schema that is not the benchmarks'.
void make_schema(Pg& admin, const std::string& schema) {
  const std::string foreign =
      admin.value(fmt::format("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'"
                              " AND obj_description(oid, 'pg_namespace') IS DISTINCT FROM '{}'",
                              schema, kMarker));
  if (foreign != "0") {
    give_up(Errc::already_exists,
            fmt::format("schema {} exists and is not the benchmarks'", schema),
            "measure in another database");
  }
  admin.run(fmt::format(
      "DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}; COMMENT ON SCHEMA {0} IS '{1}'",
      schema, kMarker));
}

/// Waits until the relay has delivered `events`, and returns how many it has.
std::int64_t wait_for_delivered(const std::function<RelayReport()>& look_at, std::int64_t events,
                                Clock::time_point deadline, std::chrono::microseconds look) {
  while (true) {
    const RelayReport report = look_at();
    const bool none = report.subscriptions.empty();
    const auto delivered =
        none ? 0 : static_cast<std::int64_t>(report.subscriptions.front().delivered);
    if (delivered >= events) return delivered;
    if (Clock::now() > deadline) {
      give_up(Errc::deadline_exceeded,
              fmt::format("only {} of {} events were delivered", delivered, events),
              none ? report.last_error : report.subscriptions.front().reason);
    }
    std::this_thread::sleep_for(look);
  }
}

}  // namespace

void too_few_tasks(std::int64_t runs, std::int64_t enough) {
  give_up(
      Errc::deadline_exceeded,
      fmt::format("only {} of {} tasks ran within {} minutes", runs, enough, kDrainLimit.count()),
      "are all handlers idle? outbox status shows what the tasks wait for");
}

void reset_peak_rss() { std::ofstream("/proc/self/clear_refs") << "5"; }

double peak_rss_mib(const std::string& process) {
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

double cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

double cpu_seconds(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string text;
  std::getline(file, text);
  // utime and stime of proc(5) are the 12th and the 13th field behind the name in parentheses.
  std::istringstream rest(text.substr(text.rfind(')') + 1));
  constexpr int kFieldsBefore = 11;
  std::string skipped;
  for (int i = 0; i < kFieldsBefore; ++i) rest >> skipped;
  double user = 0;
  double system = 0;
  rest >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Drain median_drain(int repeats, const std::function<Drain(int number)>& drain) {
  std::vector<Drain> drains;
  drains.reserve(static_cast<std::size_t>(repeats));
  for (int i = 0; i < repeats; ++i) drains.push_back(drain(i));
  Drain all;
  for (const auto figure :
       {&Drain::events_per_second, &Drain::bare, &Drain::cpu_us_per_event, &Drain::peak_rss_mib,
        &Drain::wal_bytes, &Drain::statements, &Drain::settlements}) {
    std::vector<double> values;
    values.reserve(drains.size());
    for (const Drain& one : drains) values.push_back(one.*figure);
    all.*figure = quantile(values, figure == &Drain::peak_rss_mib ? 1 : 0.5);
  }
  return all;
}

PostgresFixture::PostgresFixture(const BenchOptions& options, std::string schema)
    : options_(options), schema_(std::move(schema)), admin_(options.store_url) {
  make_schema(admin_, schema_);
  (void)test::migrated_store(options_.store_url, schema_, "outbox-bench");
}

PostgresFixture::~PostgresFixture() {
  PQclear(
      PQexec(admin_.native(), fmt::format("DROP SCHEMA IF EXISTS {} CASCADE", schema_).c_str()));
}

void PostgresFixture::fill(std::int64_t events, const Rows& rows) {
  write(events, rows);
  (void)bare_drain();
}

void PostgresFixture::write(std::int64_t events, const Rows& rows) {
  say(fmt::format("writing {} events, each in its own transaction", events));
  const auto share = [&](std::int64_t first, std::int64_t last) {
    Pg pg(options_.store_url);
    pg.run("SET synchronous_commit = off; SET outbox.wake = 'off'");
    pg.run(fmt::format(fmt::runtime(kFillEvents), schema_, first, last, rows.aggregate_type,
                       rows.aggregate_id, rows.event_type, rows.headers));
  };
  auto other = std::async(std::launch::async, share, events / 2 + 1, events);
  share(1, events / 2);
  other.get();
  admin_.run("CHECKPOINT");
}

double PostgresFixture::bare_drain(std::uint64_t after) const {
  Pg pg(options_.store_url);
  pg.run(
      "SET jit = off; SET enable_seqscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0; "
      "SET plan_cache_mode = force_generic_plan");
  const std::string sql = fmt::format(
      "SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at "
      "FROM {}.event WHERE seq > $1::bigint ORDER BY seq LIMIT {}",
      schema_, kPage);
  (void)pg.check(PQprepare(pg.native(), "bare", sql.c_str(), 0, nullptr));
  // The binary format of libpq is used, as it is received.
  std::uint64_t position = htobe64(after);
  std::int64_t rows = 0;
  const auto start = Clock::now();
  while (true) {
    const char* const values[] = {reinterpret_cast<const char*>(&position)};
    const int lengths[] = {sizeof position};
    const int formats[] = {1};
    const auto page = pg.check(PQexecPrepared(pg.native(), "bare", 1, values, lengths, formats, 1));
    const int count = PQntuples(page.get());
    if (count == 0) return static_cast<double>(rows) / seconds_since(start);
    rows += count;
    std::memcpy(&position, PQgetvalue(page.get(), count - 1, 0), sizeof position);
  }
}

RelayOptions PostgresFixture::relay_options(SubscriptionSpec spec) const {
  RelayOptions options;
  options.store_url = options_.store_url;
  options.schema = schema_;
  options.name = "bench";
  options.subscriptions = {std::move(spec)};
  return options;
}

std::unique_ptr<store::Store> PostgresFixture::open_store() const {
  return must(store::open_store(
      {.url = options_.store_url, .schema = schema_, .application = "outbox-bench"}));
}

Drain PostgresFixture::drain(SubscriptionSpec spec, std::int64_t events) {
  const Drain result = deliver(std::move(spec), events);
  drop_subscriptions();
  return result;
}

Drain PostgresFixture::deliver(SubscriptionSpec spec, std::int64_t events) {
  const auto relay = must(Relay::create(relay_options(std::move(spec))));
  return measure(*relay, events);
}

Drain PostgresFixture::measure(const Calls& calls, std::int64_t events) {
  const double wal_before = wal_position();
  reset_peak_rss();
  must(calls.start());
  // Measures from the first delivery on, as the bare loop does from its first page on.
  const auto deadline = Clock::now() + kDrainLimit;
  const auto first = wait_for_delivered(calls.report, 1, deadline, std::chrono::microseconds(500));
  const auto start = Clock::now();
  const double cpu_before = cpu_us();
  const auto last =
      wait_for_delivered(calls.report, events, deadline, std::chrono::milliseconds(1));
  Drain result;
  const auto measured = static_cast<double>(last - first);
  result.events_per_second = measured / seconds_since(start);
  result.cpu_us_per_event = (cpu_us() - cpu_before) / measured;
  const RelayReport report = calls.report();
  if (report.subscriptions.empty())
    give_up(Errc::lease_lost, "the relay lost its lanes", report.last_error);
  result.statements = static_cast<double>(report.statements);
  result.settlements = static_cast<double>(report.subscriptions.front().settlements);
  calls.stop();
  result.peak_rss_mib = peak_rss_mib();
  result.wal_bytes = wal_position() - wal_before;
  return result;
}

double PostgresFixture::wal_position() {
  return std::stod(admin_.value("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"));
}

void PostgresFixture::run_between() {
  if (std::system(options_.between.c_str()) != 0)  // A user asked to run it.
    give_up(Errc::invalid_argument, "the command of --between failed", options_.between);
  admin_ = Pg(options_.store_url);
}

void PostgresFixture::drop_subscriptions() {
  admin_.run(fmt::format("DELETE FROM {0}.settlement; DELETE FROM {0}.subscription", schema_));
}

}  // namespace outbox::bench
