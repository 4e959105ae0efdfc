// Reads queues of RabbitMQ, on one channel of one connection. See docs/sources/rabbitmq.md.
//
// The connection is the sink's (sink/rabbitmq/connection.hpp), so no call waits for the network for
// longer than it says.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sink/rabbitmq/config.hpp"
#include "sink/rabbitmq/connection.hpp"
#include "source/kind.hpp"
#include "source/rabbitmq/delivery.hpp"
#include "source/source.hpp"

namespace outbox::source::rabbitmq {

/// The error for the code and the text with which the server closes the channel or the connection
/// of a consumer.
[[nodiscard]] Error explain(std::uint16_t code, std::string_view text, std::string_view address);

class RabbitSource final : public Source {
 public:
  RabbitSource(sink::rabbitmq::RabbitOptions options, const ConsumerSpec& spec);
  ~RabbitSource() override;

  [[nodiscard]] Status open() override;
  [[nodiscard]] Status receive(const Wanted& wanted, std::vector<Received>& into) override;
  [[nodiscard]] Status acknowledge(std::span<const Received> messages) override;
  [[nodiscard]] std::optional<std::int64_t> lag() override;
  void close() noexcept override;

  /// How many messages have arrived and were not handed over.
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }

 private:
  using Connection = sink::rabbitmq::Connection;
  using TimePoint = std::chrono::steady_clock::time_point;

  // ---- opening and closing
  [[nodiscard]] Status start_consumers(TimePoint until);
  void ask_for_counts();
  void say_goodbye();

  // ---- what the server says
  /// Takes the frames that have arrived, until there are enough messages. Returns whether nothing
  /// more has arrived.
  [[nodiscard]] Result<bool> take_frames(const Wanted& wanted);
  [[nodiscard]] Status take(const amqp_frame_t& frame);
  [[nodiscard]] Status take(const amqp_method_t& method);
  void keep_if_complete();
  [[nodiscard]] Status cancelled(const amqp_basic_cancel_t& cancel);
  [[nodiscard]] Status channel_closed(const amqp_channel_close_t& close);
  [[nodiscard]] Status connection_closed(const amqp_connection_close_t& close);
  [[nodiscard]] tl::unexpected<Error> lose(Error error);

  void hand_over(const Wanted& wanted, std::vector<Received>& into);
  void wait(bool nothing_arrived, TimePoint until);

  const sink::rabbitmq::RabbitOptions options_;
  const std::vector<std::string> queues_;  ///< Without repetitions.
  const std::uint16_t prefetch_;           ///< For each queue.

  std::unique_ptr<Connection> connection_;
  bool lost_{false};         ///< Whether the connection cannot be used any more.
  std::size_t starting_{0};  ///< Consumers that the server has not confirmed yet.
  Delivery arriving_;
  /// What has arrived and was not handed over: while nothing is wanted, up to Wanted::bytes.
  std::deque<Received> kept_;
  std::size_t kept_bytes_{0};
  std::map<std::string, std::int64_t, std::less<>> ready_;  ///< By queue, as of the last answer.
  std::size_t counting_{0};                                 ///< Queues that have not answered yet.
};

[[nodiscard]] SourceKind kind();

}  // namespace outbox::source::rabbitmq
