#include "http/monitor.hpp"

#include <httplib.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <outbox/prometheus.hpp>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "base/steady.hpp"
#include "http/process_usage.hpp"
#include "metrics/relay_metrics.hpp"

namespace outbox::http {
namespace {

constexpr const char* kTextFormat = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kPlain = "text/plain; charset=utf-8";

bool has_token(const httplib::Request& request, const std::string& token) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string given = request.get_header_value("Authorization");
  return given.starts_with(kBearer) &&
         is_same_secret(std::string_view(given).substr(kBearer.size()), token);
}

/// A page of another site must not read what is here through a name that it made resolve to the
/// loopback address.
bool is_own_host(const httplib::Request& request, const Address& address) {
  return !address.is_loopback() || is_loopback_host(request.get_header_value("Host"));
}

void answer(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text, kPlain);
}

std::string_view store_kind(std::string_view url) {
  return url.starts_with("sqlite:") ? "sqlite" : "postgresql";
}

}  // namespace

Status check_access(const Address& address, const std::string& token) {
  if (address.is_loopback() || !token.empty()) return {};
  return fail(
      Errc::invalid_argument,
      "http.listen: other machines can reach " + address.text() + ", and there is no http.token",
      "listen on 127.0.0.1, or set http.token, which Prometheus sends as "
      "authorization.credentials");
}

Monitor::Monitor(MonitorOptions options) : options_(std::move(options)), store_(options_.store) {}

Result<std::unique_ptr<Monitor>> Monitor::start(MonitorOptions options) {
  OUTBOX_TRY(check_access(options.address, options.token));
  std::unique_ptr<Monitor> monitor(new Monitor(std::move(options)));
  OUTBOX_TRY(monitor->server_,
             Server::start(monitor->options_.address, {},
                           [&](httplib::Server& server) { monitor->add_routes(server); }));
  return monitor;
}

void Monitor::add_routes(httplib::Server& server) const {
  server.set_default_headers({{"Cache-Control", "no-store"},
                              {"Content-Security-Policy", "default-src 'none'"},
                              {"X-Content-Type-Options", "nosniff"}});
  server.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        using Handled = httplib::Server::HandlerResponse;
        if (request.method != "GET" && request.method != "HEAD") {
          response.set_header("Allow", "GET, HEAD");
          answer(response, 405, "");
          return Handled::Handled;
        }
        if (is_own_host(request, options_.address)) return Handled::Unhandled;
        answer(response, 403, "the Host header names another host\n");
        return Handled::Handled;
      });
  server.Get("/metrics", [this](const httplib::Request& request, httplib::Response& response) {
    if (!options_.token.empty() && !has_token(request, options_.token)) {
      response.set_header("WWW-Authenticate", "Bearer");
      return answer(response, 401, "");
    }
    response.set_content(exposition(), kTextFormat);
  });
  // These two say nothing that a stranger may not know.
  server.Get("/livez", [this](const httplib::Request&, httplib::Response& response) {
    metrics::lives(options_.reports()) && metrics::live(consumer_reports())
        ? answer(response, 200, "ok\n")
        : answer(response, 503, "the main loop hangs\n");
  });
  server.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
    if (!metrics::have_started(options_.reports()))
      return answer(response, 503, "it starts, or stops\n");
    store_.ready() ? answer(response, 200, "ok\n")
                   : answer(response, 503, "the store cannot be used\n");
  });
}

std::vector<ConsumerReport> Monitor::consumer_reports() const {
  return options_.consumers ? options_.consumers() : std::vector<ConsumerReport>();
}

std::string Monitor::exposition() const {
  metrics::Families all;
  metrics::add_process(options_.version, store_kind(options_.store.store.url), all);
  const metrics::Moment moment{.now = std::chrono::system_clock::now(), .now_steady = now_steady()};
  metrics::add_relays(options_.reports(), moment, all);
  metrics::add_consumers(consumer_reports(), all);
  store_.add_to(all);
  add_usage(read_usage(), all);
  std::vector<prometheus::MetricFamily> families;
  for (const MetricFamily& family : all.list()) families.push_back(to_prometheus(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace outbox::http
