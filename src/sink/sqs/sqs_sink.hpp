// Sends events to queues of Amazon SQS in batches. The sink is not gapless: entries of a batch fail
// singly, and requests do not wait for each other. So the relay has one event of a key in flight,
// and the entries of a batch have different keys. See docs/sinks/sqs.md.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <outbox/sink.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "sink/curl/transfers.hpp"
#include "sink/network_sink.hpp"
#include "sink/sqs/answer.hpp"
#include "sink/sqs/batch.hpp"
#include "sink/sqs/client.hpp"
#include "sink/sqs/composer.hpp"
#include "sink/sqs/config.hpp"
#include "sink/sqs/credentials.hpp"
#include "sink/sqs/names.hpp"

namespace outbox::sink::sqs {

class SqsSink final : public NetworkSink {
 public:
  SqsSink(SqsOptions options, Environment environment);

  [[nodiscard]] SinkTraits traits() const noexcept override;
  /// Finds the credentials, connects once, and looks the queue up if it is the same for all events.
  [[nodiscard]] Status open() override;
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override;
  void purge() override;
  void close() noexcept override;

  /// Shows what the settings say.
  [[nodiscard]] Inspection inspection() const override;

 private:
  void advance() override;
  [[nodiscard]] RequestContext context(std::string_view queue) const;
  [[nodiscard]] Status find_out_credentials();
  [[nodiscard]] Status check_destination();

  /// Returns false if there is no room for it now.
  [[nodiscard]] bool place(Composed& composed);
  void launch_open();
  void launch(Batch batch);
  void look_up(const std::string& queue);
  void start(std::unique_ptr<Exchange> exchange);
  void launch_waiting();

  void take_ends();
  void take_end(Exchange& exchange, const Answer& answer);
  void found_url(const std::string& queue, const Answer& answer);
  void settle(const Batch& batch, const Outcome& outcome);
  void settle(const Batch& batch, std::vector<Outcome> outcomes);

  const SqsOptions options_;
  const Environment environment_;
  const Client client_;
  Composer composer_;
  Credentials credentials_;
  std::vector<std::string> secrets_;  ///< Texts that must not be quoted when they are repeated.
  QueueUrls urls_;
  std::size_t batches_{0};             ///< The number of batches of which nothing is settled.
  std::map<std::string, Batch> open_;  ///< Batches by queue while messages are taken.
  /// Batches whose queue is being looked up.
  std::unordered_map<std::string, std::vector<Batch>> without_url_;
  std::deque<Batch> waiting_;  ///< Batches that wait for a free transfer.
  curl::Transfers::Ticket last_ticket_{0};
  /// Pointers, because handles refer to exchanges; before the transfers, which use them to the end.
  std::unordered_map<curl::Transfers::Ticket, std::unique_ptr<Exchange>> exchanges_;
  std::unique_ptr<curl::Transfers> transfers_;
};

}  // namespace outbox::sink::sqs
