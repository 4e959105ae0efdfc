// Delivers events to Kafka without gaps: the client stops at the first message it cannot deliver,
// so that no later event of a key overtakes it. A failed client is not repaired: its messages get
// outcomes, and open() makes a new client. See docs/sinks/kafka.md.
#pragma once

#include <chrono>
#include <memory>
#include <outbox/sink.hpp>
#include <string_view>
#include <vector>

#include "sink/inspection.hpp"
#include "sink/kafka/client.hpp"
#include "sink/kafka/config.hpp"
#include "sink/kafka/first_batches.hpp"
#include "sink/kafka/in_flight.hpp"
#include "sink/suspects.hpp"

namespace outbox::sink::kafka {

struct KafkaOptions {
  std::chrono::nanoseconds connect_timeout{std::chrono::seconds(5)};
  std::chrono::nanoseconds delivery_deadline{std::chrono::seconds(10)};
  std::size_t max_in_flight{2000};
  NewTopics create{};
  /// After this many topics a new client is made, because a client forgets none.
  std::size_t most_topics{10'000};
  /// Whether others in the network can read or change what is sent.
  bool insecure{false};
};

class KafkaSink final : public Sink, public OverNetwork, private Client::Reports {
 public:
  KafkaSink(Conf conf, const KafkaOptions& options);
  ~KafkaSink() override;

  [[nodiscard]] SinkTraits traits() const noexcept override;
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void receive(std::vector<Outcome>& outcomes) override;
  void purge() override;
  void close() noexcept override;
  [[nodiscard]] bool is_insecure() const override { return options_.insecure; }

 private:
  enum class State : std::uint8_t {
    closed,
    open,
    failed,   ///< Takes no more; messages in flight may still get a report.
    purging,  ///< Everything was given up; reports will follow.
  };

  [[nodiscard]] Conf conf_for_now();
  [[nodiscard]] Result<std::unique_ptr<Client>> new_client();
  void use(std::unique_ptr<Client> client);
  [[nodiscard]] bool make_room(const Message& message);
  void delivered(std::size_t slot) override;
  void failed(std::size_t slot, rd_kafka_resp_err_t code, bool in_doubt,
              std::string_view topic) override;

  void take_reports();
  void watch_deadlines(TimePoint now);
  void stop_taking(Error reason);
  [[nodiscard]] Error make_cause(rd_kafka_resp_err_t code, std::string_view topic);
  void refuse_after_giving_up(const Message& message, rd_kafka_resp_err_t code);
  void refuse_unsent(const Message& message, Error error);
  void refuse_topic(const Message& message, const TopicRefusal& refusal);
  void refuse(const Message& message, const InFlight::Entry& entry, rd_kafka_resp_err_t code);
  void give_up_the_rest();
  [[nodiscard]] Outcome::Kind judge(rd_kafka_resp_err_t code, bool in_doubt,
                                    const InFlight::Entry& entry, bool alone);
  [[nodiscard]] Error overdue(std::chrono::nanoseconds waited) const;
  [[nodiscard]] Error left_behind(std::chrono::nanoseconds waited) const;

  const Conf conf_;
  const KafkaOptions options_;

  std::unique_ptr<Client> client_;
  /// A replaced client with nothing left to send. Destroying it may take too long for purge().
  std::unique_ptr<Client> retired_;
  State state_{State::closed};
  InFlight in_flight_;
  FirstBatches first_batches_;
  Suspects suspects_;
  /// Smaller than configured after a batch without a faulty message was refused; otherwise 0.
  std::size_t batch_bytes_{0};
  std::vector<Outcome> ready_;
  Error reason_;  ///< Why the state is not `open`.
  bool destination_failed_{false};
  bool goes_alone_{false};  ///< Whether the message in flight may go to any partition.
  /// When the last outcome came, or when something was sent while nothing was in flight.
  TimePoint progress_{};
  TimePoint purged_at_{};
};

}  // namespace outbox::sink::kafka
