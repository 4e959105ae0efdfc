// report_service PORT: POST /reports enqueues a task in the transaction of the request and answers
// 202; GET /reports/ID says what has become of it. The database is that of DATABASE_URL. Before the
// first request: outbox migrate --store "$DATABASE_URL"
#include <httplib.h>
#include <libpq-fe.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <outbox/postgres.hpp>
#include <regex>
#include <string>

#include "database.hpp"

namespace {

using Json = nlohmann::json;

void answer(httplib::Response& response, int status, const Json& body) {
  response.status = status;
  response.set_content(body.dump() + "\n", "application/json");
}

outbox::Task to_task(const reports::MakeReport& report, const std::string& request_key) {
  outbox::Task task = outbox::to_task(report, {.queue = "reports"});
  task.key = report.customer;  // the reports of a customer are made one after the other
  // Of this customer: another one may send the same key.
  if (!request_key.empty()) task.unique_key = report.customer + "/" + request_key;
  task.on_done = outbox::TaskEvent{
      .aggregate_type = "report", .aggregate_id = report.customer, .event_type = "ReportMade"};
  return task;
}

/// The request and its task are one transaction: there is a report to be made if and only if the
/// customer was told so. None: the unique key is that of another order.
std::optional<outbox::EventId> order_report(PGconn* connection, const outbox::Task& task,
                                            const std::string& customer, const std::string& month) {
  outbox::postgres::Transaction tx(connection);
  const outbox::EventId id = tx.enqueue(task);
  reports::query(connection,
                 "INSERT INTO report_request (task, customer, month) VALUES ($1, $2, $3)"
                 " ON CONFLICT DO NOTHING",
                 std::array{id.str(), customer, month});
  const auto same = reports::query(
      connection, "SELECT FROM report_request WHERE task = $1 AND customer = $2 AND month = $3",
      std::array{id.str(), customer, month});
  if (PQntuples(same.get()) == 0) return std::nullopt;
  tx.commit();
  return id;
}

void post(const httplib::Request& request, httplib::Response& response) {
  const Json order = Json::parse(request.body, nullptr, false);
  const auto text = [&](const char* name) {
    return order.is_object() && order.contains(name) && order[name].is_string()
               ? order[name].get<std::string>()
               : std::string();
  };
  const std::string customer = text("customer");
  const std::string month = text("month");
  if (customer.empty() || customer.size() > 100)
    return answer(response, 400, {{"error", "customer: is no name of a customer"}});
  if (!std::regex_match(month, std::regex("20[0-9]{2}-(0[1-9]|1[0-2])")))
    return answer(response, 400, {{"error", "month: is no month, such as 2026-10"}});
  const std::string request_key = request.get_header_value("Idempotency-Key");
  if (request_key.size() > 100)
    return answer(response, 400, {{"error", "Idempotency-Key: is longer than 100 bytes"}});
  const outbox::Task task = to_task({customer, month}, request_key);
  if (const auto valid = outbox::validate(task); !valid)
    return answer(response, 400, {{"error", valid.error().message}});
  const auto connection = reports::connect();
  const auto id = order_report(connection.get(), task, customer, month);
  if (!id)
    return answer(response, 422, {{"error", "Idempotency-Key: was sent with another order"}});
  response.set_header("Location", "/reports/" + id->str());
  answer(response, 202, {{"id", id->str()}});
}

void get(const httplib::Request& request, httplib::Response& response) {
  const auto id = outbox::EventId::parse(request.matches[1].str());
  const auto connection = reports::connect();
  const auto status = id ? outbox::postgres::task_status(connection.get(), *id) : std::nullopt;
  if (!status || status->queue != "reports")
    return answer(response, 404, {{"error", "there is no such report"}});
  Json body{{"state", outbox::to_string(status->state)}, {"attempts", status->attempts}};
  if (status->percent) body["percent"] = *status->percent;
  if (!status->progress.empty()) body["progress"] = status->progress;
  if (!status->error.empty()) body["error"] = status->error;
  if (status->result) body["result"] = *status->result;
  answer(response, 200, body);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    (void)std::fprintf(stderr, "usage: report_service PORT\n");
    return 2;
  }
  try {
    reports::make_tables();
    httplib::Server server;
    server.set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, const std::exception_ptr& thrown) {
          try {
            std::rethrow_exception(thrown);
          } catch (const std::exception& error) {
            (void)std::fprintf(stderr, "%s\n", error.what());
          } catch (...) {
          }
          answer(response, 503, {{"error", "nothing was done, try again"}});
        });
    server.Post("/reports", post);
    server.Get(R"(/reports/([-0-9a-f]{36}))", get);
    return server.listen("127.0.0.1", std::atoi(argv[1])) ? 0 : 1;
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
