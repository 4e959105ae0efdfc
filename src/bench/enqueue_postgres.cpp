// enqueue: business transactions per second with an event, beside the same with a plain INSERT instead.
// 16 clients, synchronous commit, prepared statements; both through the same Transaction.
#include <fmt/format.h>

#include <outbox/postgres.hpp>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/rate.hpp"

namespace outbox::bench {
namespace {

constexpr int kClients = 16;
enum class Extra { plain_insert, event };

class Client {
 public:
  Client(const std::string& url, bool wake) : pg_(url) {
    pg_.run(fmt::format(
        "SET outbox.wake = '{1}';"
        "PREPARE business AS UPDATE {0}.bench_account SET balance = balance + 1 WHERE id = $1::int;"
        "PREPARE note AS INSERT INTO {0}.bench_note (kind, account, body, at) VALUES ($1::text, $2::text, $3::text, now())",
        kSchema, wake ? "on" : "off"));
  }

  void transact(Extra extra, int account) {
    const std::string id = std::to_string(account);
    postgres::Transaction tx(pg_.native());
    pg_.run_prepared("business", {id.c_str()});
    if (extra == Extra::event) {
      (void)box_.enqueue(tx, Event{.aggregate_type = "account",
                                   .aggregate_id = id,
                                   .event_type = "AccountCredited",
                                   .payload = body_});
    } else {
      pg_.run_prepared("note", {"AccountCredited", id.c_str(), body_.c_str()});
    }
    tx.commit();
  }

 private:
  Pg pg_;
  postgres::Outbox box_{{.schema = kSchema}};
  std::string body_ = R"({"text": ")" + std::string(188, 'x') + R"("})";
};

Figure compare(const PostgresFixture& log, bool wake) {
  std::vector<Client> clients;
  clients.reserve(kClients);
  for (int i = 0; i < kClients; ++i) clients.emplace_back(log.options().store_url, wake);
  std::vector<double> plain;
  std::vector<double> event;
  const int turns = kTurns * log.options().repeats;
  for (int i = 0; i < turns; ++i) {
    const bool event_first = i % 2 == 0;
    for (const Extra extra : {event_first ? Extra::event : Extra::plain_insert,
                              event_first ? Extra::plain_insert : Extra::event}) {
      (extra == Extra::event ? event : plain)
          .push_back(rate(
              clients.size(), static_cast<std::uint64_t>(i), log.options().seconds / kTurns,
              [&](std::size_t client, int account) { clients[client].transact(extra, account); }));
    }
  }
  log.say(fmt::format("enqueue, wake-up {}: {:.0f} tx/s with an event, {:.0f} with a plain insert",
                      wake ? "on" : "off", median(event), median(plain)));
  return against(wake ? "enqueue.wake-on" : "enqueue.wake-off", median(event), "tx/s",
                 median(plain), wake ? 0.9 : 0.95);
}

}  // namespace

std::vector<Figure> bench_enqueue_postgres(const BenchOptions& options) {
  PostgresFixture log(options);
  log.admin().run(fmt::format(
      "CREATE TABLE {0}.bench_account (id int PRIMARY KEY, balance bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);"
      "INSERT INTO {0}.bench_account (id) SELECT generate_series(0, {1});"
      "CREATE TABLE {0}.bench_note (id bigserial PRIMARY KEY, kind text NOT NULL, account text NOT NULL, "
      "body text NOT NULL, at timestamptz NOT NULL)",
      kSchema, kAccounts));
  std::vector<Figure> figures{compare(log, true), compare(log, false)};
  const auto by_sql = measure_enqueue_sql(log);
  figures.insert(figures.end(), by_sql.begin(), by_sql.end());
  return figures;
}

}  // namespace outbox::bench
