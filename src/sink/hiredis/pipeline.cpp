#include "sink/hiredis/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "sink/hiredis/error_map.hpp"

namespace outbox::sink::hiredis {
namespace {

/// With more bytes in the buffer, they are written as far as possible before a message is added.
constexpr std::size_t kMostUnsent = std::size_t{256} << 10U;
/// The most bytes in flight: a server that waits for its replicas keeps what follows in memory.
constexpr std::size_t kMostBytesInFlight = std::size_t{16} << 20U;

}  // namespace

PipelineSink::PipelineSink(ServerOptions options, Purpose purpose, std::unique_ptr<Calls> calls)
    : ConnectionSink(purpose.sink),
      options_(std::move(options)),
      purpose_(std::move(purpose)),
      calls_(std::move(calls)),
      wait_replicas_(std::to_string(options_.wait_replicas)),
      wait_timeout_(std::to_string(options_.wait_timeout.count())),
      watch_([this] { wake(); }) {}

PipelineSink::~PipelineSink() { PipelineSink::close(); }

SinkTraits PipelineSink::traits() const noexcept {
  return {.name = purpose_.sink,
          .gapless = false,
          .max_batch = 1000,
          .max_in_flight = options_.max_in_flight,
          .attribute_prefix = purpose_.attribute_prefix};
}

// ---- opening

Status PipelineSink::open() {
  if (state_ == State::open) return {};
  close();
  OUTBOX_TRY(watch_.start());
  OUTBOX_TRY(session_, open_session(options_, purpose_));
  calls_->connected();
  first_failed_ = false;
  warn_about(session_.inspection);
  state_ = State::open;
  return {};
}

void PipelineSink::close() noexcept {
  if (session_.connection && !in_flight_.empty()) session_.connection->abort();
  for (const Token token : in_flight_.take_all())
    report({.token = token, .kind = Outcome::Kind::unknown, .error = reason_});
  drop_connection();
  state_ = State::closed;
}

void PipelineSink::drop_connection() noexcept {
  if (!session_.connection) return;
  watch_.forget(session_.connection->socket());
  session_.connection.reset();
}

// ---- sending

std::size_t PipelineSink::take(std::span<const Message> messages) {
  if (in_flight_.empty()) progress_ = now_steady();
  std::size_t taken = 0;
  while (taken < messages.size() && has_room()) add(messages[taken++]);
  add_wait();
  write_out();
  watch_socket();
  return taken;
}

bool PipelineSink::has_room() {
  if (in_flight_.events() >= options_.max_in_flight) return false;
  if (session_.connection->unsent() >= kMostUnsent) write_out();
  if (state_ != State::open || session_.connection->unsent() >= kMostUnsent) return false;
  const std::size_t most = std::min(kMostBytesInFlight, session_.most_bytes / 2);
  return in_flight_.bytes() < most;
}

void PipelineSink::add(const Message& message) {
  Result<Call> call = calls_->call(message, session_.script_hash);
  if (!call) return refuse(message, Outcome::Kind::rejected, std::move(call.error()));
  if (!call->first.empty()) {
    session_.connection->append(call->first);
    in_flight_.add({.kind = InFlight::Kind::first,
                    .bytes = wire_bytes(call->first),
                    .place = fmt::format("key {}", call->first[1])});
  }
  const std::size_t bytes = wire_bytes(call->arguments);
  if (bytes > session_.most_bytes) {
    return refuse(message, Outcome::Kind::rejected,
                  fail(Errc::too_large,
                       fmt::format("{}: {}: the event takes {} bytes, the server takes {}",
                                   purpose_.sink, call->place, bytes, session_.most_bytes),
                       fmt::format("raise proto-max-bulk-len and client-query-buffer-limit of the "
                                   "server, and {}.max_message_bytes if it is set",
                                   purpose_.sink))
                      .value());
  }
  session_.connection->append(call->arguments);
  in_flight_.add({.token = message.token, .bytes = bytes, .place = std::move(call->place)});
}

void PipelineSink::add_wait() {
  if (!session_.connection || options_.wait_replicas == 0 || !in_flight_.lacks_wait()) return;
  const std::array<std::string_view, 3> command{"WAIT", wait_replicas_, wait_timeout_};
  session_.connection->append(command);
  in_flight_.add_wait();
}

void PipelineSink::write_out() {
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

void PipelineSink::advance() {
  take_answers();
  write_out();
  watch_deadline();
  watch_socket();
}

void PipelineSink::take_answers() {
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

void PipelineSink::settle(const redisReply& reply) {
  // The server says so before it closes: "ERR max number of clients reached".
  if (!in_flight_.expects_answer())
    return lose(describe(to_text(reply), session_.connection->address(), purpose_));
  const InFlight::Entry entry = in_flight_.answered();
  if (entry.kind == InFlight::Kind::wait) return confirm(reply);
  if (entry.kind == InFlight::Kind::first) return prepared(entry, reply);
  switch (reply.type) {
    case REDIS_REPLY_INTEGER: return added(entry.token);
    case REDIS_REPLY_STRING:
      added(entry.token);
      return stop_taking(describe(to_text(reply), session_.connection->address(), purpose_));
    case REDIS_REPLY_ERROR: return not_added(entry, reply);
    default: break;
  }
  Error error = fail(Errc::internal, Remedy::reconnect,
                     fmt::format("{}: {}: an unexpected answer of type {}", purpose_.sink,
                                 session_.connection->address(), reply.type))
                    .value();
  error.effect = Effect::unknown;
  report({.token = entry.token, .kind = Outcome::Kind::unknown, .error = error});
  lose(std::move(error));
}

/// Handles the reply to a command that precedes an event. If it failed, events sent behind it may
/// have been added, and are sent again.
void PipelineSink::prepared(const InFlight::Entry& entry, const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) return;
  first_failed_ = true;
  stop_taking(describe(to_text(reply), entry.place, purpose_));
}

void PipelineSink::added(Token token) {
  if (first_failed_) {
    Error error = reason_;
    error.effect = Effect::unknown;
    report({.token = token, .kind = Outcome::Kind::unknown, .error = std::move(error)});
    return;
  }
  if (options_.wait_replicas > 0) return in_flight_.hold(token);
  report({.token = token, .kind = Outcome::Kind::acked});
}

void PipelineSink::not_added(const InFlight::Entry& entry, const redisReply& reply) {
  Error error = describe(to_text(reply), entry.place, purpose_);
  const Outcome::Kind kind = outcome_kind(to_text(reply));
  if (kind == Outcome::Kind::blocked) stop_taking(error);
  const bool this_stream = parse_code(to_text(reply)) == "WRONGTYPE";
  report({.token = entry.token,
          .kind = kind,
          .scope = this_stream ? Outcome::Scope::partition : Outcome::Scope::all,
          .error = std::move(error)});
}

/// Resolves the events before a WAIT. They were added even if too few replicas have them; sent
/// again, they are found and wait again.
void PipelineSink::confirm(const redisReply& wait) {
  const Status enough =
      check_replicas(wait, options_.wait_replicas, session_.connection->address(), purpose_);
  Outcome outcome{.kind = enough ? Outcome::Kind::acked : Outcome::Kind::unknown};
  if (!enough) {
    stop_taking(enough.error());
    outcome.error = enough.error();
    outcome.error.effect = Effect::unknown;
  }
  for (const Token token : in_flight_.take_added()) {
    outcome.token = token;
    report(outcome);
  }
}

// ---- failing

/// Gives up the connection. The server may have added the events that it received.
void PipelineSink::lose(Error error) {
  if (!session_.connection) return;
  stop_taking(error);
  error.effect = Effect::unknown;
  for (const Token token : in_flight_.take_all())
    report({.token = token, .kind = Outcome::Kind::unknown, .error = error});
  session_.connection->abort();
  drop_connection();
}

void PipelineSink::watch_deadline() {
  if (!session_.connection || in_flight_.empty()) return;
  const auto waited = now_steady() - progress_;
  if (waited <= options_.deadline) return;
  lose(
      fail(
          Errc::deadline_exceeded, Remedy::reconnect,
          fmt::format("{}: {}: no answer for {:.1f} s", purpose_.sink,
                      session_.connection->address(),
                      std::chrono::duration<double>(waited).count()),
          "check the server and the network; does a slow command or script hold it up (SLOWLOG GET)?")
          .value());
}

/// Watches even while nothing is in flight, because the server may close the connection.
void PipelineSink::watch_socket() {
  if (!session_.connection) return;
  watch_.arm(session_.connection->socket(), {.write = session_.connection->unsent() > 0});
}

void PipelineSink::purge() {
  take_answers();
  if (in_flight_.empty()) return;
  lose(fail(Errc::cancelled, Remedy::retry_call, purpose_.sink + ": the relay gave up").value());
}

}  // namespace outbox::sink::hiredis
