// Asks the brokers how many partitions a topic has. librdkafka waits for the answer, so a thread of its own asks: whoever
// sends must not wait for a round trip, or for seconds when no broker answers.
#pragma once

#include <librdkafka/rdkafka.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.hpp"

namespace outbox::sink::kafka {

class PartitionCounts {
 public:
  struct Answer {
    rd_kafka_topic_t* topic{nullptr};
    std::int32_t partitions{0};  ///< 0: the brokers did not say.
  };

  /// `bell` rings on the thread when there is an answer. The topics asked for must outlive this.
  PartitionCounts(rd_kafka_t* handle, std::function<void()> bell);
  PartitionCounts(const PartitionCounts&) = delete;
  PartitionCounts& operator=(const PartitionCounts&) = delete;
  PartitionCounts(PartitionCounts&&) = delete;
  PartitionCounts& operator=(PartitionCounts&&) = delete;
  /// Waits for a question that is under way.
  ~PartitionCounts() = default;

  /// Returns at once.
  void ask(rd_kafka_topic_t* topic);
  /// What was answered since the last call.
  [[nodiscard]] std::vector<Answer> take();
  /// Asks nothing more, and does not ring.
  void silence();

 private:
  void run(const std::stop_token& stop);
  [[nodiscard]] std::int32_t count(rd_kafka_topic_t* topic) const;

  rd_kafka_t* const handle_;
  const std::function<void()> bell_;

  Mutex mutex_;
  std::condition_variable_any asked_;
  std::vector<rd_kafka_topic_t*> questions_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<Answer> answers_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace outbox::sink::kafka
