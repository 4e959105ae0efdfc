// inventory: reserves stock for orders that another service announces on Kafka, and announces what
// became of them: a saga by choreography. An order that cannot be served is compensated by an event
// back, at which the other service cancels it. Kill it at any time, and run as many as you like.
#include <libpq-fe.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <outbox/consumer.hpp>
#include <outbox/json.hpp>
#include <outbox/postgres.hpp>
#include <outbox/worker.hpp>
#include <string>

namespace {

using outbox::TaskRun;
using outbox::postgres::Transaction;

struct OrderPlaced {
  static constexpr const char* task_type = "OrderPlaced";
  std::string order;
  std::string article;
  std::int64_t count{0};
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(OrderPlaced, order, article, count)
};
struct OrderCancelled {
  static constexpr const char* task_type = "OrderCancelled";
  std::string order;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(OrderCancelled, order)
};

/// What this service tells the others about an order.
outbox::Event about_order(const std::string& order, const char* what) {
  return {.aggregate_type = "stock",
          .aggregate_id = order,
          .event_type = what,
          .payload = R"({"order": ")" + order + "\"}"};
}

/// Returns how many rows the statement has changed.
template <std::size_t count>
int change(const Transaction& tx, const char* sql, const std::array<std::string, count>& values) {
  std::array<const char*, count> texts{};
  for (std::size_t i = 0; i < count; ++i) texts[i] = values[i].c_str();
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(
      PQexecParams(tx.connection(), sql, static_cast<int>(count), nullptr, texts.data(), nullptr,
                   nullptr, 0),
      &PQclear);
  outbox::postgres::check(tx.connection(), result.get(), "change the stock");
  return std::atoi(PQcmdTuples(result.get()));
}

void make_tables(PGconn* connection) {
  PQclear(
      PQexec(connection,
             "CREATE TABLE IF NOT EXISTS stock (article text PRIMARY KEY, pieces bigint NOT NULL);"
             "CREATE TABLE IF NOT EXISTS reservation (order_id text PRIMARY KEY,"
             " article text NOT NULL, pieces bigint NOT NULL)"));
}

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

}  // namespace

int main() {
  // Waited for below; blocked before any thread is there, so that none of them gets it.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  const std::string database = variable("DATABASE_URL", "postgresql://localhost/inventory");
  {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(database.c_str()),
                                                                  &PQfinish);
    make_tables(connection.get());
  }

  outbox::Handlers handlers;
  // [handlers]
  // The reservation, the event and the row by which they happen once are one transaction.
  handlers.on_tx<OrderPlaced>([](Transaction& tx, const OrderPlaced& order, const TaskRun&) {
    const bool reserved =
        change(tx, "UPDATE stock SET pieces = pieces - $2 WHERE article = $1 AND pieces >= $2",
               std::array{order.article, std::to_string(order.count)}) == 1;
    if (reserved) {
      change(tx, "INSERT INTO reservation VALUES ($1, $2, $3)",
             std::array{order.order, order.article, std::to_string(order.count)});
    }
    tx.enqueue(about_order(order.order, reserved ? "StockReserved" : "OrderRejected"));
  });
  handlers.on_tx<OrderCancelled>([](Transaction& tx, const OrderCancelled& order, const TaskRun&) {
    const int released = change(
        tx,
        "WITH gone AS (DELETE FROM reservation WHERE order_id = $1 RETURNING article, pieces)"
        " UPDATE stock s SET pieces = s.pieces + gone.pieces FROM gone WHERE s.article = gone.article",
        std::array{order.order});
    if (released > 0) tx.enqueue(about_order(order.order, "StockReleased"));
  });
  // [/handlers]

  outbox::WorkerOptions options;
  options.relay.store_url = database;
  options.relay.lease = std::chrono::seconds(3);
  options.queues = {"inventory"};
  options.heartbeat = std::chrono::seconds(1);
  auto worker = outbox::Worker::create(options, handlers);
  auto consumer = outbox::Consumer::create(
      {.store_url = database,
       .consumer = {.name = "inventory",
                    .source = "kafka",
                    .read = {variable("TOPIC", "order.events")},
                    .queue = "inventory",
                    .settings = {{"brokers", variable("KAFKA_BROKERS", "localhost:9092")}}}});
  outbox::Status started = worker ? (*worker)->start() : outbox::unexpected(worker.error());
  if (started) started = consumer ? (*consumer)->start() : outbox::unexpected(consumer.error());
  if (!started) {
    (void)std::fprintf(stderr, "%s\n", started.error().text().c_str());
    return 1;
  }
  int signal = 0;
  (void)sigwait(&ends, &signal);
  (*consumer)->stop();
  return (*worker)->stop(std::chrono::seconds(10)).drained ? 0 : 4;
}
