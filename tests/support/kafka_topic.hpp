// A topic of the test's own: made, read back from the beginning, deleted.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/ledger.hpp"

struct rd_kafka_s;

namespace outbox::test {

class KafkaTopic {
 public:
  KafkaTopic(std::string brokers, int partitions,
             const std::map<std::string, std::string>& settings = {});
  KafkaTopic(const KafkaTopic&) = delete;
  KafkaTopic& operator=(const KafkaTopic&) = delete;
  KafkaTopic(KafkaTopic&&) = delete;
  KafkaTopic& operator=(KafkaTopic&&) = delete;
  ~KafkaTopic();

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Changes a setting of the topic and waits until the broker says so.
  void set(const std::string& setting, const std::string& value);
  /// Everything on it now. Partition by partition, each in the order of its offsets: the messages of a key are in order.
  [[nodiscard]] std::vector<Delivery> all() const;
  /// How many messages there are now; 0 while the broker does not answer.
  [[nodiscard]] std::size_t count() const;

 private:
  const std::string brokers_;
  const std::string name_;
  const int partitions_;
};

}  // namespace outbox::test
