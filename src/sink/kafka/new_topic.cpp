#include "sink/kafka/new_topic.hpp"

#include <array>
#include <chrono>
#include <memory>

#include "base/error.hpp"
#include "base/log.hpp"
#include "sink/kafka/reported.hpp"

namespace outbox::sink::kafka {
namespace {

constexpr std::chrono::milliseconds kCreateLimit{5000};
constexpr std::chrono::milliseconds kLookForStop{100};
/// With so many replicas one may fail and acked events still be on two.
constexpr std::size_t kSafeReplication = 3;

struct NewTopicDelete {
  void operator()(rd_kafka_NewTopic_t* topic) const noexcept { rd_kafka_NewTopic_destroy(topic); }
};
using NewTopic = std::unique_ptr<rd_kafka_NewTopic_t, NewTopicDelete>;
using Answer = std::unique_ptr<rd_kafka_event_t, EventDelete>;

NewTopic new_topic(const char* name, const NewTopics& like) {
  std::array<char, 256> why{};
  const int replication = like.replication == 0 ? -1 : static_cast<int>(like.replication);
  NewTopic topic(rd_kafka_NewTopic_new(name, static_cast<int>(like.partitions), replication,
                                       why.data(), why.size()));
  OUTBOX_CHECK(topic != nullptr);  // it refuses numbers out of range only
  if (like.replication >= kSafeReplication)
    (void)rd_kafka_NewTopic_set_config(topic.get(), "min.insync.replicas", "2");
  return topic;
}

/// None: the stop was requested.
Answer ask(rd_kafka_t* handle, rd_kafka_NewTopic_t* topic, const std::stop_token& stop) {
  const std::unique_ptr<rd_kafka_AdminOptions_t, AdminOptionsDelete> options(
      rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_CREATETOPICS));
  std::array<char, 256> why{};
  (void)rd_kafka_AdminOptions_set_request_timeout(
      options.get(), static_cast<int>(kCreateLimit.count()), why.data(), why.size());
  const std::unique_ptr<rd_kafka_queue_t, QueueDelete> queue(rd_kafka_queue_new(handle));
  rd_kafka_CreateTopics(handle, &topic, 1, options.get(), queue.get());
  Answer answer;
  while (!answer && !stop.stop_requested())
    answer.reset(rd_kafka_queue_poll(queue.get(), static_cast<int>(kLookForStop.count())));
  return answer;
}

/// A request may succeed although its result for the topic is an error.
TopicRefusal result_of(rd_kafka_event_t* answer) {
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
  const Answer answer = ask(handle, topic.get(), stop);
  if (!answer) return std::nullopt;
  TopicRefusal result = result_of(answer.get());
  if (result.code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) return std::nullopt;  // somebody else
  if (result.code != RD_KAFKA_RESP_ERR_NO_ERROR) return result;
  log::info("kafka: a topic was made", {{"topic", name}, {"partitions", like.partitions}});
  return std::nullopt;
}

}  // namespace outbox::sink::kafka
