// Reads topics from their beginning to where they end now. Belongs to no consumer group, and commits nothing.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "sink/kafka/config.hpp"
#include "sink/kafka/partition_read.hpp"
#include "sink/kafka/reported.hpp"

namespace outbox::sink::kafka {

struct TopicPartitions {
  std::string name;
  std::int32_t partitions{0};
  rd_kafka_resp_err_t error{RD_KAFKA_RESP_ERR_NO_ERROR};  ///< It cannot be read.
};

class TopicReader {
 public:
  /// `conf` is that of the sink: the same brokers, the same login.
  [[nodiscard]] static Result<std::unique_ptr<TopicReader>> open(Conf conf);
  TopicReader(const TopicReader&) = delete;
  TopicReader& operator=(const TopicReader&) = delete;
  TopicReader(TopicReader&&) = delete;
  TopicReader& operator=(TopicReader&&) = delete;
  ~TopicReader() = default;

  /// None: there is no such topic.
  [[nodiscard]] Result<std::optional<TopicPartitions>> topic(const std::string& name) const;
  /// Those that this user may see.
  [[nodiscard]] Result<std::vector<TopicPartitions>> topics() const;

  using Each = std::function<void(const rd_kafka_message_t&)>;
  /// Hands every record to `each`, in order within each partition. Records of transactions that did not commit are left out.
  [[nodiscard]] Result<std::vector<PartitionRead>> read(const TopicPartitions& topic,
                                                        const Each& each);

 private:
  using Topic = std::unique_ptr<rd_kafka_topic_t, TopicDelete>;

  TopicReader() = default;
  static void on_error(rd_kafka_t* handle, int code, const char* reason, void* opaque);

  [[nodiscard]] Result<std::vector<TopicPartitions>> ask(rd_kafka_topic_t* only) const;
  [[nodiscard]] Topic handle_of(const std::string& name) const;
  [[nodiscard]] Result<std::int64_t> end_of(const std::string& topic, std::int32_t partition) const;
  /// Partitions that are read at once.
  struct Some {
    std::int32_t first{0};
    std::span<PartitionRead> partitions;
  };
  [[nodiscard]] Status read_some(rd_kafka_topic_t* topic, Some some, const Each& each);
  [[nodiscard]] Result<bool> take(const rd_kafka_message_t& message, PartitionRead& partition,
                                  const Each& each) const;
  [[nodiscard]] Error silent(const std::string& topic) const;

  Reported reported_;
  std::unique_ptr<rd_kafka_t, HandleDelete> handle_;
};

}  // namespace outbox::sink::kafka
