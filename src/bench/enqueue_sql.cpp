// What an event costs a writer in another language: outbox.enqueue(), the views new_event and event_in.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/rate.hpp"

namespace outbox::bench {
namespace {

struct Way {
  const char* name;
  std::string sql;  ///< {0}: the schema, {1}: the account.
};

const std::string kBody = R"('{{"text": ")" + std::string(188, 'x') + R"("}}')";

// The first is what the others are measured against.
const std::array<Way, 4>& ways() {
  static const std::array<Way, 4> all{
      {{"plain",
        "INSERT INTO {0}.bench_note (kind, account, body, at) VALUES ('AccountCredited', {1}, " +
            kBody + ", now())"},
       {"event_in",
        "INSERT INTO {0}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers) VALUES "
        "(gen_random_uuid(), 'account', {1}, 'AccountCredited', " +
            kBody + ", 'application/json', '{{}}')"},
       {"function", "SELECT {0}.enqueue('account', {1}, 'AccountCredited', " + kBody + ")"},
       {"view",
        "INSERT INTO {0}.new_event (aggregate_type, aggregate_id, event_type, payload) VALUES "
        "('account', {1}, 'AccountCredited', " +
            kBody + ")"}}};
  return all;
}

enum class Protocol { prepared, simple };
/// What is measured: the statement alone, or in a transaction with an UPDATE before it.
enum class Kind { alone, business };

/// One session, one way.
class Writer {
 public:
  Writer(const std::string& url, const Way& way, Protocol protocol, Kind kind)
      : pg_(url), way_(way), protocol_(protocol), kind_(kind) {
    std::string setup =
        kind == Kind::alone ? "SET synchronous_commit = off;" : "SET synchronous_commit = on;";
    if (protocol == Protocol::prepared) {
      setup += "PREPARE extra (text) AS " + fmt::format(fmt::runtime(way.sql), kSchema, "$1") +
               ";PREPARE business (int) AS " + business("$1");
    }
    pg_.run(setup);
  }

  void transact(int account) {
    const std::string key = std::to_string(account);
    if (kind_ == Kind::alone) return extra(key);
    pg_.run("BEGIN");
    update(key);
    extra(key);
    pg_.run("COMMIT");
  }

 private:
  static std::string business(const std::string& account) {
    return fmt::format("UPDATE {}.bench_account SET balance = balance + 1 WHERE id = {}", kSchema,
                       account);
  }
  void update(const std::string& key) {
    protocol_ == Protocol::prepared ? pg_.run_prepared("business", {key.c_str()})
                                    : pg_.run(business(key));
  }
  void extra(const std::string& key) {
    if (protocol_ == Protocol::prepared) return pg_.run_prepared("extra", {key.c_str()});
    pg_.run(fmt::format(fmt::runtime(way_.sql), kSchema, "'" + key + "'"));
  }

  Pg pg_;
  const Way& way_;
  Protocol protocol_;
  Kind kind_;
};

/// Transactions per second of each way, as the medians of turns.
std::vector<double> measure(const PostgresFixture& log, std::size_t clients, Protocol protocol,
                            Kind kind) {
  const BenchOptions& options = log.options();
  std::vector<std::vector<Writer>> writers(ways().size());
  for (std::size_t way = 0; way < ways().size(); ++way) {
    writers[way].reserve(clients);
    for (std::size_t i = 0; i < clients; ++i)
      writers[way].emplace_back(options.store_url, ways()[way], protocol, kind);
  }
  std::vector<std::vector<double>> rates(ways().size());
  for (int turn = 0; turn < kTurns * options.repeats; ++turn) {
    for (std::size_t i = 0; i < ways().size(); ++i) {
      const std::size_t way = (i + static_cast<std::size_t>(turn)) % ways().size();
      rates[way].push_back(
          rate(clients, static_cast<std::uint64_t>(turn), options.seconds / 2 / kTurns,
               [&](std::size_t client, int account) { writers[way][client].transact(account); }));
    }
  }
  std::vector<double> medians;
  medians.reserve(rates.size());
  for (auto& of_way : rates) medians.push_back(median(std::move(of_way)));
  return medians;
}

std::string name_of(const Way& way, Protocol protocol) {
  return std::string("enqueue.") + way.name + (protocol == Protocol::simple ? "-simple" : "");
}

/// 16 clients, each transaction an UPDATE and an event: beside the same with a plain INSERT.
void with_many(const PostgresFixture& log, Protocol protocol, std::vector<Figure>& figures) {
  const auto rates = measure(log, 16, protocol, Kind::business);
  for (std::size_t i = 1; i < ways().size(); ++i) {
    const std::string name = name_of(ways()[i], protocol);
    const bool bounded = protocol == Protocol::prepared && name == "enqueue.function";
    figures.push_back(bounded ? against(name, rates[i], "tx/s", rates.front(), 0.85)
                              : beside(name, rates[i], "tx/s", rates.front()));
  }
}

/// One client, asynchronous commit, only the event in a transaction: the cost of the event alone.
void with_one(const PostgresFixture& log, Protocol protocol, std::vector<Figure>& figures) {
  const auto rates = measure(log, 1, protocol, Kind::alone);
  const auto us = [&](std::size_t way) { return 1e6 / rates[way]; };
  figures.push_back(beside(name_of(ways()[1], protocol) + ".us", us(1), "us", us(0)));
  for (std::size_t i = 2; i < ways().size(); ++i) {
    const std::string name = name_of(ways()[i], protocol) + ".us";
    figures.push_back(protocol == Protocol::prepared ? at_most_more(name, us(i), "us", us(1), 40)
                                                     : beside(name, us(i), "us", us(0)));
  }
}

}  // namespace

std::vector<Figure> measure_enqueue_sql(const PostgresFixture& log) {
  std::vector<Figure> figures;
  for (const auto& with : {with_many, with_one}) {
    for (const Protocol protocol : {Protocol::prepared, Protocol::simple}) {
      log.say(fmt::format("enqueue by SQL, {}, {}", with == with_many ? "16 clients" : "1 client",
                          protocol == Protocol::prepared ? "prepared" : "by simple protocol"));
      with(log, protocol, figures);
    }
  }
  return figures;
}

}  // namespace outbox::bench
