// One librdkafka producer. It is never repaired: after a failure the sink replaces it. Callbacks
// run inside poll(), on its caller's thread; only `bell` rings on librdkafka's threads.
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
  /// Receives the results of messages; `slot` is the one given to produce().
  class Reports {
   public:
    virtual void delivered(std::size_t slot) = 0;
    virtual void failed(std::size_t slot, rd_kafka_resp_err_t code, bool in_doubt,
                        std::string_view topic) = 0;

   protected:
    ~Reports() = default;
  };

  /// Copies the conf. `bell` rings when poll() has something to do. `topics`: how to make topics.
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

  /// Queues a copy of the message. After NO_ERROR a report will follow; after _QUEUE_FULL try again
  /// later. After any other code the message was not queued, and nothing may be sent after it.
  [[nodiscard]] rd_kafka_resp_err_t produce(const Message& message, std::int32_t partition,
                                            std::size_t slot, std::int64_t timestamp_ms);

  struct Place {
    std::int32_t partition{RD_KAFKA_PARTITION_UA};  ///< Unassigned if the topic is not known yet.
    std::size_t number{0};                          ///< Unique for each partition of each topic.
  };
  /// The message's partition. Returns nullopt, without waiting, while the number of partitions is
  /// being asked for, which happens for a new topic and again every few minutes; the bell rings
  /// with the answer. Returns nullopt also if the topic could not be made.
  [[nodiscard]] std::optional<Place> place(const Message& message);
  /// Why the topic could not be made; null if that is not known yet.
  [[nodiscard]] const TopicRefusal* refusal(std::string_view topic) const;

  /// How many topics messages were sent to. librdkafka keeps each of them until the client ends.
  [[nodiscard]] std::size_t topics() const { return topics_.size(); }
  [[nodiscard]] bool knows(std::string_view topic) const { return topics_.contains(topic); }

  /// Calls Reports for what happened. Waits at most this long for the first report.
  void poll(std::chrono::milliseconds wait = std::chrono::milliseconds(0));

  /// Gives up what is not sent yet, or everything. Does not wait; poll() delivers the reports.
  void purge_queued();
  void purge_all();
  /// Stops ringing the bell.
  void silence();

  /// librdkafka's last error; empty if there was none since the last delivery.
  [[nodiscard]] const std::string& error_text() const { return reported_.text; }
  [[nodiscard]] rd_kafka_resp_err_t error_code() const { return reported_.code; }
  void forget_error() { reported_.text.clear(); }
  /// Fetches the reason of a fatal error, because reports of messages may come before it.
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
  [[nodiscard]] static Partitioner read_partitioner(const rd_kafka_conf_t& conf);

  Client(Reports& reports, std::function<void()> bell);

  static void on_report(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque);
  static void on_error(rd_kafka_t* handle, int code, const char* reason, void* opaque);
  static void on_bell(rd_kafka_t*, void* opaque);

  struct Topic {
    TopicHandle handle;
    std::int32_t partitions{0};  ///< 0 if not known.
    std::optional<TopicRefusal> refusal{};
    bool asking{false};
    std::optional<std::chrono::steady_clock::time_point> answered{};
    std::size_t first_place{0};  ///< The number of its partition 0.
    /// The place of messages sent while the partitions are not known.
    std::size_t unknown_place{0};
    std::int32_t next{0};  ///< The partition of the last message without a key.
  };
  [[nodiscard]] Topic* topic(std::string_view name);
  void ask_if_due(Topic& topic);
  void take_answers();
  void note_partitions(Topic& topic, std::int32_t count);

  Reports& reports_;
  const std::function<void()> bell_;
  Reported reported_;

  std::vector<rd_kafka_vu_t> arguments_;

  // The order matters: counts_ is destroyed before the topics, the handle after all of them.
  Handle handle_;
  Queue queue_;
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
