// Asks the brokers for the number of partitions of topics, and makes missing topics if it may.
// librdkafka blocks until the answer, so this has its own thread: send() must not block for a round
// trip, or for seconds when no broker answers.
#pragma once

#include <librdkafka/rdkafka.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "sink/kafka/config.hpp"

namespace outbox::sink::kafka {

// ---- Making a topic

/// Why a topic was not made.
struct TopicRefusal {
  rd_kafka_resp_err_t code{RD_KAFKA_RESP_ERR_NO_ERROR};
  std::string text{};  ///< The broker's text.
};

/// Waits for the broker's answer; nullopt if the topic exists now or the stop was requested.
[[nodiscard]] std::optional<TopicRefusal> make_topic(rd_kafka_t* handle, const char* name,
                                                     const NewTopics& like,
                                                     const std::stop_token& stop);

// ---- Asking how many partitions there are

class PartitionCounts {
 public:
  struct Answer {
    rd_kafka_topic_t* topic{nullptr};
    std::int32_t partitions{0};  ///< 0 if there is no answer or no such topic.
    std::optional<TopicRefusal> refusal{};
  };

  /// `bell` rings on the thread when there is an answer. The topics must outlive this object.
  PartitionCounts(rd_kafka_t* handle, const NewTopics& create, std::function<void()> bell);
  PartitionCounts(const PartitionCounts&) = delete;
  PartitionCounts& operator=(const PartitionCounts&) = delete;
  /// Waits for a request in progress.
  ~PartitionCounts() = default;

  /// Returns at once.
  void ask(rd_kafka_topic_t* topic);
  /// The answers since the last call.
  [[nodiscard]] std::vector<Answer> take();
  /// Stops requests and the bell.
  void silence();

 private:
  void run(const std::stop_token& stop);
  [[nodiscard]] Answer look_up(rd_kafka_topic_t* topic, const std::stop_token& stop);
  [[nodiscard]] std::int32_t wait_for(rd_kafka_topic_t* made, const std::stop_token& stop);
  /// The number of partitions; nullopt if there is no such topic.
  [[nodiscard]] std::optional<std::int32_t> count(rd_kafka_topic_t* topic) const;

  rd_kafka_t* const handle_;
  const NewTopics create_;
  const std::function<void()> bell_;

  Mutex mutex_;
  std::condition_variable_any asked_;
  std::vector<rd_kafka_topic_t*> questions_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<Answer> answers_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace outbox::sink::kafka
