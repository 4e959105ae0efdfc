// What docs/guide/tasks.md shows, compiled as it stands there.
#include <libpq-fe.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <outbox/postgres.hpp>
#include <outbox/task.hpp>
#include <outbox/worker.hpp>
#include <stop_token>
#include <string_view>

namespace guide {

// Of the reader's service.
bool printer_is_ready();
void make_report(std::string_view payload, const outbox::EventId& id, const std::stop_token& stop);
void insert_report(PGconn* connection, std::string_view payload);
void show(std::string_view state, std::optional<int> percent, std::string_view progress,
          std::string_view error);
outbox::TaskEnd send_sms(std::string_view payload, const outbox::TaskRun& run);

outbox::EventId enqueue(PGconn* connection);
void look(PGconn* connection, const outbox::EventId& id);
void enqueue_more(outbox::postgres::Transaction& tx, outbox::Timestamp tomorrow_at_six);
void work();
void limit(outbox::Handlers& handlers);
void once(PGconn* connection, std::string_view payload, const outbox::TaskRun& run);

outbox::EventId enqueue(PGconn* connection) {
  outbox::postgres::Transaction tx(connection);
  // ... INSERT INTO report ... on connection ...
  const outbox::EventId id = tx.enqueue({.queue = "reports",
                                         .type = "report.make",
                                         .payload = R"({"month": "2026-10"})",
                                         .key = "customer-42"});
  tx.commit();
  return id;
}

void look(PGconn* connection, const outbox::EventId& id) {
  if (const auto status = outbox::postgres::task_status(connection, id))
    show(outbox::to_string(status->state), status->percent, status->progress, status->error);
}

void enqueue_more(outbox::postgres::Transaction& tx, outbox::Timestamp tomorrow_at_six) {
  tx.enqueue(
      {.queue = "reports",
       .type = "report.make",
       .payload = R"({"month": "2026-10"})",
       .execute_at = tomorrow_at_six,
       .unique_key = "2026-10",
       .on_done = outbox::TaskEvent{
           .aggregate_type = "report", .aggregate_id = "2026-10", .event_type = "ReportMade"}});
}

void work() {
  outbox::Handlers handlers;
  handlers.on("report.make", [](std::string_view payload, const outbox::TaskRun& run) {
    if (!printer_is_ready()) return outbox::TaskEnd::snooze(std::chrono::minutes(5));
    make_report(payload, run.id, run.stop);
    return outbox::TaskEnd::done();
  });
  auto worker = outbox::Worker::create(
      {.relay = {.store_url = "postgresql://localhost/shop"}, .queues = {"reports"}, .threads = 8},
      handlers);
  if (!worker) throw outbox::Exception(worker.error());
  if (auto status = (*worker)->start(); !status) throw outbox::Exception(status.error());
}

void limit(outbox::Handlers& handlers) {
  handlers.on("sms.send", {.max_running = 2, .rate = {50}}, send_sms);
}

void once(PGconn* connection, std::string_view payload, const outbox::TaskRun& run) {
  const std::string mail = R"({"to": "a"})";
  outbox::postgres::Transaction tx(connection);  // the handler's own
  if (run.once(tx)) {                            // false: another run has committed
    insert_report(connection, payload);
    tx.enqueue({.queue = "mails", .type = "mail.send", .payload = mail});
  }
  tx.commit();
}

}  // namespace guide
