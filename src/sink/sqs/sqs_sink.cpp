#include "sink/sqs/sqs_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "sink/sqs/names.hpp"

namespace outbox::sink::sqs {
namespace {

constexpr std::size_t kMostMessages = 1000;

}  // namespace

SqsSink::SqsSink(SqsOptions options, Environment environment)
    : NetworkSink("sqs"),
      options_(std::move(options)),
      environment_(std::move(environment)),
      client_(options_),
      composer_(options_) {}

SinkTraits SqsSink::traits() const noexcept {
  const std::size_t most = options_.plain.concurrency * kMostEntries;
  return {.name = "sqs",
          .max_batch = std::min(most, kMostMessages),
          .max_in_flight = most,
          .attribute_prefix = "ce_"};
}

// ---- opening and closing

Status SqsSink::open() {
  warn_about(client_.address(), inspection().weaknesses);
  purge();
  urls_.clear();
  OUTBOX_TRY(find_out_credentials());
  OUTBOX_TRY(check_destination());
  transfers_.reset();  // Its connections may have failed, and the name may have a new address.
  OUTBOX_TRY(transfers_,
             curl::Transfers::start({.capacity = options_.plain.concurrency}, [this] { wake(); }));
  return {};
}

Inspection SqsSink::inspection() const {
  const std::string queue = options_.queue ? options_.plain.queue : options_.plain.url;
  const bool fifo = is_fifo(queue);
  Inspection found{.destination = fmt::format("{} at {}", queue, client_.address()),
                   .acked = "SQS has stored the event",
                   .duplicates = "after a lost answer, a crash of the relay or a takeover",
                   .order = "of each key"};
  found.duplicates +=
      fifo ? ", if more than five minutes passed" : ", or when SQS itself repeats a message";
  if (!fifo) found.order = "of nothing: the queue is no FIFO queue";
  if (!options_.encrypted() && !options_.endpoint.is_loopback())
    found.weaknesses.push_back(in_clear("https:// in sqs.endpoint"));
  if (options_.plain.tls.insecure) {
    found.weaknesses.push_back({"insecure_tls",
                                "whoever controls the network can read and swallow events",
                                "sqs.tls_ca with the authority of the server's certificate"});
  }
  found.largest = {
      "sqs.max_batch_bytes", static_cast<std::int64_t>(options_.plain.max_batch_bytes),
      "raise sqs.max_batch_bytes, to 1MiB at most, and the queue's MaximumMessageSize"};
  return found;
}

Status SqsSink::find_out_credentials() {
  auto found =
      find_credentials(options_.plain, environment_, fetch_within(options_.plain.connect_timeout));
  if (!found) return pass(found);
  credentials_ = std::move(*found);
  secrets_.clear();
  for (const std::string& secret : {credentials_.secret_key, credentials_.session_token}) {
    if (!secret.empty()) secrets_.push_back(secret);
  }
  return {};
}

Status SqsSink::check_destination() {
  const bool look = options_.queue && options_.fixed_queue;
  Exchange exchange;
  exchange.operation = Operation::get_queue_url;
  if (look) exchange.body = lookup_body(*options_.fixed_queue, options_.plain.account);
  const std::string queue = options_.fixed_queue.value_or("");
  const Answer answer = look ? client_.perform(exchange, credentials_) : client_.connect();
  if (!look && answer.code == CURLE_OK) {
    if (options_.fixed_queue) urls_.remember(queue, queue);
    return {};
  }
  if (auto failure = find_failure(answer, context(queue))) return fail(std::move(failure->error));
  auto url = read_queue_url(answer, context(queue));
  if (!url) return fail(std::move(url.error().error));
  urls_.remember(queue, std::move(*url));
  return {};
}

void SqsSink::close() noexcept {
  purge();
  transfers_.reset();
}

// ---- sending

std::size_t SqsSink::send(std::span<const Message> messages) {
  if (!transfers_) return 0;
  std::size_t taken = 0;
  for (; taken < messages.size(); ++taken) {
    auto composed = composer_.compose(messages[taken]);
    if (!composed) {
      refuse(messages[taken], Outcome::Kind::rejected, std::move(composed.error()));
    } else if (!place(*composed)) {
      break;
    }
  }
  launch_open();
  return taken;
}

bool SqsSink::place(Composed& composed) {
  const auto found = open_.find(composed.queue);
  if (found != open_.end()) {
    if (found->second.has_room(composed.entry.bytes, options_.plain.max_batch_bytes)) {
      found->second.add(std::move(composed.entry));
      return true;
    }
    launch(std::move(found->second));
    open_.erase(found);
  }
  if (batches_ >= options_.plain.concurrency) return false;
  ++batches_;
  Batch& batch = open_.emplace(composed.queue, Batch{.queue = composed.queue}).first->second;
  batch.add(std::move(composed.entry));
  return true;
}

void SqsSink::launch_open() {
  for (auto& [queue, batch] : open_) launch(std::move(batch));
  open_.clear();
}

// There is always a free transfer: each serves a batch, or a look-up that at least one batch waits
// for, and outside `waiting_` there are no more batches than transfers.
void SqsSink::launch(Batch batch) {
  const std::string* const url = urls_.find(batch.queue);
  if (url == nullptr) {
    auto& waiting = without_url_[batch.queue];
    if (waiting.empty()) look_up(batch.queue);
    waiting.push_back(std::move(batch));
    return;
  }
  auto exchange = std::make_unique<Exchange>();
  exchange->body = send_body(batch, *url);
  exchange->batch = std::move(batch);
  start(std::move(exchange));
}

void SqsSink::look_up(const std::string& queue) {
  auto exchange = std::make_unique<Exchange>();
  exchange->operation = Operation::get_queue_url;
  exchange->batch.queue = queue;
  exchange->body = lookup_body(queue, options_.plain.account);
  start(std::move(exchange));
}

void SqsSink::start(std::unique_ptr<Exchange> exchange) {
  const auto ticket = ++last_ticket_;
  Exchange& placed = *exchanges_.emplace(ticket, std::move(exchange)).first->second;
  const auto deadline = std::chrono::steady_clock::now() + options_.plain.deadline;
  OUTBOX_CHECK(transfers_->submit(ticket, client_.prepare(placed, credentials_), deadline));
}

void SqsSink::launch_waiting() {
  while (!waiting_.empty() && exchanges_.size() < options_.plain.concurrency) {
    Batch batch = std::move(waiting_.front());
    waiting_.pop_front();
    launch(std::move(batch));
  }
}

// ---- outcomes

RequestContext SqsSink::context(std::string_view queue) const {
  return {.address = client_.address(),
          .setting = !options_.plain.endpoint.empty() ? "endpoint"
                     : options_.queue                 ? "region"
                                                      : "url",
          .queue = queue,
          .queue_varies = !options_.fixed_queue,
          .deadline = options_.plain.deadline,
          .secrets = &secrets_};
}

void SqsSink::take_ends() {
  for (curl::Transfers::Done& done : transfers_->take_done()) {
    const auto found = exchanges_.find(done.ticket);
    OUTBOX_CHECK(found != exchanges_.end());
    const auto exchange = std::move(found->second);
    exchanges_.erase(found);
    const Answer answer = curl::HttpClient::make_answer(*exchange, done.easy.get(), done.code);
    done.easy.reset();  // The handle points to the exchange.
    if (exchange->operation == Operation::get_queue_url) {
      found_url(exchange->batch.queue, answer);
    } else {
      take_end(*exchange, answer);
    }
  }
}

void SqsSink::take_end(Exchange& exchange, const Answer& answer) {
  Batch& batch = exchange.batch;
  const auto failure = find_failure(answer, context(batch.queue));
  if (!failure)
    return settle(batch, read_outcomes(answer, batch.entries.size(), context(batch.queue)));
  const bool no_queue = failure->error.code == Errc::not_found;
  if (no_queue && options_.queue) urls_.forget(batch.queue);
  // The failure does not say which entry of the batch is at fault, so two halves are sent.
  if (failure->kind == Outcome::Kind::rejected && !no_queue && batch.entries.size() > 1) {
    auto [first, second] = halves(std::move(batch));
    ++batches_;
    waiting_.push_back(std::move(first));
    waiting_.push_back(std::move(second));
    return;
  }
  settle(batch, *failure);
}

void SqsSink::found_url(const std::string& queue, const Answer& answer) {
  auto waiting = std::move(without_url_[queue]);
  without_url_.erase(queue);
  auto failure = find_failure(answer, context(queue));
  if (!failure) {
    auto url = read_queue_url(answer, context(queue));
    if (url) {
      urls_.remember(queue, std::move(*url));
      std::move(waiting.begin(), waiting.end(), std::back_inserter(waiting_));
      return;
    }
    failure = std::move(url.error());
  }
  // Nothing of the events was sent, and only the queue's name can be their fault.
  if (failure->kind == Outcome::Kind::unknown) failure->kind = Outcome::Kind::retry;
  if (failure->kind == Outcome::Kind::rejected && options_.fixed_queue)
    failure->kind = Outcome::Kind::blocked;
  failure->error.effect = Effect::none;
  for (const Batch& batch : waiting) settle(batch, *failure);
}

void SqsSink::settle(const Batch& batch, const Outcome& outcome) {
  settle(batch, std::vector<Outcome>(batch.entries.size(), outcome));
}

void SqsSink::settle(const Batch& batch, std::vector<Outcome> outcomes) {
  --batches_;
  for (std::size_t place = 0; place < batch.entries.size(); ++place) {
    outcomes[place].token = batch.entries[place].token;
    report(std::move(outcomes[place]));
  }
}

void SqsSink::advance() {
  if (transfers_) {
    take_ends();
    launch_waiting();
  }
}

// ---- giving up

void SqsSink::purge() {
  if (!transfers_) return;
  transfers_->cancel_all();
  take_ends();
  const Outcome given_up{.kind = Outcome::Kind::retry,
                         .error = fail(Errc::cancelled, Remedy::retry_call,
                                       "sqs: the relay gave up before the event was sent")
                                      .value()};
  for (const Batch& batch : std::exchange(waiting_, {})) settle(batch, given_up);
  for (const auto& [queue, batches] : std::exchange(without_url_, {})) {
    for (const Batch& batch : batches) settle(batch, given_up);
  }
}

}  // namespace outbox::sink::sqs
