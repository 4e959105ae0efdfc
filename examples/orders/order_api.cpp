// order_api PORT [FILE]: POST /orders, POST /orders/ID/payment, GET /orders/ID. The database is
// that of DATABASE_URL; the events go to the topic ORDERS_TOPIC (orders) of KAFKA_BROKERS, or, if
// that is not set, as lines to FILE (orders.jsonl). The relay is inside: there is no other process.
// Before the first run: outbox migrate --store "$DATABASE_URL"
#include <httplib.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <outbox/relay.hpp>
#include <string>
#include <thread>

#include "database.hpp"
#include "shop.hpp"
#include "types.hpp"

namespace {

using Json = nlohmann::json;
using orders::CustomerId;
using orders::Money;
using orders::OrderId;

std::string environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

void answer(httplib::Response& response, int status, const Json& body) {
  response.status = status;
  response.set_content(body.dump() + "\n", "application/json");
}

/// Of this thread. One that was lost is made anew.
PGconn* connection() {
  thread_local orders::Connection mine(nullptr, &PQfinish);
  if (PQstatus(mine.get()) != CONNECTION_OK)
    mine = orders::connect(environment("DATABASE_URL", ""));
  return mine.get();
}

const orders::Shop shop;

void place(const httplib::Request& request, httplib::Response& response) {
  const Json body = Json::parse(request.body, nullptr, false);
  const auto text = [&](const char* name) {
    return body.is_object() && body.contains(name) && body[name].is_string()
               ? body[name].get<std::string>()
               : std::string();
  };
  const auto customer =
      body.is_object() && body.contains("customer") && body["customer"].is_number_integer()
          ? CustomerId::of(body["customer"].get<std::int64_t>())
          : std::nullopt;
  const auto total = Money::parse(text("amount"), text("currency"));
  const std::string key = request.get_header_value("Idempotency-Key");
  if (!customer) return answer(response, 400, {{"error", "customer: is no number of a customer"}});
  if (!total || total->cents() == 0)
    return answer(response, 400,
                  {{"error", "amount, currency: are no amount such as \"12.50\" and \"EUR\""}});
  if (key.empty() || key.size() > 100)
    return answer(response, 400,
                  {{"error", "Idempotency-Key: is missing, or longer than 100 bytes"}});
  const auto placed = shop.place(connection(), *customer, *total, key);
  if (std::holds_alternative<orders::OtherOrder>(placed))
    return answer(response, 422, {{"error", "Idempotency-Key: was sent with another order"}});
  if (std::holds_alternative<orders::OverLimit>(placed))
    return answer(response, 409,
                  {{"error", "the unpaid orders of the customer would exceed 1000.00"}});
  const auto& order = std::get<orders::PlacedOrder>(placed);
  response.set_header("Location", "/orders/" + order.id.text());
  answer(response, 201, to_json(order));
}

void show(httplib::Response& response, const std::optional<orders::PlacedOrder>& order) {
  if (order) return answer(response, 200, to_json(*order));
  answer(response, 404, {{"error", "there is no such order"}});
}

void pay(const httplib::Request& request, httplib::Response& response) {
  const auto id = OrderId::parse(request.matches[1].str());
  show(response, id ? shop.pay(connection(), *id) : std::nullopt);
}

void get(const httplib::Request& request, httplib::Response& response) {
  const auto id = OrderId::parse(request.matches[1].str());
  show(response, id ? orders::find(connection(), *id) : std::nullopt);
}

/// Nothing was done; or, when the connection was lost during COMMIT (InDoubt), nobody knows. The
/// client does the same in both cases: it sends the request again, and the key, or the order's
/// state, tells the service whether it was done.
void fail(const httplib::Request& /*request*/, httplib::Response& response,
          const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "%s\n", error.what());
  } catch (...) {
  }
  response.set_header("Retry-After", "1");
  answer(response, 503, {{"error", "send the same request again, with the same Idempotency-Key"}});
}

outbox::SubscriptionSpec subscription(const std::string& file) {
  outbox::SubscriptionSpec spec{.name = "orders", .sink = "file", .aggregate_types = {"order"}};
  const std::string brokers = environment("KAFKA_BROKERS", "");
  if (brokers.empty()) {
    spec.sink_settings["path"] = std::filesystem::absolute(file).string();
    return spec;
  }
  spec.sink = "kafka";
  spec.sink_settings["brokers"] = brokers;
  spec.sink_settings["create.partitions"] = "6";  // if the topic does not exist
  spec.topic = environment("ORDERS_TOPIC", "orders");
  return spec;
}

/// Until SIGTERM or SIGINT.
int serve(int port, const std::string& file, const sigset_t& ends) {
  orders::make_tables(orders::connect(environment("DATABASE_URL", "")).get());
  outbox::RelayOptions options{.store_url = environment("DATABASE_URL", "")};
  options.subscriptions = {subscription(file)};
  options.lease = std::chrono::seconds(2);  // after a crash the next process delivers so soon
  const auto relay = outbox::Relay::create(options);
  const outbox::Status started = relay ? (*relay)->start() : outbox::unexpected(relay.error());
  if (!started) throw outbox::Exception(started.error());

  httplib::Server server;
  server.set_exception_handler(fail);
  server.Post("/orders", place);
  server.Post(R"(/orders/(\d{1,18})/payment)", pay);
  server.Get(R"(/orders/(\d{1,18}))", get);
  std::jthread ending([&] {
    int signal = 0;
    (void)sigwait(&ends, &signal);
    server.stop();
  });
  const bool served = server.listen("127.0.0.1", port);
  if (!served) {
    (void)std::fprintf(stderr, "cannot listen on port %d\n", port);
    (void)pthread_kill(ending.native_handle(), SIGTERM);
  }
  ending.join();
  return (*relay)->stop(std::chrono::seconds(10)).drained && served ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    (void)std::fprintf(stderr, "usage: order_api PORT [FILE]\n");
    return 2;
  }
  // Waited for in serve(); blocked before any thread is there, so that none of them gets it.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  try {
    return serve(std::atoi(argv[1]), argc > 2 ? argv[2] : "orders.jsonl", ends);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
