// parked: what many parked events and scheduled tasks cost, on either store: the start of a relay
// and of a worker, a person's retry of dead events beside delivery, more dead events of a key that
// has many, retention over many subscriptions, and how long an application waits for the store
// meanwhile.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/postgres.hpp>
#include <outbox/sqlite.hpp>
#include <outbox/task.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread.hpp"
#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/memory_sink.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/eventually.hpp"
#include "support/sqlite.hpp"
#include "support/store.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::must;

constexpr const char* kParkedName = "parked";
constexpr const char* kParkedQueue = "parked";
constexpr const char* kRejectedType = "Rejected";
constexpr const char* kAcceptedType = "Accepted";
constexpr std::int64_t kPerTransaction = 1000;
constexpr std::int64_t kMoreOfOneKey = 2000;
constexpr std::int64_t kSubscriptions = 2000;
constexpr std::chrono::minutes kParkedLimit{20};

/// The tables of the outbox on either store, and an application that writes to them. They are made
/// anew, and removed at the end.
class ParkedLog {
 public:
  explicit ParkedLog(const BenchOptions& options)
      : options_(options), is_sqlite_(options.store_url.starts_with("sqlite:")) {
    if (is_sqlite_) {
      path_ = options.store_url.substr(std::string("sqlite:").size()) + "-outbox-bench-parked";
      test::remove_sqlite_files(path_);
    } else {
      postgres_.emplace(options);
    }
    store_ = test::migrated_store(url(), schema(), "outbox-bench");
  }
  ParkedLog(const ParkedLog&) = delete;
  ParkedLog& operator=(const ParkedLog&) = delete;
  ~ParkedLog() {
    store_.reset();
    if (is_sqlite_) test::remove_sqlite_files(path_);
  }

  [[nodiscard]] bool is_sqlite() const { return is_sqlite_; }
  [[nodiscard]] store::Store& store() { return *store_; }
  [[nodiscard]] RelayOptions relay_options(std::vector<SubscriptionSpec> subscriptions) const {
    return {.store_url = url(), .schema = schema(), .subscriptions = std::move(subscriptions)};
  }
  void say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

  /// An application with a connection of its own.
  class Application {
   public:
    explicit Application(const ParkedLog& log) {
      if (log.is_sqlite_) {
        file_.emplace(log.path_);
        // Asks for the lock all the time, so that the application waits only as long as others hold
        // the lock. SQLite's own pauses grow to 100 ms.
        sqlite3_busy_handler(
            file_->native(),
            [](void*, int) {
              std::this_thread::sleep_for(std::chrono::microseconds(200));
              return 1;
            },
            nullptr);
      } else {
        pg_.emplace(log.url());
      }
    }
    void write(const std::vector<Event>& events) {
      transact([&](auto& tx) { (void)tx.enqueue(events); });
    }
    void write(const std::vector<Task>& tasks) {
      transact([&](auto& tx) {
        for (const Task& task : tasks) (void)tx.enqueue(task);
      });
    }

   private:
    template <class Body>
    void transact(const Body& body) {
      if (file_) {
        sqlite::Transaction tx(file_->native());
        body(tx);
        tx.commit();
      } else {
        postgres::Transaction tx(pg_->native(), {.schema = kSchema});
        body(tx);
        tx.commit();
      }
    }

    std::optional<test::SqliteFile> file_;
    std::optional<test::Pg> pg_;
  };

  template <class What>
  void write(std::int64_t count, const std::function<What(std::int64_t)>& make) {
    Application application(*this);
    for (std::int64_t from = 0; from < count; from += kPerTransaction) {
      std::vector<What> some;
      for (std::int64_t i = from; i < std::min(count, from + kPerTransaction); ++i)
        some.push_back(make(i));
      application.write(some);
    }
  }

 private:
  [[nodiscard]] std::string url() const {
    return is_sqlite_ ? "sqlite:" + path_ : options_.store_url;
  }
  [[nodiscard]] std::string schema() const { return is_sqlite_ ? "outbox" : kSchema; }

  const BenchOptions& options_;
  const bool is_sqlite_;
  std::string path_;
  std::optional<PostgresFixture> postgres_;
  std::unique_ptr<store::Store> store_;
};

