#include "sink/rabbitmq/rabbitmq_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "sink/rabbitmq/login.hpp"
#include "sink/rabbitmq/management.hpp"
#include "sink/rabbitmq/table.hpp"

namespace outbox::sink::rabbitmq {
namespace {

/// With more bytes in the buffer, they are written as far as possible before a message is added.
constexpr std::size_t kMostUnsent = std::size_t{256} << 10U;
/// The server's limit of the size is not known, so a message larger than all that it has taken is
/// sent alone: if it makes the server close the channel, no other message is in doubt. A message
/// smaller than this is below every sensible limit.
constexpr std::size_t kSurelySmall = std::size_t{64} << 10U;
/// A message unconfirmed for this many deadlines, while others are confirmed, shows a stuck queue.
constexpr int kStuckDeadlines = 6;
/// After this many single messages without a suspect among them, the suspects are dropped.
constexpr std::size_t kPatience = 10000;

std::size_t find_route(std::string_view exchange, std::string_view routing_key) {
  const std::hash<std::string_view> hash;
  return 31 * hash(exchange) + hash(routing_key);
}

}  // namespace

RabbitSink::RabbitSink(RabbitOptions options)
    : ConnectionSink("rabbitmq"),
      options_(std::move(options)),
      publication_(options_.exchange),
      suspects_(kPatience),
      watch_([this] { wake(); }, std::chrono::milliseconds(options_.heartbeat) / 2) {}

RabbitSink::~RabbitSink() { RabbitSink::close(); }

SinkTraits RabbitSink::traits() const noexcept {
  return {.name = "rabbitmq",
          .gapless = false,
          .max_batch = 1000,
          .max_in_flight = options_.plain.max_in_flight,
          .attribute_prefix = kAttributePrefix};
}

// ---- opening

Status RabbitSink::open() {
  // The connection may have been lost while nothing was sent, or be unblocked again.
  take_frames();
  watch_time();
  if (state_ == State::open) return {};
  // Another connection would be blocked as well, and each would get the same events.
  if (connection_ && blocked_by_)
    return fail(describe_blocked(*blocked_by_, connection_->address()));
  close();
  OUTBOX_TRY(watch_.start());
  const TimePoint until = now_steady() + options_.plain.connect_timeout;
  OUTBOX_TRY(connection_, open_connection(options_, until, [this](Requests& requests) -> Status {
               OUTBOX_TRY(check_topology(requests, options_.topology));
               return requests.confirm_messages();
             }));
  look_at_queue(until);
  warn_about(connection_->address(), weaknesses());
  outstanding_.start_again();
  channel_ = Channel::ready;
  state_ = State::open;
  watch_socket();
  return {};
}

/// Looks at the queue once, although the sink may be opened many times.
void RabbitSink::look_at_queue(TimePoint until) {
  if (queue_weaknesses_ || !options_.management) return;
  const auto answer = ask_about_queue(options_, until);
  auto found = answer ? check_queue(*answer) : tl::unexpected(answer.error());
  if (found) {
    queue_weaknesses_ = std::move(*found);
  } else {
    queue_weaknesses_ = {{"queue " + options_.topology.queue + ": its properties are not known",
                          found.error().message, found.error().hint}};
  }
}

std::vector<Weakness> RabbitSink::weaknesses() const {
  std::vector<Weakness> found = queue_weaknesses_.value_or(std::vector<Weakness>());
  const auto check_clear = [&](const Endpoint& endpoint, const char* clear, const char* hint) {
    if (endpoint.scheme == clear && !endpoint.is_loopback()) found.push_back(in_clear(hint));
  };
  for (const Endpoint& endpoint : options_.endpoints)
    check_clear(endpoint, "amqp", "amqps:// in rabbitmq.url");
  if (options_.management)
    check_clear(*options_.management, "http", "https:// in rabbitmq.management_url");
  if (options_.unroutable == Unroutable::discard) {
    found.push_back({"unroutable = discard", "an event that no queue gets is lost",
                     "leave out rabbitmq.unroutable"});
  }
  return found;
}

Inspection RabbitSink::inspection() const {
  Inspection found{
      .destination = connection_->address(),
      .acked = "the server has confirmed it: a quorum queue has it on most of its disks",
      .duplicates = "after a lost confirmation, a crash of the relay or a takeover",
      .order = "of each key in a queue",
      .weaknesses = weaknesses(),
      // Neither AMQP nor the management API tells the server's own limit.
      .largest = MessageLimit{
          "rabbitmq.max_message_size", static_cast<std::int64_t>(options_.plain.max_message_size),
          "raise rabbitmq.max_message_size, and max_message_size of the server"}};
  if (!options_.management) {
    found.weaknesses.push_back(
        {"the queue's properties are not known",
         "AMQP does not tell whether a queue is durable and keeps its events",
         "rabbitmq.queue and rabbitmq.management_url"});
  }
  return found;
}

void RabbitSink::close() noexcept {
  if (connection_) {
    // What is in the buffer while nothing is outstanding was given up.
    if (outstanding_.empty() && connection_->unsent() == 0) {
      connection_->say_goodbye();
    } else {
      connection_->abort();
    }
  }
  resolve_all(Fault::connection, reason_);
  drop_connection();
  state_ = State::closed;
}

void RabbitSink::drop_connection() noexcept {
  if (!connection_) return;
  watch_.forget(connection_->socket());
  connection_.reset();
  blocked_by_.reset();
}

// ---- sending

void RabbitSink::before_send() {
  if (channel_ != Channel::ready) take_frames();
  if (state_ == State::open && blocked_by_ && outstanding_.empty())
    stop_taking(describe_blocked(*blocked_by_, connection_->address()));
}

std::size_t RabbitSink::take(std::span<const Message> messages) {
  if (outstanding_.empty()) progress_ = now_steady();
  std::size_t taken = 0;
  while (taken < messages.size() && has_room(messages[taken])) add(messages[taken++]);
  write_out();
  watch_socket();
  return taken;
}

bool RabbitSink::has_room(const Message& message) {
  if (state_ != State::open || channel_ != Channel::ready || blocked_by_) return false;
  if (outstanding_.size() >= options_.plain.max_in_flight) return false;
  if (!outstanding_.empty() && (alone_ || must_go_alone(message))) return false;
  if (connection_->unsent() >= kMostUnsent) write_out();
  return state_ == State::open && connection_->unsent() < kMostUnsent;
}

bool RabbitSink::must_go_alone(const Message& message) const {
  const std::size_t size = message.body.size();
  return suspects_.any() || (size > kSurelySmall && size > largest_);
}

void RabbitSink::add(const Message& message) {
  const Result<std::string_view> exchange = publication_.exchange_for(message);
  if (!exchange) return refuse(message, Outcome::Kind::rejected, exchange.error());
  if (auto wrong = find_refusal(message, *exchange, options_.plain.max_message_size))
    return refuse(message, Outcome::Kind::rejected, std::move(*wrong));
  const amqp_basic_publish_t method{.ticket = 0,
                                    .exchange = to_bytes(*exchange),
                                    .routing_key = to_bytes(message.topic),
                                    .mandatory = options_.unroutable != Unroutable::discard ? 1 : 0,
                                    .immediate = 0};
  if (!connection_->publish(method, publication_.properties_for(message), message.body))
    return refuse(message, Outcome::Kind::rejected, too_many_headers(message));
  alone_ = must_go_alone(message);
  const EventView* const event = message.event;
  outstanding_.add({.token = message.token,
                    .seq = event != nullptr ? event->seq : static_cast<std::int64_t>(message.token),
                    .id = event != nullptr ? event->id : EventId{},
                    .route = find_route(*exchange, message.topic),
                    .bytes = message.body.size(),
                    .end = connection_->end(),
                    .sent = now_steady()});
}

/// Writes nothing while the server blocks the connection, because it would not read it.
void RabbitSink::write_out() {
  if (state_ != State::open || blocked_by_) return;
  const Result<bool> wrote = connection_->flush();
  if (wrote) {
    if (*wrote) progress_ = now_steady();
    return;
  }
  // The server may have said why before it closed the connection, and may have confirmed messages.
  take_frames();
  lose(wrote.error());
}

// ---- what the server says

void RabbitSink::advance() {
  take_frames();
  if (state_ == State::open && !blocked_by_) connection_->keep_alive(now_steady());
  write_out();
  watch_time();
  watch_socket();
}

void RabbitSink::take_frames() {
  while (connection_) {
    const Result<const amqp_frame_t*> frame = connection_->next();
    if (!frame) return lose(frame.error());
    if (*frame == nullptr) return;
    take(**frame);
  }
}

void RabbitSink::take(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD) return take(frame.payload.method);
  // A heartbeat, and the body of a returned message, say nothing.
  if (frame.frame_type == AMQP_FRAME_HEADER) end_return(frame);
}

