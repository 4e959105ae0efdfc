#include "sink/kafka/kafka_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "sink/kafka/error_map.hpp"

namespace outbox::sink::kafka {
namespace {

/// After this many single messages without a suspect among them, the suspects are dropped.
constexpr std::size_t kPatience = 10000;
constexpr std::size_t kLeastBatchBytes = 1000;
/// The limit for the reports of messages in flight after a failure, which take a round trip.
constexpr std::chrono::milliseconds kDrainLimit{2000};
/// The limit for the reports after a purge, which the client itself makes.
constexpr std::chrono::milliseconds kPurgeLimit{500};
/// A message older than this many deadlines, while others are delivered, shows a stuck partition.
constexpr int kStuckDeadlines = 6;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::size_t count_bytes(const Message& message) {
  std::size_t bytes = message.body.size() + message.key.value_or("").size();
  for (const HeaderView& header : message.headers)
    bytes += header.name.size() + header.value.size();
  return bytes;
}

Error illegal_name(std::string_view topic) {
  Error error = describe(RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, {});
  error.message = fmt::format("kafka: \"{}\" is not a valid topic name", topic);
  error.hint =
      "letters, digits, '.', '_' and '-', at most 249; see the subscription's topic template";
  return error;
}

Error too_large(const Message& message, std::size_t bytes) {
  Error error = describe(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, message.topic);
  error.message = fmt::format(
      "kafka: topic {}: the event's {} bytes are more than this sink's message.max.bytes",
      message.topic, bytes);
  error.hint = "raise message.max.bytes here, and max.message.bytes of the topic";
  return error;
}

std::int64_t find_seq(const Message& message) {
  return message.event != nullptr ? message.event->seq : static_cast<std::int64_t>(message.token);
}

}  // namespace

KafkaSink::KafkaSink(Conf conf, const KafkaOptions& options)
    : conf_(std::move(conf)), options_(options), suspects_(kPatience) {}

KafkaSink::~KafkaSink() = default;

SinkTraits KafkaSink::traits() const noexcept {
  return {.name = "kafka",
          .gapless = true,
          .max_batch = 1000,
          .max_in_flight = options_.max_in_flight,
          .attribute_prefix = kAttributePrefix};
}

Status KafkaSink::open() {
  if (state_ == State::open) return {};
  give_up_the_rest();
  retired_.reset();
  OUTBOX_TRY(auto client, new_client());
  const auto limit = std::min(options_.delivery_deadline, options_.connect_timeout);
  if (Status reached = client->reach(std::chrono::duration_cast<std::chrono::milliseconds>(limit));
      !reached) {
    return reached;
  }
  use(std::move(client));
  state_ = State::open;
  destination_failed_ = false;
  progress_ = now_steady();
  return {};
}

Result<std::unique_ptr<Client>> KafkaSink::new_client() {
  const Conf conf = conf_for_now();
  return Client::create(*conf, options_.create, *this, [this] { wake(); });
}

void KafkaSink::use(std::unique_ptr<Client> client) {
  client_ = std::move(client);
  first_batches_.clear();
}

/// The configuration of the next client. The broker limits the bytes of a batch, not of a message,
/// so the next batches after a refused one are smaller: if none of its messages is at fault, the
/// topic does not accept batches of that size.
Conf KafkaSink::conf_for_now() {
  Conf conf(rd_kafka_conf_dup(conf_.get()));
  if (const std::size_t refused = suspects_.take_bytes(); refused > 0) {
    if (batch_bytes_ == 0) {
      const std::string size = property(*conf_, "batch.size");
      OUTBOX_CHECK(!size.empty());  // Our own settings always set it.
      batch_bytes_ = std::stoull(size);
    }
    batch_bytes_ = std::max(std::min(batch_bytes_, refused) / 2, kLeastBatchBytes);
    log::info("kafka refused a batch, the next ones are smaller", {{"bytes", batch_bytes_}});
  }
  if (batch_bytes_ > 0)
    OUTBOX_CHECK(!set_property(conf.get(), "batch.size", std::to_string(batch_bytes_)));
  // Single messages have nothing to wait for.
  if (suspects_.any()) OUTBOX_CHECK(!set_property(conf.get(), "linger.ms", "0"));
  return conf;
}

void KafkaSink::close() noexcept {
  give_up_the_rest();
  retired_.reset();
}

// ---- sending

std::size_t KafkaSink::send(std::span<const Message> messages) {
  if (state_ != State::open) return 0;
  // Handles failures that are already reported before sending after them: a topic that was just
  // created again, for instance, would accept the next message.
  take_reports();
  if (state_ != State::open) return 0;
  const std::size_t limit = suspects_.any() ? 1 : options_.max_in_flight;
  if (in_flight_.size() >= limit) return 0;
  const std::size_t room = std::min(messages.size(), limit - in_flight_.size());
  const TimePoint now = now_steady();
  if (in_flight_.size() == 0) progress_ = now;
  in_flight_.begin_batch(now);
  const std::int64_t timestamp = now_ms();
  for (std::size_t i = 0; i < room; ++i) {
    if (!is_topic_name(messages[i].topic)) {
      refuse_unsent(messages[i], illegal_name(messages[i].topic));
      return i + 1;
    }
    if (!make_room(messages[i])) return i;
    const auto place = client_->place(messages[i]);
    if (!place) {
      const TopicRefusal* const refusal = client_->refusal(messages[i].topic);
      if (refusal == nullptr) return i;
      refuse_topic(messages[i], *refusal);
      return i + 1;
    }
    // Without a known partition, which may not know the producer, a message is sent alone.
    const bool anywhere = place->partition == RD_KAFKA_PARTITION_UA;
    if (in_flight_.size() == 0) goes_alone_ = anywhere;
    if (in_flight_.size() > 0 && (anywhere || goes_alone_)) return i;
    if (!anywhere && !first_batches_.may_send(place->number, now)) return i;
    const std::size_t slot = in_flight_.add(messages[i].token, find_seq(messages[i]),
                                            count_bytes(messages[i]), place->number);
    const auto code = client_->produce(messages[i], place->partition, slot, timestamp);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      first_batches_.sent(place->number);
      continue;
    }
    const auto entry = in_flight_.take(slot);
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && in_flight_.size() > 0) return i;
    refuse(messages[i], entry, code);
    return i + 1;
  }
  return room;
}

