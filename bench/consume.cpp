// consume: how fast messages of a Kafka topic get through the inbox, become tasks and are done, and
// how soon a message has its effect; beside the same loops written by hand.
#include <fmt/format.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <outbox/consumer.hpp>
#include <outbox/postgres.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/failure.hpp"
#include "support/kafka.hpp"

namespace outbox::bench {
namespace {

using test::KafkaTopic;
using test::must;
using Clock = std::chrono::steady_clock;

constexpr int kPartitions = 4;
constexpr std::size_t kConsumeBatch = 500;
constexpr const char* kConsumer = "bench";
constexpr const char* kConsumeQueue = "bench";
/// A transaction for each message is measured with a part of the messages.
constexpr std::int64_t kTransactionsPart = 20;

/// Produces messages as our sink does with format raw, with the headers that a consumer reads.
class Messages {
 public:
  explicit Messages(const KafkaTopic& topic)
      : topic_(topic.name()),
        client_(test::kafka_client(RD_KAFKA_PRODUCER, topic.brokers(),
                                   {{"enable.idempotence", "true"},
                                    {"linger.ms", "1"},
                                    {"queue.buffering.max.messages", "200000"}})) {}

  void send(std::int64_t number, const std::string& payload) {
    const std::string id = EventId::generate().str();
    const std::string key = std::to_string(number % 10000);
    while (true) {
      const auto code = rd_kafka_producev(
          client_.get(), RD_KAFKA_V_TOPIC(topic_.c_str()), RD_KAFKA_V_KEY(key.data(), key.size()),
          RD_KAFKA_V_VALUE(const_cast<char*>(payload.data()), payload.size()),
          RD_KAFKA_V_HEADER("outbox-id", id.data(), static_cast<ssize_t>(id.size())),
          RD_KAFKA_V_HEADER("outbox-type", "OrderPlaced", 11),
          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
      if (code == RD_KAFKA_RESP_ERR_NO_ERROR) break;
      if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL)
        test::give_up(Errc::unavailable, rd_kafka_err2str(code));
      rd_kafka_poll(client_.get(), 10);
    }
    rd_kafka_poll(client_.get(), 0);
  }
  void flush() {
    if (rd_kafka_flush(client_.get(), 120'000) != RD_KAFKA_RESP_ERR_NO_ERROR)
      test::give_up(Errc::deadline_exceeded, "the broker has not confirmed the messages");
  }

 private:
  const std::string topic_;
  const test::KafkaClient client_;
};

void fill_topic(const KafkaTopic& topic, std::int64_t messages) {
  Messages producer(topic);
  const std::string payload(200, 'x');
  for (std::int64_t i = 0; i < messages; ++i) producer.send(i, payload);
  producer.flush();
}

std::unique_ptr<Consumer> make_consumer(const PostgresFixture& log, const KafkaTopic& topic) {
  return must(Consumer::create({.store_url = log.options().store_url,
                                .schema = kSchema,
                                .consumer = {.name = kConsumer,
                                             .source = "kafka",
                                             .read = {topic.name()},
                                             .group = test::unique_name("bench"),
                                             .queue = kConsumeQueue,
                                             .max_pending = 1'000'000'000,
                                             .batch = kConsumeBatch,
                                             .settings = {{"brokers", topic.brokers()}}}}));
}

std::unique_ptr<Worker> make_worker(const PostgresFixture& log, Handlers handlers) {
  return must(Worker::create({.relay = log.relay_options({}), .queues = {kConsumeQueue}},
                             std::move(handlers)));
}

void empty(PostgresFixture& log) {
  log.admin().run(fmt::format("TRUNCATE {0}.event, {0}.inbox; CHECKPOINT", kSchema));
  log.drop_subscriptions();
}

/// The rate of a consumer and a worker in one process until the handler has had all messages.
double consume(PostgresFixture& log, const KafkaTopic& topic, std::int64_t messages,
               const std::function<void(Handlers&, std::atomic<std::int64_t>&)>& add) {
  empty(log);
  std::atomic<std::int64_t> done{0};
  Handlers handlers;
  add(handlers, done);
  const auto worker = make_worker(log, std::move(handlers));
  const auto consumer = make_consumer(log, topic);
  must(worker->start());
  const auto start = Clock::now();
  must(consumer->start());
  wait_for_tasks(messages, std::chrono::microseconds(1000), [&] { return done.load(); });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  consumer->stop();
  (void)worker->stop(std::chrono::seconds(10));
  return static_cast<double>(messages) / seconds;
}

double consume_nothing(PostgresFixture& log, const KafkaTopic& topic, std::int64_t messages) {
  return consume(log, topic, messages, [](Handlers& handlers, std::atomic<std::int64_t>& done) {
    handlers.on("OrderPlaced", [&done](std::string_view, const TaskRun&) { ++done; });
  });
}

/// Adds a handler that inserts a row in the transaction of its run, and then calls `after`.
void add_effect(Handlers& handlers, const std::function<void(std::string_view payload)>& after) {
  Handlers::Handler handler;
  handler.type = "OrderPlaced";
  handler.run = [after, sql = fmt::format("INSERT INTO {}.effect VALUES ($1)", kSchema)](
                    std::string_view payload, const TaskRun& run) {
    const std::string text(payload);
    (void)TaskTransaction<postgres::Transaction>::run(run, [&](postgres::Transaction& tx) {
      const char* const values[] = {text.c_str()};
      PGresult* const result =
          PQexecParams(tx.connection(), sql.c_str(), 1, nullptr, values, nullptr, nullptr, 0);
      postgres::check(tx.connection(), result, "insert");
      PQclear(result);
      return true;
    });
    after(payload);
    return TaskEnd::done();
  };
  handlers.add(std::move(handler));
}

double consume_with_effect(PostgresFixture& log, const KafkaTopic& topic, std::int64_t messages) {
  log.admin().run(fmt::format("TRUNCATE {}.effect", kSchema));
  return consume(log, topic, messages, [](Handlers& handlers, std::atomic<std::int64_t>& done) {
    add_effect(handlers, [&done](std::string_view) { ++done; });
  });
}

std::string id_of(const rd_kafka_message_t& message) {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, "outbox-id", &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
    test::give_up(Errc::corrupt, "a message has no id");
  return {static_cast<const char*>(value), size};
}

/// A loop by hand: reads the topic, and calls `write` for each batch in a transaction.
double by_hand(PostgresFixture& log, const KafkaTopic& topic, std::int64_t messages,
               const std::function<void(Pg&, const std::vector<std::string>& ids)>& write) {
  empty(log);
  Pg pg(log.options().store_url);
  test::KafkaReader reader(topic.brokers(), topic.name(), kPartitions,
                           {{"enable.partition.eof", "false"}});
  const auto start = Clock::now();
  std::vector<std::string> ids;
  for (std::int64_t read = 0; read < messages;) {
    const test::KafkaMessage message = reader.poll(100);
    if (message && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      ids.push_back(id_of(*message));
      ++read;
    }
    if (ids.size() < kConsumeBatch && read < messages) continue;
    pg.run("BEGIN");
    write(pg, ids);
    pg.run("COMMIT");
    ids.clear();
  }
  return static_cast<double>(messages) /
         std::chrono::duration<double>(Clock::now() - start).count();
}

double bare_inbox(PostgresFixture& log, const KafkaTopic& topic, std::int64_t messages) {
  const std::string sql = fmt::format(
      "INSERT INTO {}.inbox (consumer, message_id) SELECT 'bench', unnest($1::text[]) ON CONFLICT "
      "DO NOTHING",
      kSchema);
  return by_hand(log, topic, messages, [&](Pg& pg, const std::vector<std::string>& ids) {
    const std::string array = fmt::format("{{{}}}", fmt::join(ids, ","));
    const char* const values[] = {array.c_str()};
    (void)pg.check(PQexecParams(pg.native(), sql.c_str(), 1, nullptr, values, nullptr, nullptr, 0));
  });
}

double bare_effect(PostgresFixture& log, const KafkaTopic& topic, std::int64_t messages) {
  log.admin().run(fmt::format("TRUNCATE {}.effect", kSchema));
  const std::string receive = fmt::format("SELECT {}.receive('bench'::text, $1::text)", kSchema);
  const std::string insert = fmt::format("INSERT INTO {}.effect VALUES ($1)", kSchema);
  const std::string payload(200, 'x');
  return by_hand(log, topic, messages, [&](Pg& pg, const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      const char* const values[] = {id.c_str()};
      const auto first = pg.check(
          PQexecParams(pg.native(), receive.c_str(), 1, nullptr, values, nullptr, nullptr, 0));
      if (*PQgetvalue(first.get(), 0, 0) != 't') continue;
      const char* const texts[] = {payload.c_str()};
      (void)pg.check(
          PQexecParams(pg.native(), insert.c_str(), 1, nullptr, texts, nullptr, nullptr, 0));
    }
  });
}

/// From just before producing a message to the COMMIT of its effect.
std::vector<double> effect_latencies(PostgresFixture& log) {
  empty(log);
  const KafkaTopic topic(log.options().brokers, kPartitions);
  Arrivals arrivals;
  Handlers handlers;
  add_effect(handlers, [&arrivals](std::string_view payload) { arrivals.arrived(payload); });
  const auto worker = make_worker(log, std::move(handlers));
  const auto consumer = make_consumer(log, topic);
  must(worker->start());
  must(consumer->start());
  Pace pace{.per_second = 500, .unmeasured = 2500};
  pace.messages = pace.unmeasured + static_cast<std::int64_t>(log.options().seconds * 500);
  Messages producer(topic);
  send_at(pace, [&](std::int64_t number, bool measured) {
    producer.send(number, stamped_payload(measured ? now_ns() : 0));
  });
  producer.flush();
  auto latencies = arrivals.latencies_ms(pace.messages);
  consumer->stop();
  (void)worker->stop(std::chrono::seconds(10));
  return latencies;
}

}  // namespace

std::vector<Figure> bench_consume(const BenchOptions& options) {
  PostgresFixture log(options);
  log.admin().run(fmt::format("CREATE TABLE {}.effect (payload text NOT NULL)", kSchema));
  const KafkaTopic topic(options.brokers, kPartitions);
  log.say(fmt::format("producing {} messages", options.events));
  fill_topic(topic, options.events);
  (void)malloc_trim(0);  // What the producer had in hand does not count.
  reset_peak_rss();
  std::vector<double> rates;
  std::vector<double> bare;
  double memory = 0;
  for (int i = 0; i < options.repeats; ++i) {
    rates.push_back(consume_nothing(log, topic, options.events));
    if (i == 0) memory = peak_rss_mib();
    bare.push_back(bare_inbox(log, topic, options.events));
    log.say(
        fmt::format("consume: {:.0f} messages/s, bare inbox {:.0f}", rates.back(), bare.back()));
  }
  const std::int64_t some = std::max<std::int64_t>(options.events / kTransactionsPart, 1000);
  const KafkaTopic small(options.brokers, kPartitions);
  fill_topic(small, some);
  std::vector<double> effects;
  std::vector<double> hand;
  for (int i = 0; i < options.repeats; ++i) {
    effects.push_back(consume_with_effect(log, small, some));
    hand.push_back(bare_effect(log, small, some));
    log.say(fmt::format("consume: {:.0f} effects/s, by hand {:.0f}", effects.back(), hand.back()));
  }
  Quantiles latencies;
  for (int i = 0; i < options.repeats; ++i) {
    latencies.add(effect_latencies(log));
    log.say(fmt::format("consume: p50 {:.2f} ms, p99 {:.2f} ms", latencies.p50.back(),
                        latencies.p99.back()));
  }
  return {
      Figure("consume", median(rates), "messages/s").at_least(60'000),
      Figure("consume.bare", median(rates), "messages/s").beside(median(bare)).ratio_at_least(0.5),
      Figure("consume.memory", memory, "MiB").at_most(64),
      Figure("consume.effect", median(effects), "messages/s")
          .beside(median(hand))
          .ratio_at_least(0.6),
      Figure("consume.p50", median(latencies.p50), "ms").at_most(8),
      Figure("consume.p99", median(latencies.p99), "ms").at_most(30)};
}

}  // namespace outbox::bench