void RabbitSink::take(const amqp_method_t& method) {
  switch (method.id) {
    case AMQP_BASIC_ACK_METHOD: return acked(*static_cast<amqp_basic_ack_t*>(method.decoded));
    case AMQP_BASIC_NACK_METHOD: return nacked(*static_cast<amqp_basic_nack_t*>(method.decoded));
    case AMQP_BASIC_RETURN_METHOD:
      return begin_return(*static_cast<amqp_basic_return_t*>(method.decoded));
    case AMQP_CONNECTION_BLOCKED_METHOD:
      return blocked(to_text(static_cast<amqp_connection_blocked_t*>(method.decoded)->reason));
    case AMQP_CONNECTION_UNBLOCKED_METHOD: return unblocked();
    case AMQP_CHANNEL_CLOSE_METHOD:
      return channel_closed(*static_cast<amqp_channel_close_t*>(method.decoded));
    case AMQP_CONNECTION_CLOSE_METHOD:
      return connection_closed(*static_cast<amqp_connection_close_t*>(method.decoded));
    case AMQP_CHANNEL_OPEN_OK_METHOD:
      channel_ = Channel::asking_for_confirms;
      return connection_->send(kChannel, AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{});
    case AMQP_CONFIRM_SELECT_OK_METHOD: channel_ = Channel::ready; return;
    default: return;
  }
}

