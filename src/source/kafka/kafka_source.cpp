#include "source/kafka/kafka_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "event/time_text.hpp"
#include "sink/kafka/error_map.hpp"

namespace outbox::source::kafka {
namespace {

using namespace std::chrono_literals;

/// What a consumer needs whatever the settings say. Messages of aborted transactions are not read.
/// The client commits only the offsets that acknowledge() stored. It does so by itself, because it
/// alone knows when a rebalance is under way: a commit that reaches the broker during one is
/// answered with ILLEGAL_GENERATION, upon which librdkafka before 2.10.0 gives up all partitions
/// and joins anew (librdkafka issue 4059). 8 MiB of messages are fetched ahead: with less a client
/// whose queue is full, and which then rests for a second, has nothing left.
constexpr std::pair<const char*, const char*> kConsumerSettings[] = {
    {"isolation.level", "read_committed"},
    {"enable.auto.commit", "true"},
    {"auto.commit.interval.ms", "500"},
    {"enable.auto.offset.store", "false"},
    {"enable.partition.eof", "false"},
    // Also for start = "latest", which find_positions() sees to: if what comes next was removed,
    // the client would leave out what is still there.
    {"auto.offset.reset", "earliest"},
    {"queued.max.messages.kbytes", "8192"},
    {"queued.min.messages", "100000"},
    {"fetch.wait.max.ms", "500"},
    {"check.crcs", "true"},
    // A new topic or partition is found within this time.
    {"topic.metadata.refresh.interval.ms", "30000"},
};

/// A rebalance moves only the partitions that change their member. Before 2.3.0 this assignor ends
/// the process with a failed assertion when a member leaves before its first assignment
/// (librdkafka issue 4312), so that an older client gives all partitions back and gets new ones.
const char* assignor() {
  constexpr int kCooperativeIsSafe = 0x020300ff;
  return rd_kafka_version() >= kCooperativeIsSafe ? "cooperative-sticky" : "range,roundrobin";
}

/// Unless the settings say otherwise. The group waits for a member that was killed for as long as
/// the session lasts, and gives its partitions to nobody meanwhile; the client's own default is
/// 45 s.
std::array<std::pair<const char*, const char*>, 2> consumer_defaults() {
  return {{{"session.timeout.ms", "10000"}, {"partition.assignment.strategy", assignor()}}};
}

constexpr std::chrono::milliseconds kCloseLimit{5000};
constexpr int kAnswerMs = 5000;
/// How often the broker is asked where a partition begins that has gaps.
constexpr std::chrono::seconds kAskEvery{10};

std::string_view bytes(const void* data, std::size_t size) {
  return data == nullptr ? std::string_view()
                         : std::string_view(static_cast<const char*>(data), size);
}

std::vector<Header> read_headers(const rd_kafka_message_t& message) {
  std::vector<Header> headers;
  rd_kafka_headers_t* all = nullptr;
  if (rd_kafka_message_headers(&message, &all) != RD_KAFKA_RESP_ERR_NO_ERROR) return headers;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(all, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    headers.emplace_back(name, bytes(value, size));
  return headers;
}

std::optional<Timestamp> sent_at(const rd_kafka_message_t& message) {
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t ms = rd_kafka_message_timestamp(&message, &type);
  if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || !event::is_time(ms * 1000)) return std::nullopt;
  return event::timestamp(ms * 1000);
}

std::string join_names(const rd_kafka_topic_partition_list_t& partitions) {
  std::string names;
  for (int i = 0; i < partitions.cnt; ++i)
    names += fmt::format("{}{}/{}", i == 0 ? "" : " ", partitions.elems[i].topic,
                         partitions.elems[i].partition);
  return names;
}

}  // namespace

std::string subscription_name(std::string_view topic) {
  if (topic.find_first_of("*?") == std::string_view::npos) return std::string(topic);
  std::string pattern = "^";
  for (const char c : topic) {
    if (c == '*') {
      pattern += ".*";
    } else if (c == '?') {
      pattern += '.';
    } else {
      if (c == '.' || c == '-') pattern += '\\';
      pattern += c;
    }
  }
  return pattern + "$";
}

KafkaSource::KafkaSource(sink::kafka::KafkaSettings settings, ConsumerSpec spec)
    : settings_(std::move(settings)), spec_(std::move(spec)) {}

KafkaSource::~KafkaSource() { close(); }

void KafkaSource::on_error(rd_kafka_t* handle, int code, const char* reason, void* opaque) {
  static_cast<KafkaSource*>(opaque)->reported_.take(handle, code, reason);
}

void KafkaSource::on_rebalance(rd_kafka_t* /*handle*/, rd_kafka_resp_err_t code,
                               rd_kafka_topic_partition_list_t* partitions, void* opaque) {
  static_cast<KafkaSource*>(opaque)->rebalance(code, partitions);
}

// ---- opening and closing

Status KafkaSource::open() {
  close();
  OUTBOX_TRY(sink::kafka::Conf conf, read_valid(sink::kafka::make_conf, settings_));
  for (const auto& [name, value] : kConsumerSettings)
    OUTBOX_CHECK(!sink::kafka::set_property(conf.get(), name, value));
  for (const auto& [name, value] : consumer_defaults()) {
    if (!settings_.properties.contains(name))
      OUTBOX_CHECK(!sink::kafka::set_property(conf.get(), name, value));
  }
  const std::string group = spec_.group.empty() ? spec_.name : spec_.group;
  if (const auto wrong = sink::kafka::set_property(conf.get(), "group.id", group))
    return tl::unexpected(wrong->error());
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  rd_kafka_conf_set_rebalance_cb(conf.get(), on_rebalance);
  OUTBOX_TRY(handle_, sink::kafka::make_handle(RD_KAFKA_CONSUMER, std::move(conf), "consumer"));
  reported_ = {};
  OUTBOX_TRY(sink::kafka::reach(handle_.get(), reported_, settings_.connect_timeout));
  rd_kafka_poll_set_consumer(handle_.get());
  return subscribe();
}

Status KafkaSource::subscribe() {
  const List topics(rd_kafka_topic_partition_list_new(static_cast<int>(spec_.read.size())));
  for (const std::string& topic : spec_.read)
    rd_kafka_topic_partition_list_add(topics.get(), subscription_name(topic).c_str(),
                                      RD_KAFKA_PARTITION_UA);
  const auto code = rd_kafka_subscribe(handle_.get(), topics.get());
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return fail(sink::kafka::describe(code, spec_.read.front()));
}

/// What is not acknowledged is read again by whoever gets the partition.
void KafkaSource::close() noexcept {
  if (handle_) leave();
  handle_.reset();
  paused_ = false;
  next_.clear();
  unanswered_.reset();
}

/// Commits the offsets that are stored and gives the partitions back, which runs rebalance().
void KafkaSource::leave() {
  // Must be gone before the client is: the messages in it keep the client's threads alive.
  const sink::kafka::Queue queue(rd_kafka_queue_new(handle_.get()));
  if (rd_kafka_error_t* const error = rd_kafka_consumer_close_queue(handle_.get(), queue.get())) {
    rd_kafka_error_destroy(error);
    return;
  }
  // The group may not answer, since its broker may be gone.
  const auto until = now_steady() + kCloseLimit;
  while (rd_kafka_consumer_closed(handle_.get()) == 0 && now_steady() < until) {
    rd_kafka_event_t* const event = rd_kafka_queue_poll(queue.get(), 100);
    if (event == nullptr) continue;
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
      rebalance(rd_kafka_event_error(event), rd_kafka_event_topic_partition_list(event));
    rd_kafka_event_destroy(event);
  }
}

// ---- partitions

void KafkaSource::rebalance(rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t* partitions) {
  const std::string changed = join_names(*partitions);
  std::string wrong;
  if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    find_positions(*partitions);
    wrong = assign(partitions, true);
    if (paused_) (void)rd_kafka_pause_partitions(handle_.get(), partitions);
    log::info("the consumer got partitions", {{"consumer", spec_.name}, {"partitions", changed}});
  } else {
    // Whoever gets them begins where the last commit was. Messages that this consumer has received
    // and not written yet are written twice then, and in the same order.
    const bool lost = rd_kafka_assignment_lost(handle_.get()) != 0;
    for (int i = 0; i < partitions->cnt; ++i)
      next_[partitions->elems[i].topic].erase(partitions->elems[i].partition);
    wrong = assign(partitions, false);
    if (lost) {
      log::warn("the group has given this consumer's partitions to others",
                {{"consumer", spec_.name}, {"partitions", changed}});
    } else {
      log::info("the consumer gave partitions back",
                {{"consumer", spec_.name}, {"partitions", changed}});
    }
  }
  if (wrong.empty()) return;
  log::warn("the consumer's partitions could not be changed",
            {{"consumer", spec_.name}, {"reason", wrong}});
}

