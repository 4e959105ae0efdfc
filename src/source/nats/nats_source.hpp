// Reads streams of NATS JetStream, each through a durable pull consumer. See docs/sources/nats.md.
//
// The pull requests are made here and not by natsSubscription_Fetch(), which waits for a full batch
// once it has a message, and takes a user's empty message with a header Status for the server's.
//
// Order: a server keeps what a reader that died had not acknowledged until its ack_wait has passed,
// and meanwhile hands out what comes behind it. So after it was opened the source takes new
// messages only when it has seen all that were unacknowledged, or when that time has passed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sink/endpoint.hpp"
#include "sink/nats/config.hpp"
#include "source/kind.hpp"
#include "source/nats/client.hpp"
#include "source/source.hpp"

namespace outbox::source::nats {

/// An element of ConsumerSpec::read: "ORDERS" or "ORDERS/orders.eu.>".
struct Reads {
  std::string stream;
  std::string filter{};  ///< Empty for all subjects of the stream.
};
[[nodiscard]] Result<Reads> parse_read(const std::string& text);

/// JetStream's code for a stream that does not exist.
inline constexpr int kNoStream = 10059;

/// Asks the server of the streams that the consumer reads.
[[nodiscard]] Result<Inspection> inspect(const sink::nats::NatsSettings& settings,
                                         const std::vector<sink::Endpoint>& servers,
                                         const std::vector<Reads>& reads);

class NatsSource final : public Source {
 public:
  NatsSource(sink::nats::NatsSettings settings, std::vector<sink::Endpoint> servers,
             ConsumerSpec spec, const std::vector<Reads>& reads);
  ~NatsSource() override;

  [[nodiscard]] Status open() override;
  [[nodiscard]] Status receive(const Wanted& wanted, std::vector<Received>& into) override;
  [[nodiscard]] Status acknowledge(std::span<const Received> messages) override;
  [[nodiscard]] std::optional<std::int64_t> lag() override;
  void close() noexcept override;

 private:
  /// A stream, and what is known of its durable consumer.
  struct Lane {
    Reads reads;
    // What the consumer's configuration allows in a request; 0 for no limit.
    std::int64_t most_messages{0};
    std::chrono::nanoseconds longest_request{0};
    std::chrono::nanoseconds ack_wait{0};

    // The last pull request.
    std::uint64_t request{0};
    bool waiting{false};  ///< Whether the server has not ended it.
    std::size_t wanted{0};
    std::size_t got{0};
    TimePoint asked{};

    // What was delivered and not acknowledged before the source was opened.
    std::uint64_t delivered{0};  ///< The last message that had been delivered.
    std::int64_t missing{0};     ///< How many of them have not come again.
    bool seen{false};            ///< Whether one has come again.
    bool holding{false};         ///< Whether new messages came first, so that it waits.
    TimePoint settled{};         ///< When all of them come before new ones.
  };

  // Opening.
  [[nodiscard]] Status open_lane(Lane& lane);
  [[nodiscard]] Result<nlohmann::json> find_consumer(const Lane& lane);
  [[nodiscard]] Result<nlohmann::json> make_consumer(const Lane& lane);
  [[nodiscard]] Status check_consumer(const Lane& lane, const nlohmann::json& config);
  [[nodiscard]] Result<nlohmann::json> ask(const Lane& lane, const std::string& verb,
                                           const std::string& body,
                                           std::chrono::milliseconds limit);
  [[nodiscard]] std::string api(const Lane& lane, const std::string& verb) const;

  // Receiving.
  [[nodiscard]] Status request(const Wanted& wanted);
  [[nodiscard]] Status request(Lane& lane, std::size_t messages);
  [[nodiscard]] bool is_delivering() const;
  [[nodiscard]] Status take(natsMsg* message, std::vector<Received>& into);
  [[nodiscard]] Status take_status(natsMsg* message);
  [[nodiscard]] bool is_due(Lane& lane, std::uint64_t sequence);
  [[nodiscard]] Status look_for_silence();

  const sink::nats::NatsSettings settings_;
  const std::vector<sink::Endpoint> servers_;
  const ConsumerSpec spec_;
  const std::string durable_;

  Client::Connector connector_;
  std::unique_ptr<Client> client_;
  std::vector<Lane> lanes_;
  std::uint64_t last_request_{0};
  std::size_t mean_bytes_;
  /// The subjects to acknowledge the messages that the consumer has in its hands, in their order.
  std::vector<std::string> in_hand_;
  bool warned_{false};  ///< Whether the weaknesses of the consumers are in the log.
};

[[nodiscard]] SourceKind kind();

}  // namespace outbox::source::nats