void RabbitSink::acked(const amqp_basic_ack_t& ack) {
  progress_ = now_steady();
  outstanding_.settle(ack.delivery_tag, ack.multiple != 0, [this](const auto& entry) {
    largest_ = std::max(largest_, entry.bytes);
    suspects_.settled(entry.seq);
    resolve(entry, Outcome::Kind::acked, {});
  });
}

void RabbitSink::nacked(const amqp_basic_nack_t& nack) {
  progress_ = now_steady();
  outstanding_.settle(nack.delivery_tag, nack.multiple != 0, [this](const auto& entry) {
    largest_ = std::max(largest_, entry.bytes);
    suspects_.settled(entry.seq);
    resolve(entry, Outcome::Kind::blocked, describe_nack(connection_->address()));
  });
}

void RabbitSink::begin_return(const amqp_basic_return_t& method) {
  const std::string_view exchange = to_text(method.exchange);
  const std::string_view routing_key = to_text(method.routing_key);
  return_ = {.error = describe_return(method.reply_code, to_text(method.reply_text), exchange,
                                      routing_key),
             .route = find_route(exchange, routing_key)};
}

/// Finds the returned message by the properties that come with it. The confirmation follows.
void RabbitSink::end_return(const amqp_frame_t& frame) {
  const auto& properties =
      *static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
  const bool has_id = (properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG) != 0;
  const auto id = has_id ? EventId::parse(to_text(properties.message_id)) : EventId{};
  if (!id) return;
  Outstanding::Entry* const entry = outstanding_.find_returned(*id, return_.route);
  if (entry == nullptr) return;  // The message has its outcome.
  entry->returned = true;
  returned_.insert_or_assign(entry->token, return_.error);
}

void RabbitSink::blocked(std::string_view reason) {
  blocked_by_.emplace(reason);
  connection_->expect_silence(true);
  log::warn("rabbitmq: the server takes no messages now",
            {{"address", connection_->address()}, {"reason", *blocked_by_}});
}

void RabbitSink::unblocked() {
  blocked_by_.reset();
  connection_->expect_silence(false);
  progress_ = now_steady();
  log::info("rabbitmq: the server takes messages again", {{"address", connection_->address()}});
}

// ---- the server closes the channel or the connection

void RabbitSink::channel_closed(const amqp_channel_close_t& close) {
  const Error reason =
      describe(close.reply_code, to_text(close.reply_text), connection_->address());
  const Fault fault = find_fault(close.reply_code);
  connection_->send(kChannel, AMQP_CHANNEL_CLOSE_OK_METHOD, amqp_channel_close_ok_t{});
  resolve_all(fault, reason);
  if (fault == Fault::message) return open_channel_again();
  stop_taking(reason);
  connection_->say_goodbye();
  drop_connection();
}

/// What is buffered goes to the closed channel: the server discards it until it reads our answer.
void RabbitSink::open_channel_again() {
  outstanding_.start_again();
  channel_ = Channel::opening;
  progress_ = now_steady();
  connection_->send(kChannel, AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t{});
}