/// Replaces a client that knows too many topics, once nothing is in flight; does not wait for a
/// broker. Returns false if there is no room yet.
bool KafkaSink::make_room(const Message& message) {
  if (client_->topics() < options_.most_topics || client_->knows(message.topic)) return true;
  if (in_flight_.size() > 0) return false;
  auto made = new_client();
  if (!made) return true;  // The old client goes on.
  client_->silence();
  retired_ = std::exchange(client_, nullptr);
  use(std::move(*made));
  return true;
}

/// Rejects the event. The client never got the message, so the sink goes on; the relay holds back
/// what follows of its key.
void KafkaSink::refuse_unsent(const Message& message, Error error) {
  suspects_.settled(find_seq(message));
  ready_.push_back({.token = message.token,
                    .kind = Outcome::Kind::rejected,
                    .error = std::move(error),
                    .unsent = true});
}

void KafkaSink::refuse_topic(const Message& message, const TopicRefusal& refusal) {
  Error error = describe(refusal.code, {});
  error.message = fmt::format("kafka: topic {} does not exist and could not be made: {}",
                              message.topic, refusal.text);
  // Whether a topic's name collides with another one (a.b, a_b) depends on the event.
  if (refusal.code == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION)
    return refuse_unsent(message, std::move(error));
  ready_.push_back({.token = message.token, .kind = Outcome::Kind::blocked, .error = error});
  stop_taking(std::move(error));
}

/// Settles a message that the client did not accept. Messages sent before it continue; nothing is
/// sent after it unless the event itself is at fault.
void KafkaSink::refuse(const Message& message, const InFlight::Entry& entry,
                       rd_kafka_resp_err_t code) {
  if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
    return refuse_unsent(message, too_large(message, entry.bytes));
  if (find_fault(code) == Fault::none && code != RD_KAFKA_RESP_ERR__QUEUE_FULL)
    return refuse_after_giving_up(message, code);
  Error error = describe(code, message.topic);
  if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
    error.message = "kafka: a single event does not fit into the client's queue";
    error.hint = "raise queue.buffering.max.kbytes";
    destination_failed_ = true;
  }
  const auto kind = judge(code, false, entry, true);
  destination_failed_ = false;
  ready_.push_back({.token = message.token, .kind = kind, .error = error});
  stop_taking(std::move(error));
}

/// Settles a message after a fatal error, whose report says more than this refusal.
void KafkaSink::refuse_after_giving_up(const Message& message, rd_kafka_resp_err_t code) {
  take_reports();
  if (state_ == State::open) {
    stop_taking(make_cause(code, message.topic));
    client_->purge_queued();
  }
  ready_.push_back({.token = message.token,
                    .kind = destination_failed_ ? Outcome::Kind::blocked : Outcome::Kind::retry,
                    .error = reason_});
}

// ---- outcomes

void KafkaSink::delivered(std::size_t slot) {
  const auto entry = in_flight_.take(slot);
  first_batches_.acked(entry.place, now_steady());
  suspects_.settled(entry.seq);
  ready_.push_back({.token = entry.token, .kind = Outcome::Kind::acked});
}

void KafkaSink::failed(std::size_t slot, rd_kafka_resp_err_t code, bool in_doubt,
                       std::string_view topic) {
  const bool alone = in_flight_.size() == 1 && state_ == State::open;
  const auto entry = in_flight_.take(slot);
  first_batches_.not_acked(entry.place);
  if (state_ == State::open) stop_taking(make_cause(code, topic));
  const bool consequence = find_fault(code) == Fault::none;
  Error error = consequence ? reason_ : describe(code, topic);
  error.effect = in_doubt ? Effect::unknown : Effect::none;
  const auto kind = judge(code, in_doubt, entry, alone);
  ready_.push_back({.token = entry.token, .kind = kind, .error = std::move(error)});
}