/// Learns which messages come next, and sets the position in partitions in which the group has
/// none.
void KafkaSource::find_positions(rd_kafka_topic_partition_list_t& partitions) {
  const List committed(rd_kafka_topic_partition_list_copy(&partitions));
  const auto code = rd_kafka_committed(handle_.get(), committed.get(), kAnswerMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    // Without an answer messages of a new group would be read which it does not want.
    unanswered_ = sink::kafka::describe(code, {});
    return;
  }
  for (int i = 0; i < committed->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = committed->elems[i];
    next_[one.topic].erase(one.partition);
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      unanswered_ = sink::kafka::describe(one.err, one.topic);
    } else if (one.offset >= 0) {
      next_[one.topic][one.partition] = {.offset = one.offset};
    } else if (spec_.start == ConsumeFrom::latest) {
      rd_kafka_topic_partition_list_set_offset(&partitions, one.topic, one.partition,
                                               RD_KAFKA_OFFSET_END);
    }
  }
}

/// Returns what went wrong.
std::string KafkaSource::assign(rd_kafka_topic_partition_list_t* partitions, bool more) {
  const std::string_view protocol = rd_kafka_rebalance_protocol(handle_.get());
  if (protocol != "COOPERATIVE") {
    const auto code = rd_kafka_assign(handle_.get(), more ? partitions : nullptr);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ? "" : rd_kafka_err2str(code);
  }
  rd_kafka_error_t* const error = more ? rd_kafka_incremental_assign(handle_.get(), partitions)
                                       : rd_kafka_incremental_unassign(handle_.get(), partitions);
  if (error == nullptr) return {};
  std::string reason = rd_kafka_error_string(error);
  rd_kafka_error_destroy(error);
  return reason;
}

