#include "sink/http/http_sink.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace outbox::sink::http {
namespace {

constexpr std::size_t kMostMessages = 1000;

std::int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

HttpSink::HttpSink(HttpOptions options)
    : NetworkSink("http"), options_(std::move(options)), client_(options_), composer_(options_) {}

SinkTraits HttpSink::traits() const noexcept {
  const std::size_t most = options_.plain.concurrency * options_.plain.batch;
  return {.name = "http", .max_batch = std::min(most, kMostMessages), .max_in_flight = most};
}

// ---- opening and closing

Status HttpSink::open() {
  warn_about(inspection());
  const Answer answer = client_.connect();
  if (answer.code != CURLE_OK) return fail(judge(answer, context()).error);
  purge();
  transfers_.reset();  // Its connections may have failed, and the name may have a new address.
  OUTBOX_TRY(transfers_,
             curl::Transfers::start({.capacity = options_.plain.concurrency}, [this] { wake(); }));
  return {};
}

Inspection HttpSink::inspection() const {
  Inspection found{.destination = options_.target.origin(),
                   .acked = "the receiver has answered 2xx",
                   .duplicates = "after a lost answer, a crash of the relay or a takeover",
                   .order = "of each key"};
  if (!options_.target.encrypted() && !options_.target.is_loopback())
    found.weaknesses.push_back(in_clear("https:// in http.url"));
  if (options_.plain.tls.insecure) {
    found.weaknesses.push_back({"insecure_tls",
                                "whoever controls the network can read and swallow events",
                                "http.tls_ca with the authority of the receiver's certificate"});
  }
  return found;
}

void HttpSink::close() noexcept {
  purge();
  transfers_.reset();
}

// ---- sending

bool HttpSink::is_full() const {
  return exchanges_.size() + waiting_.size() >= options_.plain.concurrency;
}

std::size_t HttpSink::send(std::span<const Message> messages) {
  if (!transfers_) return 0;
  std::size_t taken = 0;
  while (taken < messages.size() && !is_full()) {
    auto request = composer_.compose(messages.subspan(taken));
    if (request) {
      taken += request->parts.size();
      launch(std::move(*request));
      continue;
    }
    refuse(messages[taken], Outcome::Kind::rejected, std::move(request.error()));
    ++taken;
  }
  return taken;
}

void HttpSink::launch(Request request) {
  const auto ticket = ++last_ticket_;
  auto& exchange = *exchanges_.emplace(ticket, std::make_unique<Exchange>()).first->second;
  exchange.request = std::move(request);
  const auto stamp = composer_.stamp(exchange.request, Client::make_body(exchange), now_seconds());
  const auto deadline = std::chrono::steady_clock::now() + options_.plain.deadline;
  OUTBOX_CHECK(transfers_->submit(ticket, client_.prepare(exchange, stamp), deadline));
}

void HttpSink::launch_waiting() {
  while (!waiting_.empty() && exchanges_.size() < options_.plain.concurrency) {
    launch(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// ---- outcomes

RequestContext HttpSink::context() const {
  return {.origin = options_.target.origin(),
          .url_varies = options_.target.varies(),
          .deadline = options_.plain.deadline,
          .secrets = &options_.secrets};
}

void HttpSink::take_ends() {
  for (curl::Transfers::Done& done : transfers_->take_done()) {
    const auto found = exchanges_.find(done.ticket);
    OUTBOX_CHECK(found != exchanges_.end());
    Exchange& exchange = *found->second;
    Answer answer = curl::HttpClient::make_answer(exchange, done.easy.get(), done.code);
    const Outcome outcome = judge(answer, context());
    if (keeps_answers_ && outcome.kind == Outcome::Kind::acked)
      answer_ = {.text = std::move(answer.body), .longer = answer.longer};
    done.easy.reset();  // The handle points to the exchange.
    const bool several = exchange.request.parts.size() > 1;
    if (several && outcome.kind == Outcome::Kind::rejected) {
      // The receiver does not say which event is at fault, so two halves are sent.
      auto [first, second] = halves(std::move(exchange.request));
      waiting_.push_back(std::move(first));
      waiting_.push_back(std::move(second));
    } else {
      settle(exchange.request, outcome);
    }
    exchanges_.erase(found);
  }
}

void HttpSink::settle(const Request& request, Outcome outcome) {
  for (const BatchedEvent& part : request.parts) {
    outcome.token = part.token;
    report(outcome);
  }
}

void HttpSink::advance() {
  if (transfers_) {
    take_ends();
    launch_waiting();
  }
}

// ---- giving up

void HttpSink::purge() {
  if (!transfers_) return;
  transfers_->cancel_all();
  take_ends();
  for (const Request& request : std::exchange(waiting_, {})) give_up(request);
}

/// Settles parts of a refused array: it was refused as a whole, so nothing of it was delivered.
void HttpSink::give_up(const Request& request) {
  settle(request, {.kind = Outcome::Kind::retry,
                   .error = fail(Errc::cancelled, Remedy::retry_call,
                                 "http: the relay gave up before the event was sent again alone")
                                .value()});
}

}  // namespace outbox::sink::http
