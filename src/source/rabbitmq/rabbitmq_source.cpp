#include "source/rabbitmq/rabbitmq_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/steady.hpp"
#include "base/text.hpp"
#include "sink/rabbitmq/error_map.hpp"
#include "sink/rabbitmq/login.hpp"
#include "sink/rabbitmq/table.hpp"

namespace outbox::source::rabbitmq {
namespace {

using namespace std::chrono_literals;
using sink::rabbitmq::kChannel;
using sink::rabbitmq::to_bytes;
using sink::rabbitmq::to_text;

constexpr std::chrono::milliseconds kCloseLimit{5000};
/// Heartbeats are sent at least this often while receive() waits.
constexpr std::chrono::milliseconds kLongestWait{250};

/// What a reply code means for a consumer, if the server's text has these words.
struct Meaning {
  std::uint16_t code;
  std::string_view words;
  const char* hint;
};

constexpr Meaning kMeanings[] = {
    {AMQP_NOT_FOUND, "",
     "create the queue, or correct `read`, which names queues without patterns; the consumer waits for it"},
    {AMQP_ACCESS_REFUSED, "in exclusive use",
     "another consumer reads the queue exclusively: end it, or let it read without"},
    {AMQP_ACCESS_REFUSED, "",
     "give the consumer's user the right to read the queue (rabbitmqctl set_permissions)"},
    {AMQP_RESOURCE_LOCKED, "",
     "the queue is exclusive to the connection that made it: declare it without"},
    {AMQP_PRECONDITION_FAILED, "'x-priority'",
     "the queue is a stream, which this source does not read: bind a quorum queue to the exchange, and read that"},
    {AMQP_PRECONDITION_FAILED, "delivery acknowledgement",
     "the messages were held for longer than the server's consumer_timeout: does the database hang, or is the consumer paused? They come again"},
};

/// Where the server or the connection is at fault.
constexpr const char* kAgain =
    "check the server and its log; what was not acknowledged comes again, and nothing is lost";

std::vector<std::string> distinct(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  }
  return all;
}

Status ready(sink::rabbitmq::Requests& /*requests*/) { return {}; }

}  // namespace

Error explain(std::uint16_t code, std::string_view text, std::string_view address) {
  Error error = sink::rabbitmq::describe(code, text, address);
  const auto* const found =
      std::find_if(std::begin(kMeanings), std::end(kMeanings), [&](const Meaning& meaning) {
        return meaning.code == code && text.find(meaning.words) != std::string_view::npos;
      });
  error.hint = found == std::end(kMeanings) ? kAgain : found->hint;
  return error;
}

RabbitSource::RabbitSource(sink::rabbitmq::RabbitOptions options, const ConsumerSpec& spec)
    : options_(std::move(options)),
      queues_(distinct(spec.read)),
      prefetch_(static_cast<std::uint16_t>(
          std::clamp<std::size_t>(spec.batch, 1, std::numeric_limits<std::uint16_t>::max()))) {}

RabbitSource::~RabbitSource() { RabbitSource::close(); }

// ---- opening and closing

Status RabbitSource::open() {
  close();
  const TimePoint until = now_steady() + options_.plain.connect_timeout;
  OUTBOX_TRY(connection_, sink::rabbitmq::open_connection(options_, until, ready));
  Status started = start_consumers(until);
  if (!started) close();
  return started;
}

/// Deliveries may come before the last consumer is confirmed, so they are taken here too.
Status RabbitSource::start_consumers(TimePoint until) {
  connection_->send(kChannel, AMQP_BASIC_QOS_METHOD,
                    amqp_basic_qos_t{.prefetch_size = 0, .prefetch_count = prefetch_, .global = 0});
  ask_for_counts();
  // Classic and quorum queues have this priority anyway. A stream refuses the argument: otherwise
  // the consumer would begin at its end each time, and miss what comes while it is away.
  amqp_table_entry_t priority{};
  priority.key = to_bytes("x-priority");
  priority.value.kind = AMQP_FIELD_KIND_I32;
  for (const std::string& queue : queues_) {
    amqp_basic_consume_t method{};
    method.queue = to_bytes(queue);
    method.consumer_tag = to_bytes(queue);
    method.arguments = sink::rabbitmq::make_table({&priority, 1});
    connection_->send(kChannel, AMQP_BASIC_CONSUME_METHOD, method);
  }
  starting_ = queues_.size();
  while (starting_ > 0) {
    const auto frame = connection_->wait(until);
    if (!frame) return lose(frame.error());
    OUTBOX_TRY(take(**frame));
  }
  return {};
}

/// Asks whether the queues are there, and how many messages are ready in them. The server closes
/// the channel if one is missing.
void RabbitSource::ask_for_counts() {
  for (const std::string& queue : queues_) {
    amqp_queue_declare_t method{};
    method.queue = to_bytes(queue);
    method.passive = 1;
    connection_->send(kChannel, AMQP_QUEUE_DECLARE_METHOD, method);
  }
  counting_ = queues_.size();
}

