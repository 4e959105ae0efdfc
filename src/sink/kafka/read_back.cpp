#include "sink/kafka/read_back.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "format/format.hpp"
#include "format/template.hpp"
#include "sink/kafka/error_map.hpp"

namespace outbox::sink::kafka {
namespace {

using Clock = std::chrono::steady_clock;

/// The properties that reading needs, whatever the sink's settings say. 8 MiB of each partition are
/// fetched ahead, so that the client holds some 64 MiB, however large the topic is. Less is slow: a
/// client with a full queue rests for a second.
constexpr std::pair<const char*, const char*> kReaderSettings[] = {
    {"isolation.level", "read_committed"},  {"enable.partition.eof", "true"},
    {"enable.auto.commit", "false"},        {"enable.auto.offset.store", "false"},
    {"auto.offset.reset", "earliest"},      {"check.crcs", "true"},
    {"queued.max.messages.kbytes", "8192"}, {"fetch.wait.max.ms", "100"},
};
constexpr std::size_t kAtOnce = 8;

constexpr std::chrono::milliseconds kRequestLimit{10'000};
/// When nothing arrives for this long, while something is expected, the brokers are at fault.
constexpr std::chrono::seconds kSilence{30};
constexpr std::chrono::milliseconds kReadPoll{100};

constexpr const char* kRightToRead =
    "give the user of this sink the right to read the topic (ACL: Describe, Read)";

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// When the record was sent. Old brokers may not say; then it might have been just now.
std::int64_t sent_us(const rd_kafka_message_t& message) {
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t sent_ms = rd_kafka_message_timestamp(&message, &type);
  return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? now_us() : sent_ms * 1000;
}

Error read_error(rd_kafka_resp_err_t code, const std::string& topic) {
  Error error = describe(code, topic);
  if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) error.hint = kRightToRead;
  return error;
}

/// Fetches a range of partitions into a queue.
class Fetching {
 public:
  Fetching(rd_kafka_topic_t* topic, rd_kafka_queue_t* queue) : topic_(topic), queue_(queue) {}
  Fetching(const Fetching&) = delete;
  Fetching& operator=(const Fetching&) = delete;
  Fetching(Fetching&&) = delete;
  Fetching& operator=(Fetching&&) = delete;
  ~Fetching() {
    for (const std::int32_t partition : started_) rd_kafka_consume_stop(topic_, partition);
  }

  [[nodiscard]] Status start(std::int32_t partition) {
    if (rd_kafka_consume_start_queue(topic_, partition, RD_KAFKA_OFFSET_BEGINNING, queue_) != 0)
      return fail(read_error(rd_kafka_last_error(), rd_kafka_topic_name(topic_)));
    started_.push_back(partition);
    return {};
  }

 private:
  rd_kafka_topic_t* const topic_;
  rd_kafka_queue_t* const queue_;
  std::vector<std::int32_t> started_;
};

}  // namespace

Result<std::unique_ptr<TopicReader>> TopicReader::open(Conf conf) {
  for (const auto& [name, value] : kReaderSettings)
    OUTBOX_CHECK(!set_property(conf.get(), name, value));
  rd_kafka_conf_set(conf.get(), "group.id", nullptr, nullptr, 0);  // The settings may have one.
  std::unique_ptr<TopicReader> reader(new TopicReader());
  reader->reported_.listen(conf.get());
  OUTBOX_TRY(reader->handle_, make_handle(RD_KAFKA_CONSUMER, std::move(conf), "sink"));
  OUTBOX_TRY(reach(reader->handle_.get(), reader->reported_, kRequestLimit));
  return reader;
}

// ---- which topics there are

TopicHandle TopicReader::open_handle(const std::string& name) const {
  return TopicHandle(rd_kafka_topic_new(handle_.get(), name.c_str(), nullptr));
}

/// Asks about one topic, or about all if `only` is null.
Result<std::vector<TopicPartitions>> TopicReader::ask(rd_kafka_topic_t* only) const {
  const rd_kafka_metadata_t* answer = nullptr;
  const auto code = rd_kafka_metadata(handle_.get(), only == nullptr ? 1 : 0, only, &answer,
                                      static_cast<int>(kRequestLimit.count()));
  const Metadata metadata(answer);
  if (is_missing(code)) return std::vector<TopicPartitions>{};
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(no_broker(reported_, code));
  std::vector<TopicPartitions> topics;
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const rd_kafka_metadata_topic_t& topic = metadata->topics[i];
    if (is_missing(topic.err)) continue;
    topics.push_back({.name = topic.topic, .partitions = topic.partition_cnt, .error = topic.err});
  }
  return topics;
}

Result<std::optional<TopicPartitions>> TopicReader::topic(const std::string& name) const {
  const TopicHandle handle = open_handle(name);
  OUTBOX_TRY(const auto topics, ask(handle.get()));
  return topics.empty() ? std::nullopt : std::optional(topics.front());
}

Result<std::vector<TopicPartitions>> TopicReader::topics() const { return ask(nullptr); }

// ---- reading

