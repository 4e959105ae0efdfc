#include "sink/kafka/partition_counts.hpp"

#include <chrono>
#include <utility>

#include "base/thread.hpp"

namespace outbox::sink::kafka {
namespace {

constexpr std::chrono::milliseconds kAskLimit{3000};

}  // namespace

PartitionCounts::PartitionCounts(rd_kafka_t* handle, std::function<void()> bell)
    : handle_(handle), bell_(std::move(bell)) {
  thread_ = start_thread("ob-kafka-ask", [this](const std::stop_token& stop) { run(stop); });
}

void PartitionCounts::ask(rd_kafka_topic_t* topic) {
  {
    const MutexLock lock(mutex_);
    questions_.push_back(topic);
  }
  asked_.notify_one();
}

std::vector<PartitionCounts::Answer> PartitionCounts::take() {
  const MutexLock lock(mutex_);
  return std::exchange(answers_, {});
}

void PartitionCounts::silence() { thread_.request_stop(); }

void PartitionCounts::run(const std::stop_token& stop) {
  while (true) {
    std::vector<rd_kafka_topic_t*> questions;
    {
      const MutexLock lock(mutex_);
      const auto some = [this]() OUTBOX_REQUIRES(mutex_) { return !questions_.empty(); };
      if (!asked_.wait(mutex_, stop, some)) return;
      questions.swap(questions_);
    }
    for (rd_kafka_topic_t* topic : questions) {
      const Answer answer{.topic = topic, .partitions = count(topic)};
      if (stop.stop_requested()) return;
      {
        const MutexLock lock(mutex_);
        answers_.push_back(answer);
      }
      bell_();
    }
  }
}

std::int32_t PartitionCounts::count(rd_kafka_topic_t* topic) const {
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto code =
      rd_kafka_metadata(handle_, 0, topic, &metadata, static_cast<int>(kAskLimit.count()));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return 0;
  const std::int32_t count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
  rd_kafka_metadata_destroy(metadata);
  return count;
}

}  // namespace outbox::sink::kafka