/// Closes the connection. The server puts what is not acknowledged back to its places in the queues
/// before it answers, so a consumer that is opened afterwards gets nothing that is behind it first.
void RabbitSource::say_goodbye() {
  const TimePoint until = now_steady() + kCloseLimit;
  connection_->say_goodbye();
  while (true) {
    const auto frame = connection_->wait(until);
    if (!frame) return;
    if ((*frame)->frame_type == AMQP_FRAME_METHOD &&
        (*frame)->payload.method.id == AMQP_CONNECTION_CLOSE_OK_METHOD)
      return;
  }
}

void RabbitSource::close() noexcept {
  if (connection_) {
    if (lost_) {
      connection_->abort();
    } else {
      say_goodbye();
    }
    connection_.reset();
  }
  lost_ = false;
  starting_ = 0;
  counting_ = 0;
  arriving_ = {};
  kept_.clear();
  kept_bytes_ = 0;
  ready_.clear();
}

// ---- receiving

Status RabbitSource::receive(const Wanted& wanted, std::vector<Received>& into) {
  if (!connection_ || lost_)
    return fail(Errc::unavailable, Remedy::reconnect, "rabbitmq: the source is not open", kAgain);
  const TimePoint until = now_steady() + wanted.wait;
  const std::size_t before = into.size();
  while (true) {
    connection_->keep_alive(now_steady());
    OUTBOX_TRY(const bool nothing_arrived, take_frames(wanted));
    hand_over(wanted, into);
    const TimePoint now = now_steady();
    if (into.size() > before || now >= until) return {};
    wait(nothing_arrived, std::min(until, now + kLongestWait));
  }
}

/// Once there is enough, the rest stays in the socket, and in the end at the server.
Result<bool> RabbitSource::take_frames(const Wanted& wanted) {
  const Result<bool> flushed = connection_->flush();
  const std::size_t most =
      wanted.messages == 0 ? std::numeric_limits<std::size_t>::max() : wanted.messages;
  while (kept_.size() < most && kept_bytes_ < wanted.bytes) {
    const auto frame = connection_->next();
    if (!frame) return lose(frame.error());
    if (*frame != nullptr) {
      OUTBOX_TRY(take(**frame));
      continue;
    }
    if (!flushed) return lose(flushed.error());
    if (const Status alive = connection_->check_alive(now_steady()); !alive)
      return lose(alive.error());
    return true;
  }
  return false;
}

void RabbitSource::hand_over(const Wanted& wanted, std::vector<Received>& into) {
  std::size_t bytes = 0;
  for (std::size_t taken = 0; taken < wanted.messages && bytes < wanted.bytes; ++taken) {
    if (kept_.empty()) return;
    bytes += kept_.front().payload.size();
    kept_bytes_ -= kept_.front().payload.size();
    into.push_back(std::move(kept_.front()));
    kept_.pop_front();
  }
}

void RabbitSource::wait(bool nothing_arrived, TimePoint until) {
  if (nothing_arrived) {
    (void)connection_->wait_for_socket(until);
  } else {
    // More may be in the socket, which is not read now.
    std::this_thread::sleep_until(until);
  }
}

// ---- what the server says

Status RabbitSource::take(const amqp_frame_t& frame) {
  switch (frame.frame_type) {
    case AMQP_FRAME_METHOD: return take(frame.payload.method);
    case AMQP_FRAME_HEADER:
      arriving_.add(*static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded),
                    frame.payload.properties.body_size);
      keep_if_complete();
      return {};
    case AMQP_FRAME_BODY:
      arriving_.add(frame.payload.body_fragment);
      keep_if_complete();
      return {};
    default: return {};  // A heartbeat.
  }
}

Status RabbitSource::take(const amqp_method_t& method) {
  switch (method.id) {
    case AMQP_BASIC_DELIVER_METHOD:
      arriving_.begin(*static_cast<const amqp_basic_deliver_t*>(method.decoded));
      return {};
    case AMQP_BASIC_CONSUME_OK_METHOD: --starting_; return {};
    case AMQP_QUEUE_DECLARE_OK_METHOD: {
      const auto& ok = *static_cast<const amqp_queue_declare_ok_t*>(method.decoded);
      ready_[std::string(to_text(ok.queue))] = ok.message_count;
      --counting_;
      return {};
    }
    case AMQP_BASIC_CANCEL_METHOD:
      return cancelled(*static_cast<const amqp_basic_cancel_t*>(method.decoded));
    case AMQP_CHANNEL_CLOSE_METHOD:
      return channel_closed(*static_cast<const amqp_channel_close_t*>(method.decoded));
    case AMQP_CONNECTION_CLOSE_METHOD:
      return connection_closed(*static_cast<const amqp_connection_close_t*>(method.decoded));
    default: return {};
  }
}

void RabbitSource::keep_if_complete() {
  if (!arriving_.complete()) return;
  kept_.push_back(arriving_.take());
  kept_bytes_ += kept_.back().payload.size();
}

