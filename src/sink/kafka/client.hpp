// One librdkafka producer. It is never repaired: after a failure the sink replaces it. Its callbacks run inside poll(), on the
// thread that calls it; only the bell rings on librdkafka's threads.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sink/kafka/partition_counts.hpp"
#include "sink/kafka/reported.hpp"

namespace outbox::sink::kafka {

class Client {
 public:
  /// The results of messages; `slot` is the one given to produce().
  class Reports {
   public:
    virtual void delivered(std::size_t slot) = 0;
    virtual void failed(std::size_t slot, rd_kafka_resp_err_t code, bool in_doubt,
                        std::string_view topic) = 0;

   protected:
    ~Reports() = default;
  };

  /// Copies the conf. `bell` rings when poll() has something to do. `topics`: how those are made that do not exist.
  [[nodiscard]] static Result<std::unique_ptr<Client>> create(const rd_kafka_conf_t& conf,
                                                              const NewTopics& topics,
                                                              Reports& reports,
                                                              std::function<void()> bell);

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// Drops what is in flight, without reports.
  ~Client();

  /// Waits until a broker answers.
  [[nodiscard]] Status reach(std::chrono::milliseconds limit);

  /// Queues a copy of the message. NO_ERROR: a report will follow. _QUEUE_FULL: try again later. Anything else: it was not queued, and
  /// nothing must be sent after it.
  [[nodiscard]] rd_kafka_resp_err_t produce(const Message& message, std::int32_t partition,
                                            std::size_t slot, std::int64_t timestamp_ms);

  struct Place {
    std::int32_t partition{RD_KAFKA_PARTITION_UA};  ///< Unassigned: the topic is not known yet.
    std::size_t number{0};                          ///< Unique per partition of each topic.
  };
  /// The message's partition. None: the number of partitions has been requested from the brokers, and the bell rings with the answer.
  /// It is requested for each new topic and again every few minutes. Does not wait. None as well: the topic could not be made.
  [[nodiscard]] std::optional<Place> place(const Message& message);
  /// Why; null: it is not known yet.
  [[nodiscard]] const TopicRefusal* refusal(std::string_view topic) const;

  /// Topics that messages were sent to. librdkafka keeps each of them until the client ends.
  [[nodiscard]] std::size_t topics() const { return topics_.size(); }
  [[nodiscard]] bool knows(std::string_view topic) const { return topics_.contains(topic); }

  /// Calls Reports for what happened; waits at most this long for the first.
  void poll(std::chrono::milliseconds wait = std::chrono::milliseconds(0));

  /// Gives up what is not sent yet, or everything. poll() delivers the reports. Does not wait.
  void purge_queued();
  void purge_all();
  /// Stops the bell.
  void silence();

  /// librdkafka's last error; empty: none since the last delivery.
  [[nodiscard]] const std::string& error_text() const { return reported_.text; }
  [[nodiscard]] rd_kafka_resp_err_t error_code() const { return reported_.code; }
  void forget_error() { reported_.text.clear(); }
  /// Fetches the reason of a fatal error: reports of messages may come before it.
  void fetch_fatal_error();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>()(text);
    }
  };

  using Partitioner = std::int32_t (*)(const rd_kafka_topic_t*, const void*, std::size_t,
                                       std::int32_t, void*, void*);
  [[nodiscard]] static Partitioner partitioner_of(const rd_kafka_conf_t& conf);

  Client(Reports& reports, std::function<void()> bell);

  static void on_report(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque);
  static void on_error(rd_kafka_t* handle, int code, const char* reason, void* opaque);
  static void on_bell(rd_kafka_t*, void* opaque);

  struct Topic {
    std::unique_ptr<rd_kafka_topic_t, TopicDelete> handle;
    std::int32_t partitions{0};  ///< 0: not known.
    std::optional<TopicRefusal> refusal{};
    bool asking{false};
    std::optional<std::chrono::steady_clock::time_point> answered{};
    std::size_t first_place{0};    ///< The number of its partition 0.
    std::size_t unknown_place{0};  ///< For messages sent while the partitions are not known.
    std::int32_t next{0};          ///< For messages without a key, in turn.
  };
  [[nodiscard]] Topic* topic(std::string_view name);
  void ask_if_due(Topic& topic);
  void take_answers();
  void note_partitions(Topic& topic, std::int32_t count);

  Reports& reports_;
  const std::function<void()> bell_;
  Reported reported_;

  std::vector<rd_kafka_vu_t> arguments_;

  // Destroyed in reverse order: counts_ before the topics it asks for, topics and queue before the handle.
  std::unique_ptr<rd_kafka_t, HandleDelete> handle_;
  std::unique_ptr<rd_kafka_queue_t, QueueDelete> queue_;
  std::unordered_map<std::string, Topic, Hash, std::equal_to<>> topics_;
  std::unique_ptr<PartitionCounts> counts_;
  std::string_view last_topic_name_;
  Topic* last_topic_{nullptr};
  std::size_t places_{0};
  Partitioner partitioner_{nullptr};
};

/// Whether Kafka accepts it as the name of a topic.
[[nodiscard]] bool is_topic_name(std::string_view name) noexcept;

}  // namespace outbox::sink::kafka