/// Writes a transaction of one event every few milliseconds, until it is asked for the longest one.
class WriterBeside {
 public:
  explicit WriterBeside(const ParkedLog& log)
      : thread_(start_thread("ob-bench-write", [this, &log](const std::stop_token& stop) {
          ParkedLog::Application application(log);
          while (!stop.stop_requested()) {
            const std::int64_t sent = now_ns();
            application.write(std::vector<Event>{{.aggregate_type = "order",
                                                  .aggregate_id = fmt::format("w{}", ++written_),
                                                  .event_type = kAcceptedType,
                                                  .payload = stamped_payload(sent),
                                                  .content_type = "text/plain"}});
            longest_ns_ = std::max(longest_ns_, now_ns() - sent);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        })) {}
  /// The longest transaction in milliseconds.
  [[nodiscard]] double longest() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    return static_cast<double>(longest_ns_) / 1e6;
  }
  /// Must be called after longest().
  [[nodiscard]] std::int64_t written() const { return written_; }

 private:
  std::int64_t longest_ns_{0};
  std::int64_t written_{0};
  std::jthread thread_;
};

/// What a sink of the benchmark has seen. It outlives the sink.
struct Seen {
  std::atomic<std::int64_t> accepted{0};
  /// The time from an application's transaction to the sink.
  std::atomic<std::int64_t> longest_ns{0};
};

/// Rejects the events of one type, or nothing.
std::unique_ptr<Sink> rejecting_sink(Seen& seen, bool rejects) {
  return std::make_unique<MemorySink>(
      SinkTraits{.name = "by-type"},
      [&seen, rejects](std::span<const Message> batch, Outcome& failure) -> std::size_t {
        for (std::size_t i = 0; i < batch.size(); ++i) {
          if (batch[i].event->event_type == kRejectedType) {
            if (!rejects) continue;
            failure.kind = Outcome::Kind::rejected;
            failure.unsent = true;
            failure.error.message = "rejected by the benchmark";
            return i;
          }
          std::int64_t sent = 0;
          const std::string_view body = batch[i].body;
          (void)std::from_chars(body.data(), body.data() + body.size(), sent);
          if (sent != 0) seen.longest_ns = std::max(seen.longest_ns.load(), now_ns() - sent);
          ++seen.accepted;
        }
        return batch.size();
      });
}

Event rejected_event(const std::string& key) {
  return {.aggregate_type = "order",
          .aggregate_id = key,
          .event_type = kRejectedType,
          .payload = stamped_payload(0),
          .content_type = "text/plain"};
}

/// Writes events with keys of their own. Others are between them, since a destination that accepts
/// nothing counts as out of order.
void write_rejected(ParkedLog& log, std::int64_t count, const std::string& prefix) {
  constexpr std::int64_t kAcceptedEvery = 8;
  log.write<Event>(count * kAcceptedEvery / (kAcceptedEvery - 1), [&](std::int64_t i) {
    Event event = rejected_event(fmt::format("{}{}", prefix, i));
    if (i % kAcceptedEvery == 0) event.event_type = kAcceptedType;
    return event;
  });
}

SubscriptionSpec parks(std::size_t max_attempts) {
  SubscriptionSpec spec{.name = kParkedName, .sink = "custom"};
  spec.max_attempts = max_attempts;
  spec.retry_base = std::chrono::hours(1);
  spec.retry_cap = std::chrono::hours(1);
  spec.max_waiting = 10'000'000;
  return spec;
}

/// Delivers until nothing is pending, and returns the time in seconds.
double deliver_all(ParkedLog& log, const SubscriptionSpec& spec, bool rejects) {
  Seen seen;
  const auto relay = must(Relay::create(log.relay_options({spec})));
  must(relay->use(spec.name, rejecting_sink(seen, rejects)));
  const auto start = Clock::now();
  const RunReport report = must(relay->run_once(kParkedLimit));
  if (!report.settled) test::give_up(Errc::deadline_exceeded, report.reason);
  return ms_since(start) / 1000;
}

