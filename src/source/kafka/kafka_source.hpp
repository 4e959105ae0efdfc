// Reads topics of Kafka as a member of a consumer group. See docs/sources/kafka.md.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/owned.hpp"
#include "sink/kafka/config.hpp"
#include "sink/kafka/reported.hpp"
#include "source/kind.hpp"
#include "source/source.hpp"

namespace outbox::source::kafka {

/// The topic, or a regular expression of librdkafka, which begins with ^, for a name with * or ?.
[[nodiscard]] std::string subscription_name(std::string_view topic);

/// Asks the brokers of the topics that the consumer reads.
[[nodiscard]] Result<Inspection> inspect(const sink::kafka::KafkaSettings& settings,
                                         const ConsumerSpec& spec);

class KafkaSource final : public Source {
 public:
  KafkaSource(sink::kafka::KafkaSettings settings, ConsumerSpec spec);
  ~KafkaSource() override;

  [[nodiscard]] Status open() override;
  [[nodiscard]] Status receive(const Wanted& wanted, std::vector<Received>& into) override;
  [[nodiscard]] Status acknowledge(std::span<const Received> messages) override;
  [[nodiscard]] std::optional<std::int64_t> lag() override;
  void close() noexcept override;

 private:
  using List = Owned<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;

  static void on_error(rd_kafka_t* handle, int code, const char* reason, void* opaque);
  static void on_rebalance(rd_kafka_t* handle, rd_kafka_resp_err_t code,
                           rd_kafka_topic_partition_list_t* partitions, void* opaque);
  void rebalance(rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t* partitions);
  void find_positions(rd_kafka_topic_partition_list_t& partitions);
  [[nodiscard]] std::string assign(rd_kafka_topic_partition_list_t* partitions, bool more);
  [[nodiscard]] Status subscribe();
  void leave();
  [[nodiscard]] Status take(const rd_kafka_message_t& message, std::vector<Received>& into);
  [[nodiscard]] Status judge(const rd_kafka_message_t& message);
  void look_for_gap(const std::string& topic, const rd_kafka_message_t& message);
  [[nodiscard]] Status pause(bool pause);
  [[nodiscard]] List assignment() const;

  const sink::kafka::KafkaSettings settings_;
  const ConsumerSpec spec_;
  sink::kafka::Reported reported_;
  sink::kafka::Handle handle_;
  bool paused_{false};
  static constexpr std::int64_t kUnknown = -1;
  /// The message that should come next.
  struct Next {
    std::int64_t offset{kUnknown};
    std::chrono::steady_clock::time_point asked_at{};
  };
  std::map<std::string, std::map<std::int32_t, Next>> next_;
  std::optional<Error> unanswered_;  ///< Why the positions of new partitions are not known.
};

[[nodiscard]] SourceKind kind();

}  // namespace outbox::source::kafka
