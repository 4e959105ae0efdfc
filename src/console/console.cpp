#include "console/console.hpp"

#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "event/id.hpp"

namespace outbox::console {
namespace {

constexpr const char* kJson = "application/json; charset=utf-8";
constexpr const char* kProblem = "application/problem+json; charset=utf-8";
constexpr const char* kEvents = "text/event-stream; charset=utf-8";
/// Whoever can connect from this machine.
constexpr const char* kPerson = "console";
/// How long people are shown the same document.
constexpr std::chrono::seconds kShared{1};
/// Requests wait for the database, not for the processor.
constexpr std::size_t kThreads = 8;

void send(httplib::Response& response, const Answer& answer) {
  response.status = answer.status;
  response.set_content(answer.body, answer.status < 400 ? kJson : kProblem);
  if (answer.status == 503) response.set_header("Retry-After", "2");
}

void send(httplib::Response& response, const Problem& problem) {
  send(response, Answer{.status = problem.status, .body = problem.json()});
}

/// A document of several lines is several lines of data.
std::string as_data(std::string_view document) {
  std::string text;
  while (!document.empty()) {
    const std::string_view line = document.substr(0, document.find('\n'));
    text += "data: " + std::string(line) + "\n";
    document.remove_prefix(std::min(line.size() + 1, document.size()));
  }
  return text;
}

/// The path of a request as it was sent: a name in it may contain an encoded slash.
std::string_view raw_path(const httplib::Request& request) {
  const std::string_view target = request.target;
  return target.substr(0, target.find_first_of("?#"));
}

}  // namespace

Console::Console(ConsoleOptions options)
    : options_(std::move(options)), hosts_{.loopback = true, .names = options_.hosts} {}

Result<std::unique_ptr<Console>> Console::start(ConsoleOptions options) {
  if (!options.address.is_loopback())
    return fail(Errc::invalid_argument,
                "--listen: other machines can reach " + options.address.text() +
                    ", and there is neither a token nor TLS",
                "listen on 127.0.0.1, and let a proxy that asks who it is pass requests on");
  std::unique_ptr<Console> console(new Console(std::move(options)));
  OUTBOX_TRY(console->server_,
             http::Server::start(console->options_.address, {.threads = kThreads},
                                 [&](httplib::Server& server) { console->add_routes(server); }));
  return console;
}

void Console::add_routes(httplib::Server& server) {
  httplib::Headers headers;
  for (const auto& [name, value] : security_headers()) headers.emplace(name, value);
  server.set_default_headers(std::move(headers));
  server.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        using Handled = httplib::Server::HandlerResponse;
        const auto get = [&](const char* name) { return request.get_header_value(name); };
        const auto problem = check_origin(request.method, get, hosts_);
        if (!problem) return Handled::Unhandled;
        send(response, *problem);
        return Handled::Handled;
      });
  server.Get("/api/v1/live", [this](const httplib::Request& request, httplib::Response& response) {
    answer_live(request.get_header_value("Last-Event-ID"), response);
  });
  // The table decides about the rest: cpp-httplib knows paths only as they are decoded.
  const auto api = [this](const httplib::Request& request, httplib::Response& response) {
    std::string_view path = raw_path(request);
    path.remove_prefix(std::min(kApi.size(), path.size()));
    send(response, answer_api({.method = request.method,
                               .path = path,
                               .query = {request.params.begin(), request.params.end()},
                               .body = request.body}));
  };
  constexpr const char* kAllOfIt = "/api/v1/.*";
  server.Get(kAllOfIt, api);
  server.Post(kAllOfIt, api);
  server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    send(response, Problem{.status = response.status,
                           .title = response.status == 404 ? "there is nothing at this path"
                                                           : "the request cannot be answered",
                           .hint = "the API begins at /api/v1"});
  });
}

Answer Console::answer_session() const {
  const nlohmann::ordered_json json{{"person", kPerson},
                                    {"role", "operator"},
                                    {"version", options_.version},
                                    {"store", options_.store}};
  return {.body = json.dump(2) + "\n"};
}

/// Server-sent events (HTML, 9.2), one in a response: the client asks again after `retry`, with the
/// number of what it has.
void Console::answer_live(const std::string& last, httplib::Response& response) {
  const Status status = look();
  std::string text = "retry: 1000\n";
  if (status.answer.status >= 400) {
    text += "event: problem\n";
  } else if (std::to_string(status.number) == last) {
    response.set_content(text + ": as before\n\n", kEvents);
    return;
  } else {
    text += "event: status\nid: " + std::to_string(status.number) + "\n";
  }
  response.set_content(text + as_data(status.answer.body) + "\n", kEvents);
}

/// All who look share what was seen within the last second.
Console::Status Console::look() {
  {
    const MutexLock lock(mutex_);
    // While the store does not answer, one thread waits for it, and not all that the server has.
    const bool waits = looking_ && status_.number > 0;
    if (waits || now_steady() < status_.until) return status_;
    looking_ = true;
  }
  Answer answer = answer_api({.method = "GET", .path = "/status"});
  const MutexLock lock(mutex_);
  looking_ = false;
  ++status_.number;
  status_.answer = std::move(answer);
  status_.until = now_steady() + kShared;
  return status_;
}

Answer Console::answer_api(const ApiRequest& request) {
  if (request.path == "/session" && request.method == "GET") return answer_session();
  const auto called = translate(request);
  if (!called) return {.status = called.error().status, .body = called.error().json()};
  return call(*called);
}

Answer Console::call(const Call& called) {
  const Outcome outcome = options_.execute(called.words, kPerson);
  const std::string number = EventId::generate().str();
  if (outcome.unexpected) {
    log::error("a request of the console failed",
               {{"number", number},
                {"request", called.operation->path},
                {"reason", outcome.errors.empty() ? "" : outcome.errors.front()}});
  }
  return answer(*called.operation, outcome, number);
}

}  // namespace outbox::console
