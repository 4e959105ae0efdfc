// Reads back what the topics of a subscription hold. See docs/sinks/kafka.md.
#pragma once

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/subscription.hpp>
#include <span>
#include <string>
#include <vector>

#include "sink/kafka/config.hpp"
#include "sink/kafka/reported.hpp"
#include "sink/read_back.hpp"

namespace outbox::sink::kafka {

// ---- How far a partition is read, and what is missing from it: retention removes the oldest
// records, compaction single ones, and the offsets of both remain as holes. Pure.

class PartitionRead {
 public:
  /// Reading stops at `end`, the offset of the next record when it was asked for.
  explicit PartitionRead(std::int64_t end) : end_(end) {}

  /// Notes the record at this offset. What was before it was sent earlier.
  void record(std::int64_t offset, std::int64_t sent_us) {
    hole_before(offset, sent_us);
    next_ = std::max(next_, offset + 1);
  }
  /// Notes that no record is left below this offset.
  void at_end(std::int64_t offset, std::int64_t now_us) {
    hole_before(std::min(offset, end_), now_us);
    next_ = std::max(next_, offset);
  }

  [[nodiscard]] bool done() const { return next_ >= end_; }
  [[nodiscard]] std::int64_t end() const { return end_; }
  /// The number of offsets without a record. Transactions leave such offsets too, so at most this
  /// many records were removed.
  [[nodiscard]] std::int64_t removed() const { return removed_; }
  [[nodiscard]] std::int64_t removed_before_us() const { return removed_before_us_; }

 private:
  void hole_before(std::int64_t offset, std::int64_t sent_us) {
    if (offset <= next_) return;
    removed_ += offset - next_;
    removed_before_us_ = std::max(removed_before_us_, sent_us);
  }

  const std::int64_t end_;
  std::int64_t next_{0};
  std::int64_t removed_{0};
  std::int64_t removed_before_us_{0};
};

// ---- Reading topics from their beginning to their present end, without group and commits

struct TopicPartitions {
  std::string name;
  std::int32_t partitions{0};
  rd_kafka_resp_err_t error{RD_KAFKA_RESP_ERR_NO_ERROR};  ///< Why the topic cannot be read.
};

class TopicReader {
 public:
  /// `conf` is that of the sink, with the same brokers and login.
  [[nodiscard]] static Result<std::unique_ptr<TopicReader>> open(Conf conf);
  TopicReader(const TopicReader&) = delete;
  TopicReader& operator=(const TopicReader&) = delete;
  TopicReader(TopicReader&&) = delete;
  TopicReader& operator=(TopicReader&&) = delete;
  ~TopicReader() = default;

  /// Returns nullopt if there is no such topic.
  [[nodiscard]] Result<std::optional<TopicPartitions>> topic(const std::string& name) const;
  /// The topics that this user may see.
  [[nodiscard]] Result<std::vector<TopicPartitions>> topics() const;

  using Each = std::function<void(const rd_kafka_message_t&)>;
  /// Calls `each` for every record, in order within each partition. Records of transactions that
  /// did not commit are left out.
  [[nodiscard]] Result<std::vector<PartitionRead>> read(const TopicPartitions& topic,
                                                        const Each& each);

 private:
  TopicReader() = default;

  [[nodiscard]] Result<std::vector<TopicPartitions>> ask(rd_kafka_topic_t* only) const;
  [[nodiscard]] TopicHandle open_handle(const std::string& name) const;
  [[nodiscard]] Result<std::int64_t> read_end(const std::string& topic,
                                              std::int32_t partition) const;
  /// Partitions that are read at the same time.
  struct Some {
    std::int32_t first{0};
    std::span<PartitionRead> partitions;
  };
  [[nodiscard]] Status read_some(rd_kafka_topic_t* topic, Some some, const Each& each);
  [[nodiscard]] Result<bool> take(const rd_kafka_message_t& message, PartitionRead& partition,
                                  const Each& each) const;
  [[nodiscard]] Error silent(const std::string& topic) const;

  Reported reported_;
  Handle handle_;
};

[[nodiscard]] Result<ReadParts> read_back(const KafkaSettings& settings,
                                          const SubscriptionSpec& spec, const TakeId& take);

}  // namespace outbox::sink::kafka
