#include "source/nats/client.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/steady.hpp"
#include "base/thread.hpp"
#include "sink/nats/connection.hpp"
#include "sink/nats/error_map.hpp"
#include "sink/nats/reach.hpp"

namespace outbox::source::nats {
namespace {

using sink::nats::ConnectionHandle;
using sink::nats::describe;
using sink::nats::last_words;
using sink::nats::MessageHandle;

/// A peer that answers nothing is noticed after three of these.
constexpr std::int64_t kPingIntervalMs = 10'000;

/// Errors that concern no call are read from the connection when they matter.
void ignore_error(natsConnection* /*client*/, natsSubscription* /*subscription*/,
                  natsStatus /*status*/, void* /*closure*/) {}

}  // namespace

struct Client::Arrivals {
  Mutex mutex;
  std::condition_variable_any changed;
  std::deque<MessageHandle> messages OUTBOX_GUARDED_BY(mutex);
};

// ---- connecting

struct Client::Connector::Attempt {
  Mutex mutex;
  std::condition_variable_any changed;
  std::optional<Result<std::unique_ptr<Client>>> made OUTBOX_GUARDED_BY(mutex);
};

Result<std::unique_ptr<Client>> Client::Connector::connect(
    const sink::nats::NatsSettings& settings, const std::vector<sink::Endpoint>& servers) {
  OUTBOX_TRY(sink::nats::check_left(left_));
  if (const natsStatus opened = nats_Open(-1); opened != NATS_OK)
    return fail(describe(opened, "the client cannot be started", last_words(opened)));
  const TimePoint until = now_steady() + settings.connect_timeout;
  for (std::size_t i = 0;; ++i) {
    const auto now = now_steady();
    const auto share = (until - now) / static_cast<std::int64_t>(servers.size() - i);
    auto made = connect_to(settings, servers[i], now + share);
    if (made || i + 1 == servers.size()) return made;
  }
}

Result<std::unique_ptr<Client>> Client::Connector::connect_to(
    const sink::nats::NatsSettings& settings, const sink::Endpoint& server, TimePoint until) {
  const auto attempt = std::make_shared<Attempt>();
  const auto run = [attempt, settings, server, until](const std::stop_token&) {
    auto made = Client::make(settings, server, until);
    const MutexLock lock(attempt->mutex);
    attempt->made = std::move(made);
    attempt->changed.notify_all();
  };
  try {
    start_thread("ob-nats", run).detach();
  } catch (const std::system_error& error) {
    return fail(Errc::unavailable, Remedy::retry_call,
                std::string("nats: cannot start a thread: ") + error.what(),
                "raise the limit of threads of the consumer");
  }
  const MutexLock lock(attempt->mutex);
  attempt->changed.wait_until(attempt->mutex, until, [&]() OUTBOX_REQUIRES(attempt->mutex) {
    return attempt->made.has_value();
  });
  if (attempt->made) return *std::exchange(attempt->made, std::nullopt);
  left_.emplace_back(attempt);
  return fail(Errc::deadline_exceeded, Remedy::reconnect,
              fmt::format("nats: {}: does not complete the connection in time", server.shown()),
              "check the server; with TLS, that it speaks TLS");
}

Result<std::unique_ptr<Client>> Client::make(const sink::nats::NatsSettings& settings,
                                             const sink::Endpoint& server, TimePoint until) {
  OUTBOX_TRY(const std::string address, sink::nats::reach(server, until));
  OUTBOX_TRY(const auto options, sink::nats::make_options(settings, server, address));
  // Acknowledgements are written together.
  natsOptions_SetSendAsap(options.get(), false);
  natsOptions_SetPingInterval(options.get(), kPingIntervalMs);
  natsOptions_SetCustomInboxPrefix(options.get(), settings.inbox_prefix.c_str());
  natsOptions_SetErrorHandler(options.get(), ignore_error, nullptr);
  natsConnection* made = nullptr;
  const natsStatus status = natsConnection_Connect(&made, options.get());
  if (status != NATS_OK) return fail(describe(status, server.shown(), last_words(status)));
  std::unique_ptr<Client> client(new Client(
      server.shown(), sink::nats::make_inbox(settings.inbox_prefix), ConnectionHandle(made)));
  OUTBOX_TRY(client->subscribe());
  return client;
}

Client::Client(std::string server, std::string inbox, ConnectionHandle connection)
    : server_(std::move(server)),
      inbox_(std::move(inbox)),
      arrivals_(std::make_shared<Arrivals>()),
      connection_(std::move(connection)) {}

Client::~Client() = default;

Status Client::subscribe() {
  // cnats may deliver a message on its thread while the subscription is destroyed here.
  // Their number needs no limit: no more arrives than was asked for.
  const natsStatus status =
      sink::nats::listen(connection_.get(), inbox_, arrived, arrivals_, subscription_);
  if (status == NATS_OK) return {};
  return fail(describe(status, server_, last_words(status)));
}

// ---- asking

std::string Client::reply_to(std::uint64_t number) const { return inbox_ + std::to_string(number); }

std::optional<std::uint64_t> Client::parse_number(std::string_view subject) const {
  return sink::nats::parse_number(subject, inbox_);
}

Result<std::string> Client::ask(const std::string& subject, const std::string& body,
                                std::chrono::milliseconds limit) {
  natsMsg* made = nullptr;
  const natsStatus status = natsConnection_RequestString(&made, connection_.get(), subject.c_str(),
                                                         body.c_str(), limit.count());
  const MessageHandle reply(made);
  if (status == NATS_OK) {
    return std::string(natsMsg_GetData(made),
                       static_cast<std::size_t>(natsMsg_GetDataLength(made)));
  }
  if (status == NATS_NO_RESPONDERS) {
    return fail(Errc::unsupported, fmt::format("nats: {}: JetStream is not enabled", server_),
                "enable it on the server and for the account of this user; or set nats.domain");
  }
  if (status != NATS_TIMEOUT) return fail(describe(status, server_, last_words(status)));
  OUTBOX_TRY(check_rights());
  return fail(Errc::deadline_exceeded, Remedy::reconnect,
              fmt::format("nats: {}: no answer on {}", server_, subject),
              "check that the stream has a leader, and nats.domain");
}

Status Client::publish(const std::string& subject, const std::string& reply_to,
                       const std::string& body) {
  const char* const reply = reply_to.empty() ? nullptr : reply_to.c_str();
  natsMsg* made = nullptr;
  natsStatus status =
      natsMsg_Create(&made, subject.c_str(), reply, body.data(), static_cast<int>(body.size()));
  const MessageHandle message(made);
  if (status == NATS_OK) status = natsConnection_PublishMsg(connection_.get(), made);
  if (status == NATS_OK) return {};
  OUTBOX_TRY(check());
  return fail(describe(status, server_, last_words(status)));
}

Status Client::flush(std::chrono::milliseconds limit) {
  const natsStatus status = natsConnection_FlushTimeout(connection_.get(), limit.count());
  if (status == NATS_OK) return {};
  OUTBOX_TRY(check());
  return fail(describe(status, server_, last_words(status)));
}

// ---- what arrives

MessageHandle Client::next(TimePoint until) {
  const MutexLock lock(arrivals_->mutex);
  auto& messages = arrivals_->messages;
  arrivals_->changed.wait_until(arrivals_->mutex, until, [&]() OUTBOX_REQUIRES(arrivals_->mutex) {
    return !messages.empty();
  });
  if (messages.empty()) return nullptr;
  MessageHandle next = std::move(messages.front());
  messages.pop_front();
  return next;
}

bool Client::has_next() {
  const MutexLock lock(arrivals_->mutex);
  return !arrivals_->messages.empty();
}

void Client::rest(TimePoint until) {
  const MutexLock lock(arrivals_->mutex);
  arrivals_->changed.wait_until(arrivals_->mutex, until, [] { return false; });
}

void Client::stop_receiving(std::chrono::milliseconds limit) {
  if (natsSubscription_DrainTimeout(subscription_.get(), limit.count()) == NATS_OK)
    (void)natsSubscription_WaitForDrainCompletion(subscription_.get(), limit.count());
}

void Client::arrived(natsConnection* /*connection*/, natsSubscription* /*subscription*/,
                     natsMsg* message, void* held) {
  const auto& arrivals = *static_cast<std::shared_ptr<Arrivals>*>(held);
  {
    const MutexLock lock(arrivals->mutex);
    arrivals->messages.emplace_back(message);
  }
  arrivals->changed.notify_all();
}

// ---- the state of the connection

Status Client::check() {
  if (!natsConnection_IsClosed(connection_.get())) return {};
  return fail(sink::nats::describe_loss(connection_.get(), server_));
}

Status Client::check_rights() {
  const char* text = nullptr;
  const natsStatus status = natsConnection_GetLastError(connection_.get(), &text);
  if (status != NATS_NOT_PERMITTED) return {};
  Error error = describe(status, server_, text == nullptr ? "" : text);
  error.hint = "give the user of this consumer the rights that docs/sources/nats.md lists";
  return fail(std::move(error));
}

}  // namespace outbox::source::nats
