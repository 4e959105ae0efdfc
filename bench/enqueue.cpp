// enqueue: business transactions per second with an event, beside the same with a plain INSERT
// instead, from C++ and by SQL. Commits are synchronous unless stated otherwise.
#include <fmt/format.h>

#include <array>
#include <outbox/postgres.hpp>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/rate.hpp"

namespace outbox::bench {
namespace {

constexpr std::size_t kClients = 16;

constexpr const char* kTables =
    "CREATE TABLE {0}.bench_account (id int PRIMARY KEY, balance bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);"
    "INSERT INTO {0}.bench_account (id) SELECT generate_series(0, {1});"
    "CREATE TABLE {0}.bench_note (id bigserial PRIMARY KEY, kind text NOT NULL, account text NOT NULL, "
    "body text NOT NULL, at timestamptz NOT NULL)";

/// {0} is the schema, {1} the account.
constexpr const char* kBusiness =
    "UPDATE {0}.bench_account SET balance = balance + 1 WHERE id = {1}::int";

const std::string kBody = R"({"text": ")" + std::string(188, 'x') + R"("})";

std::string sql(const std::string& text, const std::string& account) {
  return fmt::format(fmt::runtime(text), kSchema, account, "'" + kBody + "'");
}

// ---- from C++: prepared statements, and the same Transaction on both sides

class PostgresApplication {
 public:
  PostgresApplication(const std::string& url, bool wake) : pg_(url) {
    pg_.run(fmt::format(
        "SET outbox.wake = '{}'; PREPARE business AS {};"
        "PREPARE note AS INSERT INTO {}.bench_note (kind, account, body, at) VALUES ($1::text, $2::text, $3::text, now())",
        wake ? "on" : "off", sql(kBusiness, "$1"), kSchema));
  }

  void transact(bool with_event, int account) {
    const std::string id = std::to_string(account);
    postgres::Transaction tx(pg_.native(), {.schema = kSchema});
    pg_.run_prepared("business", {id.c_str()});
    if (with_event) {
      (void)tx.enqueue(Event{.aggregate_type = "account",
                             .aggregate_id = id,
                             .event_type = "AccountCredited",
                             .payload = kBody});
    } else {
      pg_.run_prepared("note", {"AccountCredited", id.c_str(), kBody.c_str()});
    }
    tx.commit();
  }

 private:
  Pg pg_;
};

Figure from_cpp(const PostgresFixture& log, bool wake) {
  std::vector<PostgresApplication> applications;
  applications.reserve(kClients);
  std::vector<Side> sides(2);
  for (std::size_t i = 0; i < kClients; ++i) {
    PostgresApplication& application = applications.emplace_back(log.options().store_url, wake);
    for (const bool event : {true, false})
      sides[event ? 0 : 1].push_back([&, event](int id) { application.transact(event, id); });
  }
  const auto tps = rates(sides, log.options().repeats, log.options().seconds);
  log.say(fmt::format("enqueue, wake-up {}: {:.0f} tx/s with an event, {:.0f} with a plain insert",
                      wake ? "on" : "off", tps[0], tps[1]));
  return Figure(wake ? "enqueue.wake-on" : "enqueue.wake-off", tps[0], "tx/s")
      .beside(tps[1])
      .ratio_at_least(wake ? 0.9 : 0.95);
}

// ---- by SQL, as a program in another language does it

struct Way {
  const char* name;
  const char* sql;  ///< {0} is the schema, {1} the account, {2} the body.
};

// The first way is what the others are measured against.
constexpr std::array<Way, 4> kWays{
    {{"plain",
      "INSERT INTO {0}.bench_note (kind, account, body, at) VALUES ('AccountCredited', {1}, {2}, now())"},
     {"event_in",
      "INSERT INTO {0}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers) VALUES "
      "(gen_random_uuid(), 'account', {1}, 'AccountCredited', {2}, 'application/json', '{{}}')"},
     {"function", "SELECT {0}.enqueue('account', {1}, 'AccountCredited', {2})"},
     {"view",
      "INSERT INTO {0}.new_event (aggregate_type, aggregate_id, event_type, payload) VALUES "
      "('account', {1}, 'AccountCredited', {2})"}}};

/// The statement alone with asynchronous commit, or in a transaction with an UPDATE before it.
enum class Scope { alone, business };

/// A session that enqueues in one way.
class Script {
 public:
  Script(const std::string& url, const Way& way, bool prepared, Scope scope)
      : pg_(url), way_(way), prepared_(prepared), scope_(scope) {
    pg_.run(scope == Scope::alone ? "SET synchronous_commit = off" : "SET synchronous_commit = on");
    if (!prepared) return;
    pg_.run("PREPARE extra (text) AS " + sql(way.sql, "$1"));
    pg_.run("PREPARE business (int) AS " + sql(kBusiness, "$1"));
  }

  void transact(int account) {
    const std::string id = std::to_string(account);
    if (scope_ == Scope::alone) return run("extra", way_.sql, id);
    pg_.run("BEGIN");
    run("business", kBusiness, id);
    run("extra", way_.sql, id);
    pg_.run("COMMIT");
  }

 private:
  void run(const char* name, const char* text, const std::string& id) {
    prepared_ ? pg_.run_prepared(name, {id.c_str()}) : pg_.run(sql(text, "'" + id + "'"));
  }

  Pg pg_;
  const Way& way_;
  const bool prepared_;
  const Scope scope_;
};

std::vector<double> rates_of_ways(const PostgresFixture& log, std::size_t clients, bool prepared,
                                  Scope scope) {
  const BenchOptions& options = log.options();
  log.say(fmt::format("enqueue by SQL, {} client{}, {}", clients, clients == 1 ? "" : "s",
                      prepared ? "prepared" : "by simple protocol"));
  std::vector<Side> sides;
  for (const Way& way : kWays) {
    Side& side = sides.emplace_back();
    for (std::size_t i = 0; i < clients; ++i) {
      side.push_back([script = std::make_shared<Script>(options.store_url, way, prepared, scope)](
                         int account) { script->transact(account); });
    }
  }
  return rates(sides, options.repeats, options.seconds / 2);
}

std::string make_name(const Way& way, bool prepared) {
  return std::string("enqueue.") + way.name + (prepared ? "" : "-simple");
}

/// Measures 16 clients: transactions of an UPDATE and an event, beside those with a plain INSERT.
void with_many(const PostgresFixture& log, bool prepared, std::vector<Figure>& figures) {
  const auto tps = rates_of_ways(log, kClients, prepared, Scope::business);
  for (std::size_t i = 1; i < kWays.size(); ++i) {
    Figure& figure = figures.emplace_back(make_name(kWays[i], prepared), tps[i], "tx/s");
    figure.beside(tps[0]);
    if (figure.name == "enqueue.function") figure.ratio_at_least(0.85);
  }
}

/// Measures one client with only the event in a transaction: the cost of the event alone.
void with_one(const PostgresFixture& log, bool prepared, std::vector<Figure>& figures) {
  const auto tps = rates_of_ways(log, 1, prepared, Scope::alone);
  for (std::size_t i = 1; i < kWays.size(); ++i) {
    Figure& figure =
        figures.emplace_back(make_name(kWays[i], prepared) + ".us", 1e6 / tps[i], "us");
    const bool bounded = prepared && i > 1;
    figure.beside(1e6 / tps[bounded ? 1 : 0]);
    if (bounded) figure.above_limit_at_most(40);
  }
}

}  // namespace

std::vector<Figure> bench_enqueue(const BenchOptions& options) {
  if (options.store_url.starts_with("sqlite:")) return bench_enqueue_sqlite(options);
  PostgresFixture log(options);
  log.admin().run(fmt::format(fmt::runtime(kTables), kSchema, kAccounts));
  std::vector<Figure> figures{from_cpp(log, true), from_cpp(log, false)};
  for (const bool prepared : {true, false}) with_many(log, prepared, figures);
  for (const bool prepared : {true, false}) with_one(log, prepared, figures);
  return figures;
}

}  // namespace outbox::bench
