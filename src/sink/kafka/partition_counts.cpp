#include "sink/kafka/partition_counts.hpp"

#include <chrono>
#include <memory>
#include <utility>

#include "base/thread.hpp"
#include "sink/kafka/error_map.hpp"
#include "sink/kafka/reported.hpp"

namespace outbox::sink::kafka {
namespace {

constexpr std::chrono::milliseconds kAskLimit{3000};
/// A topic that was made is not known to every broker at once.
constexpr std::chrono::milliseconds kKnownLimit{5000};
constexpr std::chrono::milliseconds kAskMissingAgain{50};

}  // namespace

PartitionCounts::PartitionCounts(rd_kafka_t* handle, const NewTopics& create,
                                 std::function<void()> bell)
    : handle_(handle), create_(create), bell_(std::move(bell)) {
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
      Answer answer = look_up(topic, stop);
      if (stop.stop_requested()) return;
      {
        const MutexLock lock(mutex_);
        answers_.push_back(std::move(answer));
      }
      bell_();
    }
  }
}

PartitionCounts::Answer PartitionCounts::look_up(rd_kafka_topic_t* topic,
                                                 const std::stop_token& stop) {
  const auto known = count(topic);
  if (known || create_.partitions == 0) return {.topic = topic, .partitions = known.value_or(0)};
  if (auto refusal = make_topic(handle_, rd_kafka_topic_name(topic), create_, stop))
    return {.topic = topic, .refusal = std::move(refusal)};
  return {.topic = topic, .partitions = wait_for(topic, stop)};
}

std::int32_t PartitionCounts::wait_for(rd_kafka_topic_t* made, const std::stop_token& stop) {
  const auto until = std::chrono::steady_clock::now() + kKnownLimit;
  while (!stop.stop_requested()) {
    const std::int32_t partitions = count(made).value_or(0);
    if (partitions > 0 || std::chrono::steady_clock::now() > until) return partitions;
    const MutexLock lock(mutex_);
    (void)asked_.wait_for(mutex_, stop, kAskMissingAgain, [] { return false; });
  }
  return 0;
}

std::optional<std::int32_t> PartitionCounts::count(rd_kafka_topic_t* topic) const {
  const rd_kafka_metadata_t* answer = nullptr;
  const auto code =
      rd_kafka_metadata(handle_, 0, topic, &answer, static_cast<int>(kAskLimit.count()));
  const std::unique_ptr<const rd_kafka_metadata_t, MetadataDelete> metadata(answer);
  if (is_missing(code)) return std::nullopt;
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR || metadata->topic_cnt != 1) return 0;
  if (is_missing(metadata->topics[0].err)) return std::nullopt;
  return metadata->topics[0].partition_cnt;
}

}  // namespace outbox::sink::kafka
