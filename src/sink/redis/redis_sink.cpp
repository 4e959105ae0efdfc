#include "sink/redis/redis_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "sink/redis/error_map.hpp"
#include "sink/redis/script.hpp"

namespace outbox::sink::redis {
namespace {

/// With more in the buffer, what the server takes now is written before another message is added.
constexpr std::size_t kMostUnsent = std::size_t{256} << 10U;
/// The server keeps what it has not read yet in memory while it waits for its replicas.
constexpr std::size_t kMostBytesInFlight = std::size_t{16} << 20U;

std::chrono::steady_clock::time_point now_steady() { return std::chrono::steady_clock::now(); }

}  // namespace

RedisSink::RedisSink(RedisOptions options)
    : options_(std::move(options)),
      wait_replicas_(std::to_string(options_.wait_replicas)),
      wait_timeout_(std::to_string(options_.wait_timeout.count())),
      command_(options_.dedup_window, options_.max_length),
      watch_([this] { wake(); }) {}

RedisSink::~RedisSink() { RedisSink::close(); }

SinkTraits RedisSink::traits() const noexcept {
  return {.name = "redis",
          .gapless = false,
          .max_batch = 1000,
          .max_in_flight = options_.max_in_flight,
          .attribute_prefix = kAttributePrefix};
}

// ---- opening

Status RedisSink::open() {
  if (state_ == State::open) return {};
  close();
  if (Status started = watch_.start(); !started) return started;
  OUTBOX_TRY(session_, open_session(options_));
  weaknesses_.warn(session_.inspection.destination, session_.inspection.weaknesses);
  state_ = State::open;
  return {};
}

void RedisSink::close() noexcept {
  if (session_.connection && !in_flight_.empty()) session_.connection->abort();
  for (const Token token : in_flight_.take_all())
    ready_.push_back({.token = token, .kind = Outcome::Kind::unknown, .error = reason_});
  drop_connection();
  state_ = State::closed;
}

void RedisSink::drop_connection() noexcept {
  if (!session_.connection) return;
  watch_.forget(session_.connection->socket());
  session_.connection.reset();
}

// ---- sending

std::size_t RedisSink::send(std::span<const Message> messages) {
  if (messages.empty() || state_ == State::closed) return 0;
  if (state_ == State::failed) {
    refuse(messages.front(), Outcome::Kind::blocked, reason_);
    return 1;
  }
  if (in_flight_.empty()) progress_ = now_steady();
  std::size_t taken = 0;
  while (taken < messages.size() && has_room()) add(messages[taken++]);
  add_wait();
  write_out();
  watch_socket();
  return taken;
}

bool RedisSink::has_room() {
  if (in_flight_.events() >= options_.max_in_flight) return false;
  if (session_.connection->unsent() >= kMostUnsent) write_out();
  if (state_ != State::open || session_.connection->unsent() >= kMostUnsent) return false;
  const std::size_t most = std::min(kMostBytesInFlight, session_.most_bytes / 2);
  return in_flight_.bytes() < most;
}

void RedisSink::add(const Message& message) {
  if (auto wrong = refusal_of(message))
    return refuse(message, Outcome::Kind::rejected, std::move(*wrong));
  const auto arguments = command_.make(message, session_.script_hash);
  if (command_.bytes() > session_.most_bytes) {
    return refuse(
        message, Outcome::Kind::rejected,
        fail(Errc::too_large,
             fmt::format("redis: stream {}: the event takes {} bytes, the server takes {}",
                         message.topic, command_.bytes(), session_.most_bytes),
             "raise proto-max-bulk-len and client-query-buffer-limit of the server, and "
             "redis.max_message_bytes if it is set")
            .value());
  }
  session_.connection->append(arguments);
  in_flight_.add(
      {.token = message.token, .bytes = command_.bytes(), .stream = std::string(message.topic)});
}

void RedisSink::add_wait() {
  if (!session_.connection || options_.wait_replicas == 0 || !in_flight_.lacks_wait()) return;
  const std::array<std::string_view, 3> command{"WAIT", wait_replicas_, wait_timeout_};
  session_.connection->append(command);
  in_flight_.add_wait();
}

void RedisSink::refuse(const Message& message, Outcome::Kind kind, Error error) {
  ready_.push_back({.token = message.token, .kind = kind, .error = std::move(error)});
}

void RedisSink::write_out() {
  if (!session_.connection) return;
  const Result<bool> wrote = session_.connection->flush();
  if (wrote) {
    if (*wrote) progress_ = now_steady();
    return;
  }
  // The server may have said why before it closed the connection.
  take_answers();
  lose(wrote.error());
}

// ---- outcomes

void RedisSink::receive(std::vector<Outcome>& outcomes) {
  take_answers();
  write_out();
  watch_deadline();
  watch_socket();
  if (outcomes.empty()) {
    outcomes.swap(ready_);
  } else {
    for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  }
  ready_.clear();
}

void RedisSink::take_answers() {
  if (!session_.connection) return;
  const Status filled = session_.connection->fill();
  while (session_.connection) {
    const Result<Reply> reply = session_.connection->next();
    if (!reply) return lose(reply.error());
    if (!*reply) break;
    progress_ = now_steady();
    settle(**reply);
  }
  if (!filled) lose(filled.error());
}

void RedisSink::settle(const redisReply& reply) {
  if (!in_flight_
           .expects_answer())  // as "ERR max number of clients reached" before it closes the connection
    return lose(describe(text_of(reply), session_.connection->address()));
  const auto entry = in_flight_.answered();
  if (!entry) return confirm(reply);
  switch (reply.type) {
    case REDIS_REPLY_INTEGER: return added(entry->token);
    case REDIS_REPLY_STRING:
      added(entry->token);
      return stop_taking(describe(text_of(reply), session_.connection->address()));
    case REDIS_REPLY_ERROR: return not_added(*entry, reply);
    default: break;
  }
  Error error = fail(Errc::internal, Remedy::reconnect,
                     fmt::format("redis: {}: an unexpected answer of type {}",
                                 session_.connection->address(), reply.type))
                    .value();
  error.effect = Effect::unknown;
  ready_.push_back({.token = entry->token, .kind = Outcome::Kind::unknown, .error = error});
  lose(std::move(error));
}

void RedisSink::added(Token token) {
  if (options_.wait_replicas > 0) return in_flight_.hold(token);
  ready_.push_back({.token = token, .kind = Outcome::Kind::acked});
}

void RedisSink::not_added(const InFlight::Entry& entry, const redisReply& reply) {
  Error error = describe(text_of(reply), "stream " + entry.stream);
  const Outcome::Kind kind = kind_of(text_of(reply));
  if (kind == Outcome::Kind::blocked) stop_taking(error);
  const bool this_stream = code_of(text_of(reply)) == "WRONGTYPE";
  ready_.push_back({.token = entry.token,
                    .kind = kind,
                    .scope = this_stream ? Outcome::Scope::partition : Outcome::Scope::all,
                    .error = std::move(error)});
}

/// The entries are in the stream either way. Sent again, they are found there, and wait again.
void RedisSink::confirm(const redisReply& wait) {
  const Status enough =
      check_replicas(wait, options_.wait_replicas, session_.connection->address());
  Outcome outcome{.kind = enough ? Outcome::Kind::acked : Outcome::Kind::unknown};
  if (!enough) {
    stop_taking(enough.error());
    outcome.error = enough.error();
    outcome.error.effect = Effect::unknown;
  }
  for (const Token token : in_flight_.take_added()) {
    outcome.token = token;
    ready_.push_back(outcome);
  }
}

// ---- failing

void RedisSink::stop_taking(Error reason) {
  if (state_ != State::open) return;
  state_ = State::failed;
  reason_ = std::move(reason);
}

/// What the server had received may have been added.
void RedisSink::lose(Error error) {
  if (!session_.connection) return;
  stop_taking(error);
  error.effect = Effect::unknown;
  for (const Token token : in_flight_.take_all())
    ready_.push_back({.token = token, .kind = Outcome::Kind::unknown, .error = error});
  session_.connection->abort();
  drop_connection();
}

void RedisSink::watch_deadline() {
  if (!session_.connection || in_flight_.empty()) return;
  const auto waited = now_steady() - progress_;
  if (waited <= options_.deadline) return;
  lose(
      fail(
          Errc::deadline_exceeded, Remedy::reconnect,
          fmt::format("redis: {}: no answer for {:.1f} s", session_.connection->address(),
                      std::chrono::duration<double>(waited).count()),
          "check the server and the network; does a slow command or script hold it up (SLOWLOG GET)?")
          .value());
}

/// Also while nothing is in flight: the server may close the connection.
void RedisSink::watch_socket() {
  if (!session_.connection) return;
  watch_.arm(session_.connection->socket(), {.write = session_.connection->unsent() > 0});
}

void RedisSink::purge() {
  take_answers();
  if (in_flight_.empty()) return;
  lose(fail(Errc::cancelled, Remedy::retry_call, "redis: the relay gave up").value());
}

}  // namespace outbox::sink::redis
