// The real broker as the tests use it: topics of their own, and what is on them, read back with a consumer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/sink/load.hpp"

namespace outbox::test {

/// host:port of the broker the tests may use; nothing when there is none.
[[nodiscard]] std::optional<std::string> kafka_brokers();

using TopicConfig = std::map<std::string, std::string>;

/// A topic with a name of its own, deleted at the end.
class KafkaTopic {
 public:
  explicit KafkaTopic(int partitions, const TopicConfig& config = {});
  /// Only the name; create() makes it.
  KafkaTopic();
  KafkaTopic(const KafkaTopic&) = delete;
  KafkaTopic& operator=(const KafkaTopic&) = delete;
  ~KafkaTopic();

  void create(int partitions, const TopicConfig& config = {});
  void change(const TopicConfig& config) const;

  [[nodiscard]] const std::string& name() const { return name_; }

  struct Record {
    std::int32_t partition{0};
    std::optional<std::string> key;
    std::optional<std::string> value;
    std::map<std::string, std::string> headers;
  };
  /// Everything on it, partition after partition.
  [[nodiscard]] std::vector<Record> read() const;
  /// The same as the conformance suite wants it.
  [[nodiscard]] std::vector<Arrived> arrived() const;

 private:
  void wait_until_known() const;

  std::string name_;
  int partitions_{0};
};

}  // namespace outbox::test