Result<std::vector<PartitionRead>> TopicReader::read(const TopicPartitions& topic,
                                                     const Each& each) {
  if (topic.error != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(read_error(topic.error, topic.name));
  std::vector<PartitionRead> partitions;
  for (std::int32_t number = 0; number < topic.partitions; ++number) {
    OUTBOX_TRY(const std::int64_t end, read_end(topic.name, number));
    partitions.emplace_back(end);
  }
  const TopicHandle handle = open_handle(topic.name);
  const std::span<PartitionRead> all(partitions);
  for (std::size_t first = 0; first < all.size(); first += kAtOnce) {
    const Some some{.first = static_cast<std::int32_t>(first),
                    .partitions = all.subspan(first, std::min(kAtOnce, all.size() - first))};
    OUTBOX_TRY(read_some(handle.get(), some, each));
  }
  return partitions;
}

/// The end of what is committed: an open transaction of another producer is not waited for.
Result<std::int64_t> TopicReader::read_end(const std::string& topic, std::int32_t partition) const {
  std::int64_t low = 0;
  std::int64_t high = 0;
  const auto code =
      rd_kafka_query_watermark_offsets(handle_.get(), topic.c_str(), partition, &low, &high,
                                       static_cast<int>(kRequestLimit.count()));
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return high;
  Error error = read_error(code, topic);
  error.message += fmt::format("; the end of partition {} is not known", partition);
  return fail(std::move(error));
}

Status TopicReader::read_some(rd_kafka_topic_t* topic, Some some, const Each& each) {
  const Queue queue(rd_kafka_queue_new(handle_.get()));
  Fetching fetching(topic, queue.get());
  std::size_t left = 0;
  for (std::size_t i = 0; i < some.partitions.size(); ++i) {
    if (some.partitions[i].done()) continue;
    ++left;
    OUTBOX_TRY(fetching.start(some.first + static_cast<std::int32_t>(i)));
  }
  Clock::time_point heard = Clock::now();
  while (left > 0) {
    const MessagePtr message(
        rd_kafka_consume_queue(queue.get(), static_cast<int>(kReadPoll.count())));
    if (!message || message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_poll(handle_.get(), 0);
      if (Clock::now() - heard > kSilence) return fail(silent(rd_kafka_topic_name(topic)));
    }
    if (!message) continue;
    PartitionRead& partition =
        some.partitions[static_cast<std::size_t>(message->partition - some.first)];
    const bool was_done = partition.done();
    OUTBOX_TRY(const bool progress, take(*message, partition, each));
    if (progress) heard = Clock::now();
    if (partition.done() && !was_done) --left;
  }
  return {};
}

/// Returns false for an error that the client itself repairs.
Result<bool> TopicReader::take(const rd_kafka_message_t& message, PartitionRead& partition,
                               const Each& each) const {
  if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (message.offset >= partition.end()) {  // It came after the start.
      partition.at_end(message.offset, sent_us(message));
      return true;
    }
    partition.record(message.offset, sent_us(message));
    each(message);
    return true;
  }
  if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    partition.at_end(message.offset, now_us());
    return true;
  }
  Error error = read_error(message.err, rd_kafka_topic_name(message.rkt));
  if (error.remedy == Remedy::fix) return fail(std::move(error));
  return false;
}

Error TopicReader::silent(const std::string& topic) const {
  Error error = no_broker(reported_, RD_KAFKA_RESP_ERR__TIMED_OUT);
  error.message = fmt::format("kafka: topic {}: nothing arrives for {} s", topic, kSilence.count());
  if (!reported_.text.empty()) error.message += "; librdkafka: " + reported_.text;
  return error;
}

namespace {

/// The beginning of the names of topics in which Kafka keeps its own state.
constexpr std::string_view kInternal = "__";

/// The topics that the template can make, as far as their names tell.
Result<std::vector<TopicPartitions>> list_topics(const TopicReader& reader,
                                                 const format::Template& topic) {
  if (const auto name = topic.fixed()) {
    OUTBOX_TRY(const auto only, reader.topic(*name));
    return only ? std::vector{*only} : std::vector<TopicPartitions>{};
  }
  OUTBOX_TRY(auto topics, reader.topics());
  const auto others = [&](const TopicPartitions& one) {
    return one.name.starts_with(kInternal) || !topic.may_make(one.name);
  };
  topics.erase(std::remove_if(topics.begin(), topics.end(), others), topics.end());
  std::sort(topics.begin(), topics.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return topics;
}

std::optional<EventId> read_id(const rd_kafka_message_t& message, const std::string& header) {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, header.c_str(), &value, &size) !=
          RD_KAFKA_RESP_ERR_NO_ERROR)
    return std::nullopt;
  const auto id = EventId::parse({static_cast<const char*>(value), size});
  return id ? std::optional(*id) : std::nullopt;
}

Result<ReadPart> read_topic(TopicReader& reader, const TopicPartitions& topic,
                            const std::string& header, std::uint32_t number, const TakeId& take) {
  ReadPart part{.name = topic.name};
  OUTBOX_TRY(const auto partitions, reader.read(topic, [&](const rd_kafka_message_t& message) {
    if (const auto id = read_id(message, header)) {
      take(number, *id);
    } else {
      ++part.without_id;
    }
  }));
  for (const PartitionRead& partition : partitions) {
    part.removed += partition.removed();
    part.removed_before_us = std::max(part.removed_before_us, partition.removed_before_us());
  }
  return part;
}

}  // namespace

Result<ReadParts> read_back(const KafkaSettings& settings, const SubscriptionSpec& spec,
                            const TakeId& take) {
  OUTBOX_TRY(Conf conf, read_valid(make_conf, settings));
  OUTBOX_TRY(const format::Template topic, format::Template::compile("topic", spec.topic));
  OUTBOX_TRY(const auto reader, TopicReader::open(std::move(conf)));
  OUTBOX_TRY(const auto topics, list_topics(*reader, topic));
  if (topics.empty()) log::warn("kafka: there is no topic to read back", {{"topic", spec.topic}});
  const std::string header = format::id_header(spec.format, kAttributePrefix);
  ReadParts parts;
  for (const TopicPartitions& one : topics) {
    OUTBOX_TRY(ReadPart part,
               read_topic(*reader, one, header, static_cast<std::uint32_t>(parts.size()), take));
    part.certain = topic.fixed().has_value();
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace outbox::sink::kafka
