#include "sink/nats/nats_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "sink/nats/message.hpp"

namespace outbox::sink::nats {
namespace {

using Clock = std::chrono::steady_clock;

Error unanswered(const std::string& subject, std::chrono::milliseconds deadline, bool by_other) {
  return {.code = Errc::deadline_exceeded,
          .remedy = Remedy::retry_call,
          .effect = Effect::unknown,
          .message = fmt::format("nats: subject {}: JetStream did not confirm within {}{}", subject,
                                 format_duration(deadline),
                                 by_other ? ", but another program answered" : ""),
          .hint = by_other ? "only a stream may take the subject and answer on it"
                           : "check the stream's leader and that it has no no_ack",
          .origin = {}};
}

}  // namespace

NatsSink::NatsSink(std::string subscription, NatsSettings settings, std::vector<Endpoint> servers)
    : ConnectionSink("nats"),
      subscription_(std::move(subscription)),
      settings_(std::move(settings)),
      servers_(std::move(servers)) {}

NatsSink::~NatsSink() { leave(); }

SinkTraits NatsSink::traits() const noexcept {
  return {.name = "nats",
          .gapless = false,
          .max_batch = 1000,
          .max_in_flight = settings_.max_in_flight,
          .attribute_prefix = kAttributePrefix};
}

// ---- opening

Status NatsSink::open() {
  take_news();
  if (state_ == State::open && !doubtful_) return {};
  const TimePoint until = Clock::now() + settings_.connect_timeout;
  if (state_ != State::open) {
    OUTBOX_TRY(connect(until));
  }
  if (Status checked = check_destination(until); !checked) {
    fail_all(checked.error());
    next_server_ = (next_server_ + 1) % servers_.size();
    return checked;
  }
  warn_about(inspection_);
  state_ = State::open;
  doubtful_ = false;
  return {};
}

/// Connects to the server that worked last, or else to the others, within one time limit.
Status NatsSink::connect(TimePoint until) {
  OUTBOX_TRY(check_left(left_));
  Status last;
  for (std::size_t tried = 0; tried < servers_.size(); ++tried) {
    const auto now = Clock::now();
    const auto share = (until - now) / static_cast<std::int64_t>(servers_.size() - tried);
    last = connect_to(servers_[next_server_], now + share);
    if (last) return last;
    next_server_ = (next_server_ + 1) % servers_.size();
  }
  return last;
}

Status NatsSink::connect_to(const Endpoint& server, TimePoint until) {
  auto started = Connection::start(settings_, server, until - Clock::now(), [this] { wake(); });
  if (!started) return pass(started);
  connection_ = std::move(*started);
  if (Status up = connection_->wait_until_up(until); !up) {
    leave();
    return up;
  }
  return {};
}

/// Leaves the connection, on which nothing more is sent.
void NatsSink::leave() {
  if (!connection_) return;
  settle(connection_->give_up());
  left_.emplace_back(connection_);
  connection_.reset();
}

Status NatsSink::check_destination(TimePoint until) {
  const Endpoint& server = servers_[next_server_];
  inspection_ = {.destination = server.shown(),
                 .acked = "the stream has confirmed it",
                 .duplicates = "when more than the stream's duplicate_window lies between",
                 .order = "of each key in a stream"};
  if (!settings_.stream.empty()) inspection_.destination += ", stream " + settings_.stream;
  if (server.scheme != "tls" && !server.is_loopback())
    inspection_.weaknesses.push_back(in_clear("tls:// in nats.url"));
  if (const auto bytes = connection_->max_payload(); bytes > 0)
    inspection_.largest = {"max_payload of the server", bytes, "raise max_payload of the server"};
  const bool named = !settings_.stream.empty();
  const std::string subject =
      api_prefix(settings_) + (named ? ".STREAM.INFO." + settings_.stream : ".INFO");
  OUTBOX_TRY(const Reply reply, connection_->ask(subject, until));
  if (reply.kind == Reply::Kind::nobody) {
    return fail(Errc::unsupported,
                fmt::format("nats: {}: JetStream is not enabled", server.shown()),
                "enable it on the server and for the account of this user; or set nats.domain");
  }
  if (reply.kind == Reply::Kind::denied) {
    inspection_.weaknesses.push_back({"the user may not ask about the stream",
                                      "its settings are not checked",
                                      "let it publish to " + subject});
    return {};
  }
  if (!named) return check_account(reply.body);
  // The relay pauses at most this long, jitter included, before it sends an event in doubt again.
  const auto window =
      settings_.deadline + settings_.connect_timeout + BackoffPolicy{}.longest * 5 / 4;
  OUTBOX_TRY(const auto weaknesses, check_stream(settings_.stream, reply.body, window));
  inspection_.weaknesses.insert(inspection_.weaknesses.end(), weaknesses.begin(), weaknesses.end());
  return {};
}

// ---- sending

std::size_t NatsSink::take(std::span<const Message> messages) {
  const std::size_t room =
      settings_.max_in_flight - std::min(settings_.max_in_flight, in_flight_.size());
  const std::size_t count = std::min(messages.size(), room);
  const TimePoint now = Clock::now();
  std::vector<Outgoing> outgoing;
  outgoing.reserve(count);
  for (const Message& message : messages.first(count)) {
    auto made = make_message(message, {.subscription = subscription_,
                                       .reply = connection_->reply_to(last_number_ + 1),
                                       .stream = settings_.stream});
    if (!made) {
      const bool its_fault = made.error().remedy == Remedy::fix;
      refuse(message, its_fault ? Outcome::Kind::rejected : Outcome::Kind::retry,
             std::move(made.error()));
      continue;
    }
    ++last_number_;
    in_flight_.emplace_hint(
        in_flight_.end(), last_number_,
        InFlight{.token = message.token, .subject = std::string(message.topic), .sent = now});
    outgoing.push_back({.number = last_number_, .message = std::move(*made)});
  }
  if (!outgoing.empty()) connection_->publish(std::move(outgoing));
  return count;
}

// ---- outcomes

void NatsSink::advance() {
  take_news();
  watch_deadline(Clock::now());
}

void NatsSink::take_news() {
  if (!connection_) return;
  const News news = connection_->take();
  settle(news);
  if (news.lost) fail_all(*news.lost);
}

void NatsSink::settle(const News& news) {
  for (const auto& [number, answer] : news.answers) settle_answer(number, answer);
  for (const auto& [number, error] : news.refused) {
    const auto entry = in_flight_.find(number);
    if (entry == in_flight_.end()) continue;
    report({.token = entry->second.token,
            .kind = Outcome::Kind::rejected,
            .error = error,
            .unsent = true});  // The client got nothing of it.
    in_flight_.erase(entry);
  }
  for (const Number number : news.unsent) {
    const auto entry = in_flight_.find(number);
    if (entry == in_flight_.end()) continue;
    Error error = news.lost.value_or(reason_);
    if (error.message.empty()) error.message = "nats: it was not sent";
    settle_one(entry, Outcome::Kind::retry, std::move(error));
  }
  for (const std::string& words : news.denied) settle_denied(words);
}

/// Settles the message unless it has its outcome already and the answer comes too late.
void NatsSink::settle_answer(Number number, const Answer& answer) {
  const auto entry = in_flight_.find(number);
  if (entry == in_flight_.end()) return;
  if (answer.kind == Answer::Kind::foreign) {
    entry->second.answered_by_other = true;
    return;
  }
  answered_ = Clock::now();
  Verdict verdict = judge(answer, entry->second.subject);
  doubtful_ = doubtful_ || verdict.kind == Outcome::Kind::blocked;
  settle_one(entry, verdict.kind, std::move(verdict.error));
}

/// Settles a refused message. The server's error, one for each, names only the subject.
void NatsSink::settle_denied(const std::string& words) {
  const auto denied = parse_denied(words);
  if (!denied) return fail_all(describe(NATS_NOT_PERMITTED, "the server says", words));
  const auto entry = std::find_if(in_flight_.begin(), in_flight_.end(), [&](const auto& one) {
    return denied->means(one.second.subject);
  });
  if (entry == in_flight_.end()) return;
  answered_ = Clock::now();
  Error error = denied_error(entry->second.subject);
  settle_one(entry, Outcome::Kind::blocked, std::move(error));
}

void NatsSink::settle_one(std::map<Number, InFlight>::iterator entry, Outcome::Kind kind,
                          Error error) {
  report({.token = entry->second.token, .kind = kind, .error = std::move(error)});
  in_flight_.erase(entry);
}

/// Fails overdue messages. A server that changes the leader of a stream skips what it received
/// meanwhile and goes on with the rest; if no answer comes at all, the connection is suspect.
void NatsSink::watch_deadline(TimePoint now) {
  while (!in_flight_.empty()) {
    const auto oldest = in_flight_.begin();
    const InFlight& entry = oldest->second;
    if (now - entry.sent < settings_.deadline) return;
    Error error = unanswered(entry.subject, settings_.deadline, entry.answered_by_other);
    if (now - answered_ >= settings_.deadline) return fail_all(std::move(error));
    settle_one(oldest, Outcome::Kind::unknown, std::move(error));
  }
}

/// Gives up the connection, which cannot be used any more.
void NatsSink::fail_all(Error reason) {
  give_up(reason);
  reason_ = std::move(reason);
  reason_.effect = Effect::none;
  state_ = State::failed;
}

void NatsSink::give_up(const Error& reason) {
  reason_ = reason;
  leave();
  Error error = reason;
  error.effect = Effect::unknown;
  while (!in_flight_.empty()) settle_one(in_flight_.begin(), Outcome::Kind::unknown, error);
}

void NatsSink::purge() {
  give_up({.code = Errc::cancelled,
           .remedy = Remedy::retry_call,
           .effect = Effect::unknown,
           .message = "nats: given up before it was confirmed",
           .hint = {},
           .origin = {}});
  state_ = State::closed;
}

void NatsSink::close() noexcept { purge(); }

}  // namespace outbox::sink::nats