KafkaSource::List KafkaSource::assignment() const {
  rd_kafka_topic_partition_list_t* list = nullptr;
  if (rd_kafka_assignment(handle_.get(), &list) != RD_KAFKA_RESP_ERR_NO_ERROR) return nullptr;
  return List(list);
}

Status KafkaSource::pause(bool pause) {
  if (pause == paused_) return {};
  paused_ = pause;
  const List partitions = assignment();
  if (!partitions || partitions->cnt == 0) return {};
  const auto code = pause ? rd_kafka_pause_partitions(handle_.get(), partitions.get())
                          : rd_kafka_resume_partitions(handle_.get(), partitions.get());
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return fail(sink::kafka::describe(code, {}));
}

// ---- messages

Status KafkaSource::receive(const Wanted& wanted, std::vector<Received>& into) {
  OUTBOX_TRY(pause(wanted.messages == 0));
  std::size_t taken = 0;
  std::size_t bytes = 0;
  auto wait = static_cast<int>(wanted.wait.count());
  // A paused source still gets what the client had taken from its queue already.
  while (taken < std::max<std::size_t>(wanted.messages, 1) && bytes < wanted.bytes) {
    const sink::kafka::MessagePtr message(rd_kafka_consumer_poll(handle_.get(), wait));
    if (unanswered_) return fail(*std::exchange(unanswered_, std::nullopt));
    if (!message) break;
    wait = 0;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      OUTBOX_TRY(judge(*message));
      continue;
    }
    OUTBOX_TRY(take(*message, into));
    ++taken;
    bytes += into.back().payload.size();
  }
  return {};
}

Status KafkaSource::take(const rd_kafka_message_t& message, std::vector<Received>& into) {
  const std::string topic = rd_kafka_topic_name(message.rkt);
  look_for_gap(topic, message);
  into.push_back({.payload = std::string(bytes(message.payload, message.len)),
                  .headers = read_headers(message),
                  .place = fmt::format("{}/{}/{}", topic, message.partition, message.offset),
                  .channel = topic,
                  .key = std::string(bytes(message.key, message.key_len)),
                  .sent_at = sent_at(message),
                  .tag = static_cast<std::uint64_t>(message.offset),
                  .part = message.partition});
  reported_.text.clear();
  return {};
}