void RabbitSink::connection_closed(const amqp_connection_close_t& close) {
  const Error reason =
      describe(close.reply_code, to_text(close.reply_text), connection_->address());
  connection_->send(0, AMQP_CONNECTION_CLOSE_OK_METHOD, amqp_connection_close_ok_t{});
  (void)connection_->flush();
  resolve_all(find_fault(close.reply_code), reason);
  stop_taking(reason);
  drop_connection();
}

// ---- failing

void RabbitSink::lose(const Error& reason) {
  if (!connection_) return;
  resolve_all(Fault::connection, reason);
  stop_taking(reason);
  connection_->abort();
  drop_connection();
}

/// Resolves all messages. One that the socket has not taken to its end cannot have been processed;
/// the others are in doubt. A single outstanding one caused the close; several are sent alone next
/// time.
void RabbitSink::resolve_all(Fault fault, const Error& reason) {
  const bool alone = outstanding_.size() == 1;
  const std::uint64_t taken = connection_ ? connection_->taken() : 0;
  using enum Outcome::Kind;
  if (fault == Fault::message) largest_ = 0;
  outstanding_.take_all([&](const Outstanding::Entry& entry) {
    const bool sent = entry.end <= taken;
    if (fault != Fault::connection && !alone) suspects_.add(entry.seq, entry.bytes);
    switch (fault) {
      case Fault::message:
        if (alone) suspects_.settled(entry.seq);
        return resolve(entry, alone ? rejected : sent ? unknown : retry, reason);
      case Fault::destination: return resolve(entry, sent && !alone ? unknown : blocked, reason);
      case Fault::connection: return resolve(entry, sent ? unknown : retry, reason);
    }
  });
}

void RabbitSink::resolve(const Outstanding::Entry& entry, Outcome::Kind kind, const Error& reason) {
  Outcome outcome{.token = entry.token, .kind = kind, .error = reason};
  if (kind == Outcome::Kind::unknown) outcome.error.effect = Effect::unknown;
  if (kind == Outcome::Kind::retry) outcome.error.effect = Effect::none;
  // Whatever the confirmation after a return says, no queue has the message.
  if (const auto returned = returned_.extract(entry.token); returned) {
    outcome.kind = options_.unroutable == Unroutable::reject ? Outcome::Kind::rejected
                                                             : Outcome::Kind::blocked;
    outcome.scope = Outcome::Scope::partition;
    outcome.error = std::move(returned.mapped());
  }
  report(std::move(outcome));
}

void RabbitSink::watch_time() {
  if (!connection_) return;
  const TimePoint now = now_steady();
  if (const Status alive = connection_->check_alive(now); !alive) return lose(alive.error());
  if (outstanding_.empty() && channel_ == Channel::ready) return;
  if (now - progress_ > options_.plain.deadline) {
    if (blocked_by_) return give_up_while_blocked();
    return lose(overdue(now - progress_));
  }
  outstanding_.take_older(now - kStuckDeadlines * options_.plain.deadline, [&](const auto& entry) {
    resolve(entry, Outcome::Kind::unknown, overdue(now - entry.sent));
  });
}

/// Keeps the connection, without writing to it, to learn when the server takes messages again.
void RabbitSink::give_up_while_blocked() {
  const Error reason = describe_blocked(*blocked_by_, connection_->address());
  outstanding_.take_all([&](const Outstanding::Entry& entry) {
    const bool sent = entry.end <= connection_->taken();
    resolve(entry, sent ? Outcome::Kind::unknown : Outcome::Kind::blocked, reason);
  });
  stop_taking(reason);
}

Error RabbitSink::overdue(std::chrono::nanoseconds waited) const {
  Error error = connection_->failed(
      Errc::deadline_exceeded,
      fmt::format("no confirmation for {:.1f} s", std::chrono::duration<double>(waited).count()));
  error.hint = "check the server and the network; has a quorum queue lost its majority?";
  return error;
}

/// Watches even while nothing is in flight, because the server may close the connection.
void RabbitSink::watch_socket() {
  if (!connection_) return;
  const bool writes = state_ == State::open && !blocked_by_ && connection_->unsent() > 0;
  watch_.arm(connection_->socket(), {.write = writes});
}

void RabbitSink::purge() {
  take_frames();
  if (!connection_ || outstanding_.empty()) return;
  lose(fail(Errc::cancelled, Remedy::retry_call, "rabbitmq: the relay gave up").value());
}

}  // namespace outbox::sink::rabbitmq
