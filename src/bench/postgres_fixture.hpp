// A schema of the benchmarks' own in the database that --store names: made afresh, dropped at the end.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <outbox/error.hpp>
#include <outbox/relay.hpp>
#include <string>

#include "bench/bench.hpp"

namespace outbox::bench {

inline constexpr const char* kSchema = "outbox_bench";

/// A plain connection for set-up and for the limits. Errors end the benchmark.
class Pg {
 public:
  [[nodiscard]] static Result<Pg> connect(const std::string& url);
  [[nodiscard]] Status run(const std::string& sql);
  [[nodiscard]] Result<std::string> value(const std::string& sql);
  [[nodiscard]] PGconn* native() const { return connection_.get(); }

 private:
  struct Close {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  explicit Pg(PGconn* connection) : connection_(connection) {}
  std::unique_ptr<PGconn, Close> connection_;
};

class PostgresFixture {
 public:
  /// Drops what an earlier run left and migrates.
  [[nodiscard]] static Result<std::unique_ptr<PostgresFixture>> create(const BenchOptions& options);
  PostgresFixture(const PostgresFixture&) = delete;
  PostgresFixture& operator=(const PostgresFixture&) = delete;
  PostgresFixture(PostgresFixture&&) = delete;
  PostgresFixture& operator=(PostgresFixture&&) = delete;
  ~PostgresFixture();

  /// Writes events, each in a transaction of its own: 200-byte payloads, 10,000 keys.
  [[nodiscard]] Status fill(std::int64_t events);
  /// Reads everything once, so that hint bits are set and the cache is warm.
  [[nodiscard]] Status warm_up();
  /// Rate of a bare loop that pages the same rows by seq, one page after the other, and does nothing.
  [[nodiscard]] Result<double> bare_drain();

  struct Drain {
    double events_per_second{0};
    double cpu_us_per_event{0};  ///< Of this process, the relay in it.
    double peak_rss_mib{0};
    double wal_bytes{0};  ///< Written by the server meanwhile.
    double statements{0};
    double settlements{0};
  };
  /// Drains the log to a new subscription with this sink and removes the subscription.
  [[nodiscard]] Result<Drain> drain(SubscriptionSpec spec, std::int64_t events,
                                    bool wake_up = true);
  [[nodiscard]] Result<double> wal_position();

  [[nodiscard]] RelayOptions relay_options() const;
  [[nodiscard]] Status drop_subscriptions();
  [[nodiscard]] Pg& admin() { return admin_; }
  [[nodiscard]] const BenchOptions& options() const { return options_; }
  void say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

 private:
  PostgresFixture(const BenchOptions& options, Pg admin)
      : options_(options), admin_(std::move(admin)) {}
  const BenchOptions& options_;
  Pg admin_;
};

/// CPU time of this process, user and system. Unit: microseconds.
[[nodiscard]] double cpu_us();
/// Forgets the peak so far.
void reset_peak_rss();
[[nodiscard]] double peak_rss_mib();

}  // namespace outbox::bench
