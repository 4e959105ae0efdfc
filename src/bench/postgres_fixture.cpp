#include "bench/postgres_fixture.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/error.hpp"
#include "store/store.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPage = 1000;
/// The comment on the schema that says that it is ours to drop.
constexpr const char* kMarker = "made by outbox bench";

struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, Clear>;

Error server_error(const std::string& what, const char* said) {
  return Error{.code = Errc::unavailable,
               .remedy = Remedy::fix,
               .effect = Effect::none,
               .message = what + ": " + said,
               .hint = {},
               .origin = "pg"};
}

std::int64_t big_endian(const char* bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return static_cast<std::int64_t>(value);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Made afresh. What was left by a run that was killed goes; what is somebody else's stays.
Status make_schema(Pg& admin) {
  auto foreign =
      admin.value(fmt::format("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'"
                              " AND obj_description(oid, 'pg_namespace') IS DISTINCT FROM '{}'",
                              kSchema, kMarker));
  if (!foreign) return pass(foreign);
  if (*foreign != "0") {
    return fail(Errc::already_exists,
                fmt::format("schema {} exists and is not the benchmarks'", kSchema),
                "measure in another database");
  }
  return admin.run(fmt::format(
      "DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}; COMMENT ON SCHEMA {0} IS '{1}'",
      kSchema, kMarker));
}

}  // namespace

Result<Pg> Pg::connect(const std::string& url) {
  Pg made(PQconnectdb(url.c_str()));
  if (PQstatus(made.native()) != CONNECTION_OK)
    return fail(server_error("connect", PQerrorMessage(made.native())));
  PQsetNoticeReceiver(
      made.native(), [](void*, const PGresult*) {}, nullptr);
  return made;
}

Status Pg::run(const std::string& sql) {
  const ResultPtr result(PQexec(native(), sql.c_str()));
  const auto status = PQresultStatus(result.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
  return fail(server_error("run", PQerrorMessage(native())));
}

Result<std::string> Pg::value(const std::string& sql) {
  const ResultPtr result(PQexec(native(), sql.c_str()));
  if (PQresultStatus(result.get()) != PGRES_TUPLES_OK || PQntuples(result.get()) == 0) {
    return fail(server_error("query", PQerrorMessage(native())));
  }
  return std::string(PQgetvalue(result.get(), 0, 0));
}

Result<std::unique_ptr<PostgresFixture>> PostgresFixture::create(const BenchOptions& options) {
  auto admin = Pg::connect(options.store_url);
  if (!admin) return pass(admin);
  if (Status status = make_schema(*admin); !status) return pass(status);
  auto store = store::open_store(
      {.url = options.store_url, .schema = kSchema, .application = "outbox bench"});
  if (!store) return pass(store);
  if (auto migrated = (*store)->migrate(); !migrated) return pass(migrated);
  std::unique_ptr<PostgresFixture> fixture(new PostgresFixture(options, std::move(*admin)));
  const std::string fill = fmt::format(R"(
CREATE PROCEDURE {0}.bench_fill(first bigint, last bigint) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN first .. last LOOP
    INSERT INTO {0}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers)
    VALUES (gen_random_uuid(), 'order', (i % 10000)::text, 'OrderPlaced',
            convert_to(rpad('{{"n": ' || i || ', "text": "', 197, 'x') || '"}}', 'UTF8'), 'application/json', '{{}}');
    COMMIT;
  END LOOP;
END $$)",
                                       kSchema);
  if (Status status = fixture->admin_.run(fill); !status) return pass(status);
  return fixture;
}

PostgresFixture::~PostgresFixture() {
  (void)admin_.run(fmt::format("DROP SCHEMA IF EXISTS {} CASCADE", kSchema));
}

Status PostgresFixture::fill(std::int64_t events) {
  say(fmt::format("writing {} events, each in its own transaction", events));
  constexpr int kWriters = 2;
  std::vector<std::jthread> writers;
  writers.reserve(kWriters);
  std::array<Status, kWriters> results;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      auto pg = Pg::connect(options_.store_url);
      if (!pg) {
        results[static_cast<std::size_t>(i)] = pass(pg);
        return;
      }
      (void)pg->run("SET synchronous_commit = off; SET outbox.wake = 'off'");
      const std::int64_t first = events * i / kWriters + 1;
      const std::int64_t last = events * (i + 1) / kWriters;
      results[static_cast<std::size_t>(i)] =
          pg->run(fmt::format("CALL {}.bench_fill({}, {})", kSchema, first, last));
    });
  }
  writers.clear();
  for (const Status& result : results) {
    if (!result) return result;
  }
  return admin_.run("CHECKPOINT");
}

Status PostgresFixture::warm_up() {
  auto rate = bare_drain();
  if (!rate) return pass(rate);
  return {};
}