/// The error behind `code`. The cause of a fatal error is not in the reports of messages.
Error KafkaSink::make_cause(rd_kafka_resp_err_t code, std::string_view topic) {
  if (find_fault(code) != Fault::none) return describe(code, topic);
  client_->fetch_fatal_error();
  if (client_->error_text().empty()) return describe(code, topic);
  destination_failed_ = find_fault(client_->error_code()) == Fault::destination;
  Error error = describe(client_->error_code(), {});
  error.message = "kafka: " + client_->error_text();
  return error;
}

/// `alone` says that no other message can be the cause.
Outcome::Kind KafkaSink::judge(rd_kafka_resp_err_t code, bool in_doubt,
                               const InFlight::Entry& entry, bool alone) {
  if (in_doubt) return Outcome::Kind::unknown;
  switch (find_fault(code)) {
    case Fault::message:
      if (!alone) {
        suspects_.add(entry.seq, is_about_size(code) ? entry.bytes : 0);
        return Outcome::Kind::retry;
      }
      suspects_.settled(entry.seq);
      batch_bytes_ = 0;
      return Outcome::Kind::rejected;
    case Fault::destination: return Outcome::Kind::blocked;
    case Fault::none: break;
  }
  return destination_failed_ ? Outcome::Kind::blocked : Outcome::Kind::retry;
}

void KafkaSink::stop_taking(Error reason) {
  state_ = State::failed;
  reason_ = std::move(reason);
}

void KafkaSink::take_reports() {
  const std::size_t before = ready_.size();
  const State was = state_;
  client_->poll();
  if (ready_.size() > before) {
    progress_ = now_steady();
    client_->forget_error();
  }
  if (was == State::open && state_ == State::failed) client_->purge_queued();
}

void KafkaSink::receive(std::vector<Outcome>& outcomes) {
  if (client_) {
    take_reports();
    if (in_flight_.size() > 0) watch_deadlines(now_steady());
  }
  if (outcomes.empty()) {
    outcomes.swap(ready_);
  } else {
    for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
  }
  ready_.clear();
}

// ---- giving up

void KafkaSink::watch_deadlines(TimePoint now) {
  if (state_ == State::purging) {
    if (now - purged_at_ > kPurgeLimit) give_up_the_rest();
    return;
  }
  const auto limit = state_ == State::open ? options_.delivery_deadline
                                           : std::min<std::chrono::nanoseconds>(
                                                 options_.delivery_deadline, kDrainLimit);
  const bool still = now - progress_ > limit;
  const bool stuck =
      now - in_flight_.oldest().value_or(now) > kStuckDeadlines * options_.delivery_deadline;
  if (!still && !stuck) return;
  if (state_ == State::open) {
    destination_failed_ = true;
    stop_taking(still ? overdue(now - progress_) : left_behind(now - *in_flight_.oldest()));
  }
  state_ = State::purging;
  purged_at_ = now;
  client_->purge_all();
  take_reports();
}

Error KafkaSink::overdue(std::chrono::nanoseconds waited) const {
  Error error = describe(
      client_->error_text().empty() ? RD_KAFKA_RESP_ERR__TIMED_OUT : client_->error_code(), {});
  error.message =
      fmt::format("kafka: no delivery for {:.1f} s", std::chrono::duration<double>(waited).count());
  if (client_->error_text().empty()) {
    error.hint =
        "check the brokers: is a partition without a leader, are fewer replicas in sync than "
        "min.insync.replicas, is the disk full?";
  } else {
    error.message += "; librdkafka: " + client_->error_text();
  }
  return error;
}

Error KafkaSink::left_behind(std::chrono::nanoseconds waited) const {
  Error error = describe(RD_KAFKA_RESP_ERR__TIMED_OUT, {});
  error.message = fmt::format("kafka: an event waits for {:.1f} s while others are delivered",
                              std::chrono::duration<double>(waited).count());
  error.hint =
      "is a partition without a leader? If a quota or the link is slow, lower max_in_flight";
  return error;
}

void KafkaSink::purge() {
  if (!client_) return;
  if (state_ != State::purging) {
    if (state_ == State::open)
      stop_taking(fail(Errc::cancelled, Remedy::retry_call, "kafka: the relay gave up").value());
    state_ = State::purging;
    purged_at_ = now_steady();
    client_->purge_all();
  }
  const TimePoint until = now_steady() + kPurgeLimit;
  while (in_flight_.size() > 0 && now_steady() < until) client_->poll(kPurgeLimit / 10);
  give_up_the_rest();
}

/// Abandons the client. Messages without a report become `unknown`.
void KafkaSink::give_up_the_rest() {
  in_flight_.take_all([this](const InFlight::Entry& entry) {
    Error error = reason_;
    error.effect = Effect::unknown;
    ready_.push_back(
        {.token = entry.token, .kind = Outcome::Kind::unknown, .error = std::move(error)});
  });
  state_ = State::closed;
  if (!client_) return;
  client_->silence();
  retired_ = std::move(client_);
}

}  // namespace outbox::sink::kafka