/// The time from a relay's start to the delivery of an event that waits for it, in milliseconds.
double start_of_relay(ParkedLog& log, const SubscriptionSpec& spec) {
  Seen seen;
  log.write<Event>(1, [](std::int64_t) {
    return Event{.aggregate_type = "order",
                 .aggregate_id = "start",
                 .event_type = kAcceptedType,
                 .payload = stamped_payload(0),
                 .content_type = "text/plain"};
  });
  const auto relay = must(Relay::create(log.relay_options({spec})));
  must(relay->use(spec.name, rejecting_sink(seen, true)));
  const auto start = Clock::now();
  must(relay->start());
  while (seen.accepted == 0 && Clock::now() - start < kParkedLimit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double ms = ms_since(start);
  (void)relay->stop(std::chrono::seconds(10));
  return ms;
}

double most_added_at_start(const ParkedLog& log) { return log.is_sqlite() ? 3000 : 1000; }
/// No transaction of the outbox may take 100 ms. On SQLite, where all writers wait for each other,
/// an application may come behind two of them.
double most_waited(const ParkedLog& log) { return log.is_sqlite() ? 200 : 100; }

std::vector<Figure> parked_keys(const BenchOptions& options) {
  ParkedLog log(options);
  const SubscriptionSpec spec = parks(10);
  const double empty = start_of_relay(log, spec);
  write_rejected(log, options.events, "k");
  WriterBeside while_parking(log);
  const double seconds = deliver_all(log, spec, true);
  const double waited_parking = while_parking.longest();
  log.say(fmt::format("parked: {} keys in {:.1f} s", options.events, seconds));
  WriterBeside while_starting(log);
  const double start = start_of_relay(log, spec);
  const double waited_starting = while_starting.longest();
  return {Figure("parked.parking", static_cast<double>(options.events) / seconds, "events/s"),
          Figure("parked.parking.writer", waited_parking, "ms").at_most(most_waited(log)),
          Figure("parked.start", start, "ms")
              .beside(empty)
              .above_limit_at_most(most_added_at_start(log)),
          Figure("parked.start.writer", waited_starting, "ms").at_most(most_waited(log))};
}

/// Does what `outbox parked retry --state dead --apply` does.
std::size_t retry_dead(ParkedLog& log) {
  const auto parked = must(log.store().parked_events());
  store::ParkedFilter filter{.state = store::ParkedState::dead};
  std::size_t retried = 0;
  while (true) {
    const auto page = must(parked->list(filter, store::kMostChanged, false));
    if (page.empty()) return retried;
    std::vector<std::int64_t> seqs;
    for (const auto& event : page) seqs.push_back(event.seq);
    retried += must(parked->retry(page.back().subscription, seqs, false));
    filter.after = {page.back().subscription, page.back().seq};
  }
}

std::vector<Figure> retry_of_dead(const BenchOptions& options) {
  ParkedLog log(options);
  const SubscriptionSpec spec = parks(1);
  write_rejected(log, options.events / 2, "k");
  (void)deliver_all(log, spec, true);
  Seen seen;
  const auto relay = must(Relay::create(log.relay_options({spec})));
  must(relay->use(spec.name, rejecting_sink(seen, false)));
  must(relay->start());
  WriterBeside writer(log);
  const auto start = Clock::now();
  const std::size_t retried = retry_dead(log);
  const double seconds = ms_since(start) / 1000;
  const double waited = writer.longest();
  (void)test::eventually([&] { return seen.accepted >= writer.written(); });
  const double latency = static_cast<double>(seen.longest_ns) / 1e6;
  (void)relay->stop(std::chrono::seconds(10));
  log.say(fmt::format("parked: {} of {} dead ones retried", retried, options.events / 2));
  return {Figure("parked.retry", seconds, "s").at_most(20),
          Figure("parked.retry.writer", waited, "ms").at_most(most_waited(log)),
          Figure("parked.retry.delivery", latency, "ms")};
}

/// How long a few more rejected events of a key take, in seconds.
double measure_more(ParkedLog& log, const std::string& key) {
  log.write<Event>(kMoreOfOneKey, [&](std::int64_t) { return rejected_event(key); });
  return deliver_all(log, parks(1), true);
}

std::vector<Figure> dead_of_one_key(const BenchOptions& options) {
  ParkedLog log(options);
  (void)measure_more(log, "first");  // This connects, and makes the subscription.
  const std::int64_t many = options.events * 3 / 2;
  log.write<Event>(many, [&](std::int64_t) { return rejected_event("one"); });
  const double seconds = deliver_all(log, parks(1), true);
  log.say(fmt::format("parked: {} dead ones of a key in {:.1f} s", many, seconds));
  std::vector<double> more;
  std::vector<double> other;
  for (int i = 0; i < options.repeats; ++i) {
    more.push_back(measure_more(log, "one"));
    other.push_back(measure_more(log, fmt::format("other{}", i)));
  }
  return {Figure("parked.one-key", median(more), "s").beside(median(other)).ratio_at_most(1.5)};
}

/// The time from a worker's start to the run of a task that waits for it, in milliseconds.
double start_of_worker(ParkedLog& log) {
  std::atomic<bool> has_run{false};
  Handlers handlers;
  handlers.on("now", [&](std::string_view, const TaskRun&) { has_run = true; });
  handlers.on("later", [](std::string_view, const TaskRun&) {});
  log.write<Task>(
      1, [](std::int64_t) { return Task{.queue = kParkedQueue, .type = "now", .payload = "{}"}; });
  const auto worker = must(Worker::create(
      {.relay = log.relay_options({}), .queues = {kParkedQueue}}, std::move(handlers)));
  const auto start = Clock::now();
  must(worker->start());
  while (!has_run && Clock::now() - start < kParkedLimit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double ms = ms_since(start);
  (void)worker->stop(std::chrono::seconds(30));
  return ms;
}

std::vector<Figure> scheduled_tasks(const BenchOptions& options) {
  ParkedLog log(options);
  const double empty = start_of_worker(log);
  const auto later = std::chrono::time_point_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now() + std::chrono::hours(10));
  log.write<Task>(options.events, [&](std::int64_t i) {
    return Task{.queue = kParkedQueue,
                .type = "later",
                .payload = "{}",
                .key = fmt::format("k{}", i),
                .execute_at = later};
  });
  WriterBeside while_parking(log);
  const double parking = start_of_worker(log);
  const double waited_parking = while_parking.longest();
  WriterBeside while_starting(log);
  const double start = start_of_worker(log);
  const double waited_starting = while_starting.longest();
  return {
      Figure("parked.scheduling", static_cast<double>(options.events) * 1000 / parking, "tasks/s"),
      Figure("parked.scheduling.writer", waited_parking, "ms").at_most(most_waited(log)),
      Figure("parked.scheduled-start", start, "ms")
          .beside(empty)
          .above_limit_at_most(most_added_at_start(log)),
      Figure("parked.scheduled-start.writer", waited_starting, "ms").at_most(most_waited(log))};
}

std::vector<Figure> many_subscriptions(const BenchOptions& options) {
  ParkedLog log(options);
  std::vector<SubscriptionSpec> all;
  for (std::int64_t i = 0; i < kSubscriptions; ++i)
    all.push_back({.name = fmt::format("s{}", i), .sink = "null"});
  log.write<Event>(1, [](std::int64_t) { return rejected_event("one"); });
  const auto relay = must(Relay::create(log.relay_options(all)));
  const RunReport report = must(relay->run_once(kParkedLimit));
  if (!report.settled) test::give_up(Errc::deadline_exceeded, report.reason);
  const auto retention = must(log.store().retention());
  WriterBeside writer(log);
  const auto start = Clock::now();
  const auto rows = must(retention->tidy({}, {}));
  const double seconds = ms_since(start) / 1000;
  log.say(
      fmt::format("parked: a pass over {} subscriptions removed {} rows", kSubscriptions, rows));
  return {Figure("parked.retention", seconds, "s").at_most(10),
          Figure("parked.retention.writer", writer.longest(), "ms").at_most(most_waited(log))};
}

}  // namespace

std::vector<Figure> bench_parked(const BenchOptions& options) {
  std::vector<Figure> figures;
  for (const auto part :
       {parked_keys, retry_of_dead, dead_of_one_key, scheduled_tasks, many_subscriptions}) {
    auto some = part(options);
    std::move(some.begin(), some.end(), std::back_inserter(figures));
  }
  return figures;
}

}  // namespace outbox::bench
