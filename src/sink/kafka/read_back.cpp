#include "sink/kafka/read_back.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "event/format.hpp"
#include "event/template.hpp"
#include "sink/kafka/topic_reader.hpp"

namespace outbox::sink::kafka {
namespace {

/// Kafka keeps its own state in topics with such names.
constexpr std::string_view kInternal = "__";

/// The topics that the template can make, as far as their names tell.
Result<std::vector<TopicPartitions>> topics_of(const TopicReader& reader,
                                               const event::Template& topic) {
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

std::optional<EventId> id_of(const rd_kafka_message_t& message, const std::string& header) {
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
    if (const auto id = id_of(message, header)) {
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
  FieldErrors errors;
  Conf conf = make_conf(settings, errors);
  if (auto status = errors.status(); !status) return pass(status);
  OUTBOX_TRY(const event::Template topic, event::Template::compile("topic", spec.topic));
  OUTBOX_TRY(const auto reader, TopicReader::open(std::move(conf)));
  OUTBOX_TRY(const auto topics, topics_of(*reader, topic));
  if (topics.empty()) log::warn("kafka: there is no topic to read back", {{"topic", spec.topic}});
  const std::string header = event::id_header(spec.format, kAttributePrefix);
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
