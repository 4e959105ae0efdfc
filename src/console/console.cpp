#include "console/console.hpp"

#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "console/openapi.hpp"
#include "console/page.hpp"
#include "event/id.hpp"

namespace outbox::console {
namespace {

constexpr const char* kJson = "application/json; charset=utf-8";
constexpr const char* kCompressed = "application/gzip";
constexpr const char* kProblem = "application/problem+json; charset=utf-8";
constexpr const char* kEvents = "text/event-stream; charset=utf-8";
/// How long people are shown the same document.
constexpr std::chrono::seconds kShared{1};
/// Requests wait for the database, not for the processor.
constexpr std::size_t kThreads = 8;

void send(httplib::Response& response, const Answer& answer) {
  response.status = answer.status;
  response.set_content(answer.body, answer.status < 400 ? kJson : kProblem);
  if (answer.status == 503) response.set_header("Retry-After", "2");
  if (answer.status == 401) response.set_header("WWW-Authenticate", "Bearer");
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

/// The path of a request below kApi, as it was sent: a name in it may contain an encoded slash.
std::string_view api_path(const httplib::Request& request) {
  std::string_view path = request.target;
  path = path.substr(0, path.find_first_of("?#"));
  if (path.starts_with(kApi)) path.remove_prefix(kApi.size());
  return path;
}

Headers copy_headers(const httplib::Request& request) {
  return [&request](const char* name) { return request.get_header_value(name); };
}

Exposure exposure(const ConsoleOptions& options) {
  return {.loopback = options.address.is_loopback(),
          .tls = options.certificate.has_value(),
          .behind_tls = options.behind_tls_proxy,
          .tokens = options.asks_for_tokens};
}

bool is_served(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "POST";
}

/// The body of a request that must be a JSON object; not set if it is not.
std::optional<nlohmann::json> object_in(const httplib::Request& request) {
  auto body = try_parse_json<nlohmann::json>(request.body);
  if (!body.is_object()) return {};
  return body;
}

bool is_any_address(const http::Address& address) {
  return address.host == "0.0.0.0" || address.host == "::";
}

/// An address that is listened on is also a name under which it is called.
Hosts hosts(const ConsoleOptions& options) {
  Hosts made{.loopback = true, .names = options.hosts};
  if (!is_any_address(options.address)) {
    const std::string text = options.address.text();
    made.names.push_back(text.substr(0, text.rfind(':')));
  }
  return made;
}

/// Nothing that other machines can reach goes without TLS and tokens.
outbox::Status check_exposure(const ConsoleOptions& options) {
  const Exposure exposed = exposure(options);
  if (!exposed.loopback && !exposed.tls && !exposed.behind_tls)
    return fail(
        Errc::invalid_argument,
        "--listen: other machines can reach " + options.address.text() + ", and there is no TLS",
        "--tls-certificate and --tls-key; or --behind-tls-proxy if a proxy in front of it "
        "has a certificate; or listen on 127.0.0.1");
  if (is_any_address(options.address) && options.hosts.empty())
    return fail(Errc::invalid_argument,
                "--listen " + options.address.text() +
                    ": by which name is the console called? It answers under no other, so that no "
                    "page of another site can use it",
                "--host outbox.example.com");
  if (!wants_tokens(exposed)) return {};
  OUTBOX_TRY(const auto tokens, options.read_tokens());
  if (!tokens.empty()) return {};
  return fail(Errc::invalid_argument, "the console asks for tokens, and there is none",
              "outbox console token add NAME --role admin makes one");
}

}  // namespace

Console::Console(ConsoleOptions options)
    : options_(std::move(options)),
      hosts_(hosts(options_)),
      secure_(options_.certificate.has_value() || options_.behind_tls_proxy) {
  if (wants_tokens(exposure(options_)))
    authenticator_.emplace(Authenticator::Options{.read_tokens = options_.read_tokens});
}

Result<std::unique_ptr<Console>> Console::start(ConsoleOptions options) {
  OUTBOX_TRY(check_exposure(options));
  std::unique_ptr<Console> console(new Console(std::move(options)));
  const ConsoleOptions& given = console->options_;
  OUTBOX_TRY(
      console->server_,
      http::Server::start(given.address, {.threads = kThreads, .certificate = given.certificate},
                          [&](httplib::Server& server) { console->add_routes(server); }));
  return console;
}

void Console::add_routes(httplib::Server& server) {
  httplib::Headers headers;
  for (const auto& [name, value] : security_headers()) headers.emplace(name, value);
  if (secure_) headers.emplace("Strict-Transport-Security", "max-age=31536000");
  server.set_default_headers(std::move(headers));
  server.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        using Handled = httplib::Server::HandlerResponse;
        if (!is_served(request.method)) {
          response.set_header("Allow", allowed_methods(api_path(request)));
          send(response, Problem{.status = 405,
                                 .title = "the console takes no " + request.method,
                                 .hint = "GET looks, POST changes"});
          return Handled::Handled;
        }
        const auto problem = check_origin(request.method, copy_headers(request), hosts_);
        if (!problem) return Handled::Unhandled;
        send(response, *problem);
        return Handled::Handled;
      });
  add_page(server);
  add_sessions(server);
  server.Get("/api/v1/openapi.json",
             [this](const httplib::Request& request, httplib::Response& response) {
               if (const auto person = identify(request); !person)
                 send(response, person.error());
               else
                 send(response, Answer{.body = openapi_document()});
             });
  server.Get("/api/v1/live", [this](const httplib::Request& request, httplib::Response& response) {
    if (const auto person = identify(request); !person)
      send(response, person.error());
    else
      answer_live(request.get_header_value("Last-Event-ID"), response);
  });
  // The table decides about the rest: cpp-httplib knows paths only as they are decoded.
  const auto api = [this](const httplib::Request& request, httplib::Response& response) {
    const auto person = identify(request);
    if (!person) return send(response, person.error());
    const std::string_view path = api_path(request);
    send(response, answer_api({.method = request.method,
                               .path = path,
                               .query = {request.params.begin(), request.params.end()},
                               .body = request.body},
                              *person));
    if (response.status == 405) response.set_header("Allow", allowed_methods(path));
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

/// The page contains nothing of the store, so whoever can connect may load it.
void Console::add_page(httplib::Server& server) {
  for (const PageFile& file : page()) {
    server.Get(std::string(file.path),
               [&file](const httplib::Request& request, httplib::Response& response) {
                 if (request.get_header_value("Accept-Encoding").find("gzip") == std::string::npos)
                   return send(response, Problem{.status = 406,
                                                 .title = "the page is sent compressed",
                                                 .hint = "Accept-Encoding: gzip"});
                 response.set_header("Content-Encoding", "gzip");
                 // The name of a file changes with what is in it, but for the first one.
                 if (file.path != "/") {
                   response.headers.erase("Cache-Control");
                   response.set_header("Cache-Control", "max-age=31536000, immutable");
                 }
                 response.set_content(file.bytes.data(), file.bytes.size(), kCompressed);
               });
  }
  // cpp-httplib would compress a text once more, so it learns the type when that is over.
  server.set_post_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    if (response.get_header_value("Content-Type") != kCompressed) return;
    for (const PageFile& file : page()) {
      if (file.path != request.path) continue;
      response.headers.erase("Content-Type");
      response.set_header("Content-Type", std::string(file.type));
    }
  });
  if (!page().empty()) return;
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(
        "This program was built without the console's page. The API is at /api/v1.\n"
        "scripts/build adds the page where Node.js 18 or later and npm are; the packages have it.\n",
        "text/plain; charset=utf-8");
  });
}

