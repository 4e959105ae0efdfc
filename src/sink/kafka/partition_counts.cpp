#include "sink/kafka/partition_counts.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "sink/kafka/error_map.hpp"
#include "sink/kafka/reported.hpp"

namespace outbox::sink::kafka {
namespace {

constexpr std::chrono::milliseconds kCreateLimit{5000};
constexpr std::chrono::milliseconds kLookForStop{100};
/// With this many replicas one may fail while acked events are still on two.
constexpr std::size_t kSafeReplication = 3;

using NewTopic = Owned<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy>;

NewTopic new_topic(const char* name, const NewTopics& like) {
  std::array<char, 256> why{};
  const int replication = like.replication == 0 ? -1 : static_cast<int>(like.replication);
  NewTopic topic(rd_kafka_NewTopic_new(name, static_cast<int>(like.partitions), replication,
                                       why.data(), why.size()));
  OUTBOX_CHECK(topic != nullptr);  // It refuses only numbers that are out of range.
  if (like.replication >= kSafeReplication)
    (void)rd_kafka_NewTopic_set_config(topic.get(), "min.insync.replicas", "2");
  return topic;
}

/// Asks a broker to make the topic; null if the stop was requested.
Event ask(rd_kafka_t* handle, rd_kafka_NewTopic_t* topic, const std::stop_token& stop) {
  const AdminOptions options(rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_CREATETOPICS));
  std::array<char, 256> why{};
  (void)rd_kafka_AdminOptions_set_request_timeout(
      options.get(), static_cast<int>(kCreateLimit.count()), why.data(), why.size());
  const Queue queue(rd_kafka_queue_new(handle));
  rd_kafka_CreateTopics(handle, &topic, 1, options.get(), queue.get());
  Event answer;
  while (!answer && !stop.stop_requested())
    answer.reset(rd_kafka_queue_poll(queue.get(), static_cast<int>(kLookForStop.count())));
  return answer;
}

/// The result for the topic, which may be an error although the request succeeded.
TopicRefusal read_result(rd_kafka_event_t* answer) {
  if (const auto code = rd_kafka_event_error(answer); code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return {.code = code, .text = rd_kafka_event_error_string(answer)};
  std::size_t count = 0;
  const auto* const* const results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(answer), &count);
  if (count != 1) return {.code = RD_KAFKA_RESP_ERR__BAD_MSG, .text = "no result"};
  const auto code = rd_kafka_topic_result_error(results[0]);
  const char* const text = rd_kafka_topic_result_error_string(results[0]);
  return {.code = code, .text = text == nullptr ? rd_kafka_err2str(code) : text};
}

}  // namespace

std::optional<TopicRefusal> make_topic(rd_kafka_t* handle, const char* name, const NewTopics& like,
                                       const std::stop_token& stop) {
  const NewTopic topic = new_topic(name, like);
  const Event answer = ask(handle, topic.get(), stop);
  if (!answer) return std::nullopt;
  TopicRefusal result = read_result(answer.get());
  // Another process made it.
  if (result.code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) return std::nullopt;
  if (result.code != RD_KAFKA_RESP_ERR_NO_ERROR) return result;
  log::info("kafka: a topic was made", {{"topic", name}, {"partitions", like.partitions}});
  return std::nullopt;
}

namespace {

constexpr std::chrono::milliseconds kAskLimit{3000};
/// How long a topic that was made may be unknown to some brokers.
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
  const Metadata metadata(answer);
  if (is_missing(code)) return std::nullopt;
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR || metadata->topic_cnt != 1) return 0;
  if (is_missing(metadata->topics[0].err)) return std::nullopt;
  return metadata->topics[0].partition_cnt;
}

}  // namespace outbox::sink::kafka