Result<double> PostgresFixture::bare_drain() {
  auto pg = Pg::connect(options_.store_url);
  if (!pg) return pass(pg);
  const Status set = pg->run(
      "SET jit = off; SET enable_seqscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0; "
      "SET plan_cache_mode = force_generic_plan");
  if (!set) return fail(set.error());
  const std::string sql = fmt::format(
      "SELECT seq, id, aggregate_type, aggregate_id, event_type, payload, content_type, headers, created_at "
      "FROM {}.event WHERE seq > $1::bigint ORDER BY seq LIMIT {}",
      kSchema, kPage);
  ResultPtr prepared(PQprepare(pg->native(), "bare", sql.c_str(), 0, nullptr));
  if (PQresultStatus(prepared.get()) != PGRES_COMMAND_OK)
    return fail(server_error("prepare", PQerrorMessage(pg->native())));
  std::int64_t position = 0;
  std::int64_t rows = 0;
  const auto start = Clock::now();
  while (true) {
    char bytes[8];
    for (int i = 0; i < 8; ++i)
      bytes[i] = static_cast<char>(static_cast<std::uint64_t>(position) >> (56 - 8 * i));
    const char* values[] = {bytes};
    const int lengths[] = {8};
    const int formats[] = {1};
    const ResultPtr page(PQexecPrepared(pg->native(), "bare", 1, values, lengths, formats, 1));
    if (PQresultStatus(page.get()) != PGRES_TUPLES_OK)
      return fail(server_error("page", PQerrorMessage(pg->native())));
    const int count = PQntuples(page.get());
    if (count == 0) break;
    rows += count;
    position = big_endian(PQgetvalue(page.get(), count - 1, 0));
  }
  return static_cast<double>(rows) / seconds_since(start);
}

RelayOptions PostgresFixture::relay_options() const {
  RelayOptions options;
  options.store_url = options_.store_url;
  options.schema = kSchema;
  options.name = "bench";
  return options;
}

Result<PostgresFixture::Drain> PostgresFixture::drain(SubscriptionSpec spec, std::int64_t events,
                                                      bool wake_up) {
  RelayOptions options = relay_options();
  options.subscriptions = {std::move(spec)};
  options.wake_up = wake_up;
  auto relay = Relay::create(options);
  if (!relay) return pass(relay);
  auto wal_before = wal_position();
  if (!wal_before) return pass(wal_before);
  reset_peak_rss();
  if (Status status = (*relay)->start(); !status) return pass(status);
  const auto delivered = [&relay] {
    const RelayReport report = (*relay)->report();
    return report.subscriptions.empty()
               ? 0
               : static_cast<std::int64_t>(report.subscriptions.front().delivered);
  };
  // Counted from the first delivery seen, as the bare loop is counted from its first page.
  const auto deadline = Clock::now() + std::chrono::minutes(10);
  std::int64_t first = 0;
  while ((first = delivered()) == 0) {
    if (Clock::now() > deadline)
      return fail(Errc::deadline_exceeded, "nothing was delivered", (*relay)->report().last_error);
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  const auto start = Clock::now();
  const double cpu_before = cpu_us();
  std::int64_t now = 0;
  while ((now = delivered()) < events) {
    if (Clock::now() > deadline) {
      const RelayReport report = (*relay)->report();
      return fail(
          Errc::deadline_exceeded, fmt::format("only {} of {} events were delivered", now, events),
          report.subscriptions.empty() ? report.last_error : report.subscriptions.front().reason);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Drain result;
  const auto measured = static_cast<double>(now - first);
  result.events_per_second = measured / seconds_since(start);
  result.cpu_us_per_event = (cpu_us() - cpu_before) / measured;
  const RelayReport report = (*relay)->report();
  if (report.subscriptions.empty())
    return fail(Errc::lease_lost, "the relay lost its lanes", report.last_error);
  result.statements = static_cast<double>(report.statements);
  result.settlements = static_cast<double>(report.subscriptions.front().settlements);
  (void)(*relay)->stop(std::chrono::seconds(10));
  result.peak_rss_mib = peak_rss_mib();
  auto wal_after = wal_position();
  if (!wal_after) return pass(wal_after);
  result.wal_bytes = *wal_after - *wal_before;
  relay->reset();
  if (Status status = drop_subscriptions(); !status) return pass(status);
  return result;
}

Result<double> PostgresFixture::wal_position() {
  auto text = admin_.value("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')");
  if (!text) return pass(text);
  return std::stod(*text);
}

Status PostgresFixture::drop_subscriptions() {
  return admin_.run(
      fmt::format("DELETE FROM {0}.settlement; DELETE FROM {0}.subscription", kSchema));
}

double cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

void reset_peak_rss() { std::ofstream("/proc/self/clear_refs") << "5"; }

double peak_rss_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

}  // namespace outbox::bench