void Console::add_sessions(httplib::Server& server) {
  server.Get("/api/v1/session",
             [this](const httplib::Request& request, httplib::Response& response) {
               const auto person = identify(request);
               if (person)
                 send(response, answer_session(*person));
               else
                 send(response, person.error());
             });
  server.Post("/api/v1/login", [this](const httplib::Request& request,
                                      httplib::Response& response) { log_in(request, response); });
  server.Post("/api/v1/logout", [this](const httplib::Request& request,
                                       httplib::Response& response) {
    if (!object_in(request))
      return send(response,
                  Problem{.status = 400, .title = "the body is no JSON object", .hint = "send {}"});
    if (authenticator_) authenticator_->log_out(copy_headers(request));
    response.set_header("Set-Cookie", session_cookie({}, secure_));
    send(response, Answer{.body = "{}\n"});
  });
}

tl::expected<Person, Problem> Console::identify(const httplib::Request& request) {
  if (!authenticator_) return anybody();
  return authenticator_->identify(copy_headers(request), request.remote_addr);
}

void Console::log_in(const httplib::Request& request, httplib::Response& response) {
  const auto body = object_in(request);
  if (!body || !body->contains("token") || !(*body)["token"].is_string())
    return send(response, Problem{.status = 400,
                                  .title = "the body has no token",
                                  .hint = R"(send {"token": TOKEN})"});
  if (!authenticator_) return send(response, answer_session(anybody()));
  const auto session =
      authenticator_->log_in((*body)["token"].get<std::string>(), request.remote_addr);
  if (!session) return send(response, session.error());
  response.set_header("Set-Cookie", session_cookie(session->id, secure_));
  send(response, answer_session(session->person));
}

Answer Console::answer_session(const Person& person) const {
  const nlohmann::ordered_json json{
      {"person", person.name},       {"role", to_word(person.role)},
      {"payloads", person.payloads}, {"login", authenticator_.has_value()},
      {"version", options_.version}, {"store", options_.store}};
  return {.body = write_json(json, {.indent = 2}) + "\n"};
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
  Answer answer = answer_api({.method = "GET", .path = "/status"}, anybody());
  const MutexLock lock(mutex_);
  looking_ = false;
  ++status_.number;
  status_.answer = std::move(answer);
  status_.until = now_steady() + kShared;
  return status_;
}

Answer Console::answer_api(const ApiRequest& request, const Person& person) {
  const auto refused = [](const Problem& problem) {
    return Answer{.status = problem.status, .body = problem.json()};
  };
  const auto called = translate(request);
  if (!called) return refused(called.error());
  if (const auto problem = check_access(*called->operation, person)) return refused(*problem);
  Answer answer = call(*called, person);
  const bool shows = called->operation->contents != Contents::none && person.payloads;
  if (shows && authenticator_)
    log::info("what an event contains was shown",
              {{"person", person.name}, {"request", request.path}});
  const bool hides = called->operation->contents == Contents::some && !person.payloads;
  if (hides && answer.status < 400) answer.body = without_payloads(answer.body);
  return answer;
}

Answer Console::call(const Call& called, const Person& person) {
  const Outcome outcome = options_.execute(called.words, person.name);
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
