// enqueue: business transactions per second with an event, against the same transaction with one plain INSERT more.
// 16 clients, synchronous commit, prepared statements; both through the same Transaction.
#include <fmt/format.h>

#include <outbox/postgres.hpp>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/enqueue_sql.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/rate.hpp"

namespace outbox::bench {
namespace {

constexpr int kClients = 16;
enum class Extra { plain_insert, event };

struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};

Status exec_prepared(PGconn* connection, const char* name,
                     std::initializer_list<const char*> values) {
  const std::vector<const char*> params(values);
  const std::unique_ptr<PGresult, Clear> result(PQexecPrepared(
      connection, name, static_cast<int>(params.size()), params.data(), nullptr, nullptr, 0));
  if (PQresultStatus(result.get()) == PGRES_COMMAND_OK) return {};
  return fail(Errc::internal, std::string("bench: ") + PQerrorMessage(connection));
}

class Client {
 public:
  static Result<std::unique_ptr<Client>> open(const std::string& url, bool wake) {
    auto pg = Pg::connect(url);
    if (!pg) return pass(pg);
    const std::string wake_setting = wake ? "on" : "off";
    Status status = pg->run(fmt::format(
        "SET outbox.wake = '{1}';"
        "PREPARE business AS UPDATE {0}.bench_account SET balance = balance + 1 WHERE id = $1::int;"
        "PREPARE note AS INSERT INTO {0}.bench_note (kind, account, body, at) VALUES ($1::text, $2::text, $3::text, now())",
        kSchema, wake_setting));
    if (!status) return fail(status.error());
    return std::unique_ptr<Client>(new Client(std::move(*pg)));
  }

  Status transact(Extra extra, int account) {
    const std::string id = std::to_string(account);
    try {
      postgres::Transaction tx(pg_.native());
      if (Status status = exec_prepared(pg_.native(), "business", {id.c_str()}); !status)
        return status;
      if (extra == Extra::event) {
        (void)box_.enqueue(tx, Event{.aggregate_type = "account",
                                     .aggregate_id = id,
                                     .event_type = "AccountCredited",
                                     .payload = body_});
      } else if (Status status = exec_prepared(pg_.native(), "note",
                                               {"AccountCredited", id.c_str(), body_.c_str()});
                 !status) {
        return status;
      }
      tx.commit();
    } catch (const Exception& error) {
      return fail(error.error());
    }
    return {};
  }

 private:
  explicit Client(Pg pg) : pg_(std::move(pg)) {}
  Pg pg_;
  postgres::Outbox box_{{.schema = kSchema}};
  std::string body_ = R"({"text": ")" + std::string(188, 'x') + R"("})";
};

Result<Figure> compare(const PostgresFixture& log, bool wake) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    auto client = Client::open(log.options().store_url, wake);
    if (!client) return pass(client);
    clients.push_back(std::move(*client));
  }
  std::vector<double> plain;
  std::vector<double> event;
  const int turns = kTurns * log.options().repeats;
  for (int i = 0; i < turns; ++i) {
    const bool event_first = i % 2 == 0;
    for (const Extra extra : {event_first ? Extra::event : Extra::plain_insert,
                              event_first ? Extra::plain_insert : Extra::event}) {
      auto measured = rate(clients.size(), static_cast<std::uint64_t>(i),
                           log.options().seconds / kTurns, [&](std::size_t client, int account) {
                             return clients[client]->transact(extra, account);
                           });
      if (!measured) return pass(measured);
      (extra == Extra::event ? event : plain).push_back(*measured);
    }
  }
  log.say(fmt::format("enqueue, wake-up {}: {:.0f} tx/s with an event, {:.0f} with a plain insert",
                      wake ? "on" : "off", median(event), median(plain)));
  return against(wake ? "enqueue.wake-on" : "enqueue.wake-off", median(event), "tx/s",
                 median(plain), wake ? 0.9 : 0.95);
}

}  // namespace

Result<std::vector<Figure>> bench_enqueue_postgres(const BenchOptions& options) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  const Status status = (*fixture)->admin().run(fmt::format(
      "CREATE TABLE {0}.bench_account (id int PRIMARY KEY, balance bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);"
      "INSERT INTO {0}.bench_account (id) SELECT generate_series(0, {1});"
      "CREATE TABLE {0}.bench_note (id bigserial PRIMARY KEY, kind text NOT NULL, account text NOT NULL, "
      "body text NOT NULL, at timestamptz NOT NULL)",
      kSchema, kAccounts));
  if (!status) return fail(status.error());
  std::vector<Figure> figures;
  for (const bool wake : {true, false}) {
    auto figure = compare(**fixture, wake);
    if (!figure) return pass(figure);
    figures.push_back(*figure);
  }
  auto by_sql = measure_enqueue_sql(**fixture);
  if (!by_sql) return pass(by_sql);
  figures.insert(figures.end(), by_sql->begin(), by_sql->end());
  return figures;
}

}  // namespace outbox::bench