/// Says if messages were removed before they were read. Compaction and transactions leave gaps,
/// too, but the partition does not begin behind those.
void KafkaSource::look_for_gap(const std::string& topic, const rd_kafka_message_t& message) {
  Next& next = next_[topic][message.partition];
  const std::int64_t expected = std::exchange(next.offset, message.offset + 1);
  if (expected == kUnknown || message.offset == expected) return;
  if (message.offset < expected) {
    log::warn("the topic ended before the consumer's position, the consumer reads it anew",
              {{"consumer", spec_.name},
               {"partition", fmt::format("{}/{}", topic, message.partition)},
               {"position", expected}});
    return;
  }
  const auto now = now_steady();
  if (now - next.asked_at < kAskEvery) return;
  next.asked_at = now;
  std::int64_t low = 0;
  std::int64_t high = 0;
  if (rd_kafka_query_watermark_offsets(handle_.get(), topic.c_str(), message.partition, &low, &high,
                                       kAnswerMs) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      low <= expected)
    return;
  log::error("messages were removed from the topic before the consumer had read them",
             {{"consumer", spec_.name},
              {"partition", fmt::format("{}/{}", topic, message.partition)},
              {"messages", std::min(low, message.offset) - expected}});
}

/// Returns an error for what the client does not repair itself.
Status KafkaSource::judge(const rd_kafka_message_t& message) {
  const std::string topic =
      message.rkt != nullptr ? rd_kafka_topic_name(message.rkt) : spec_.read.front();
  if (sink::kafka::is_missing(message.err)) {
    log::warn("a topic does not exist, the consumer waits for it",
              {{"consumer", spec_.name}, {"topic", topic}});
    return {};
  }
  Error error = sink::kafka::describe(message.err, topic);
  if (message.payload != nullptr && message.len > 0)
    error.message += "; librdkafka: " + std::string(bytes(message.payload, message.len));
  return fail(std::move(error));
}

Status KafkaSource::acknowledge(std::span<const Received> messages) {
  std::map<std::pair<std::string, std::int32_t>, std::int64_t> ends;
  for (const Received& message : messages)
    ends[{message.channel, message.part}] = static_cast<std::int64_t>(message.tag) + 1;
  const List offsets(rd_kafka_topic_partition_list_new(static_cast<int>(ends.size())));
  for (const auto& [partition, end] : ends)
    rd_kafka_topic_partition_list_add(offsets.get(), partition.first.c_str(), partition.second)
        ->offset = end;
  // A partition that has another member by now is refused, and its offset is left to that member.
  const auto code = rd_kafka_offsets_store(handle_.get(), offsets.get());
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR__STATE ||
      code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
    return {};
  return fail(sink::kafka::describe(code, {}));
}

std::optional<std::int64_t> KafkaSource::lag() {
  if (!handle_) return std::nullopt;
  const List partitions = assignment();
  if (!partitions) return std::nullopt;
  std::int64_t lag = 0;
  if (rd_kafka_position(handle_.get(), partitions.get()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return std::nullopt;
  for (int i = 0; i < partitions->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = partitions->elems[i];
    std::int64_t low = 0;
    std::int64_t high = 0;
    // What the client knows from its last fetch.
    if (rd_kafka_get_watermark_offsets(handle_.get(), one.topic, one.partition, &low, &high) !=
            RD_KAFKA_RESP_ERR_NO_ERROR ||
        high < 0)
      continue;
    const std::int64_t position = one.offset >= 0 ? one.offset : low;
    lag += std::max<std::int64_t>(high - position, 0);
  }
  return lag;
}

SourceKind kind() {
  return {.name = "kafka",
          .help = "reads topics of Apache Kafka as a member of a consumer group",
          .reads = "topics",
          .of_sending = {"linger", "delivery_deadline", "max_in_flight", "create.partitions",
                         "create.replication"},
          .make = [](const ConsumerSpec& spec) -> Result<std::unique_ptr<Source>> {
            OUTBOX_TRY(auto settings, read_connection(sink::kafka::declaration(), spec));
            return std::make_unique<KafkaSource>(std::move(settings), spec);
          },
          .inspect = [](const ConsumerSpec& spec) -> Result<Inspection> {
            OUTBOX_TRY(const auto settings, read_connection(sink::kafka::declaration(), spec));
            return inspect(settings, spec);
          }};
}

}  // namespace outbox::source::kafka