Status RabbitSource::cancelled(const amqp_basic_cancel_t& cancel) {
  return fail(
      Errc::not_found, Remedy::reconnect,
      fmt::format(
          "rabbitmq: {}: the server has ended the consumer of queue {}: the queue was deleted, or its server went away",
          connection_->address(), in_quotes(to_text(cancel.consumer_tag))),
      "check the queue, and consumer_timeout of the server; the consumer reads again when the queue is there");
}

Status RabbitSource::channel_closed(const amqp_channel_close_t& close) {
  Error error = explain(close.reply_code, to_text(close.reply_text), connection_->address());
  connection_->send(kChannel, AMQP_CHANNEL_CLOSE_OK_METHOD, amqp_channel_close_ok_t{});
  return fail(std::move(error));
}

Status RabbitSource::connection_closed(const amqp_connection_close_t& close) {
  Error error = explain(close.reply_code, to_text(close.reply_text), connection_->address());
  connection_->send(0, AMQP_CONNECTION_CLOSE_OK_METHOD, amqp_connection_close_ok_t{});
  (void)connection_->flush();
  return lose(std::move(error));
}

tl::unexpected<Error> RabbitSource::lose(Error error) {
  lost_ = true;
  error.effect = Effect::none;
  return fail(std::move(error));
}

// ---- acknowledging

/// The server counts deliveries of all queues together, in the order in which they are handed over.
/// So those that are kept have higher numbers than the batch, and stay unacknowledged.
Status RabbitSource::acknowledge(std::span<const Received> messages) {
  if (messages.empty()) return {};
  if (!connection_ || lost_)
    return fail(Errc::unavailable, Remedy::reconnect, "rabbitmq: the source is not open", kAgain);
  const auto last = std::max_element(
      messages.begin(), messages.end(),
      [](const Received& one, const Received& other) { return one.tag < other.tag; });
  connection_->send(kChannel, AMQP_BASIC_ACK_METHOD,
                    amqp_basic_ack_t{.delivery_tag = last->tag, .multiple = 1});
  // There is no answer. An acknowledgement that is lost makes messages come again, which the inbox
  // recognizes.
  if (const auto flushed = connection_->flush(); !flushed) return lose(flushed.error());
  return {};
}

/// The answers come with the next receive(), so this is what was ready a call before.
std::optional<std::int64_t> RabbitSource::lag() {
  if (!connection_ || lost_) return std::nullopt;
  auto lag = static_cast<std::int64_t>(kept_.size());
  for (const auto& [queue, count] : ready_) lag += count;
  if (counting_ == 0) ask_for_counts();
  return lag;
}

// ---- the kind

namespace {

Result<sink::rabbitmq::RabbitOptions> read_options(const ConsumerSpec& spec) {
  OUTBOX_TRY(const auto settings, read_connection(sink::rabbitmq::declaration(), spec));
  OUTBOX_TRY(auto options, read_valid(sink::rabbitmq::parse_options, settings));
  options.connection_name = "outbox " + spec.name;
  return options;
}

/// Asks for each queue on a connection of its own, since the answer that there is none ends the
/// channel. How long a message stays in a queue that nobody reads does not matter: one that was
/// acknowledged is gone.
Result<Inspection> inspect(const ConsumerSpec& spec) {
  OUTBOX_TRY(const auto options, read_options(spec));
  Inspection found;
  for (const std::string& queue : distinct(spec.read)) {
    auto connection = sink::rabbitmq::open_connection(
        options, now_steady() + options.plain.connect_timeout,
        [&queue](sink::rabbitmq::Requests& requests) {
          amqp_queue_declare_t method{};
          method.queue = to_bytes(queue);
          method.passive = 1;
          return requests.call(AMQP_QUEUE_DECLARE_METHOD, method, AMQP_QUEUE_DECLARE_OK_METHOD);
        });
    if (connection) {
      (*connection)->say_goodbye();
      found.broker = (*connection)->address();
      found.reads.push_back("queue " + queue);
    } else if (connection.error().code == Errc::not_found) {
      found.missing.push_back({connection.error().message,
                               "no message is received; the consumer waits for it",
                               "create the queue, or correct `read`"});
    } else {
      return pass(connection);
    }
  }
  return found;
}

}  // namespace

SourceKind kind() {
  return {
      .name = "rabbitmq",
      .help = "reads queues of RabbitMQ",
      .reads = "queues",
      .of_sending = {"exchange", "unroutable", "declare", "exchange_type", "queue", "queue_type",
                     "binding", "management_url", "deadline", "max_in_flight", "max_message_size"},
      .make = [](const ConsumerSpec& spec) -> Result<std::unique_ptr<Source>> {
        OUTBOX_TRY(auto options, read_options(spec));
        return std::make_unique<RabbitSource>(std::move(options), spec);
      },
      .inspect = inspect};
}

}  // namespace outbox::source::rabbitmq
