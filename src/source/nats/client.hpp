// A connection to a NATS server that receives, with the options of the sink. It is never repaired:
// when it is lost, another one is made.
//
// Messages arrive on a thread of cnats. They are taken by an asynchronous subscription, because a
// synchronous one keeps a user's message for itself that looks like the server's answer (an empty
// one with the header "Status: 503").
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/endpoint.hpp"
#include "sink/nats/config.hpp"
#include "sink/nats/handle.hpp"

namespace outbox::source::nats {

using TimePoint = std::chrono::steady_clock::time_point;

class Client {
 public:
  /// Connects to one of the servers, in their order. cnats cannot be interrupted while it does that
  /// (sink/nats/reach.hpp), so an attempt that hangs is left behind on its thread.
  class Connector {
   public:
    [[nodiscard]] Result<std::unique_ptr<Client>> connect(
        const sink::nats::NatsSettings& settings, const std::vector<sink::Endpoint>& servers);

   private:
    struct Attempt;
    [[nodiscard]] Result<std::unique_ptr<Client>> connect_to(
        const sink::nats::NatsSettings& settings, const sink::Endpoint& server, TimePoint until);
    std::vector<std::weak_ptr<Attempt>> left_;
  };

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client(Client&&) = delete;
  Client& operator=(Client&&) = delete;
  ~Client();

  /// The subject for the answers to the request with this number.
  [[nodiscard]] std::string reply_to(std::uint64_t number) const;
  /// The number of a subject that reply_to() made.
  [[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view subject) const;

  /// The answer of JetStream's API, which may be an error of JetStream.
  [[nodiscard]] Result<std::string> ask(const std::string& subject, const std::string& body,
                                        std::chrono::milliseconds limit);
  [[nodiscard]] Status publish(const std::string& subject, const std::string& reply_to,
                               const std::string& body);
  /// Returns when the server has read all that was published.
  [[nodiscard]] Status flush(std::chrono::milliseconds limit);

  /// The next message that has arrived; null if there is none until then.
  [[nodiscard]] sink::nats::MessageHandle next(TimePoint until);
  /// Whether a message has arrived that next() has not returned.
  [[nodiscard]] bool has_next();
  /// Waits, and leaves what arrives to next().
  void rest(TimePoint until);
  /// Ends the subscription. Afterwards next() returns what arrived before.
  void stop_receiving(std::chrono::milliseconds limit);

  /// Fails if the connection is lost.
  [[nodiscard]] Status check();
  /// Fails if the server has refused to let this user publish or subscribe.
  [[nodiscard]] Status check_rights();
  [[nodiscard]] std::string server() const { return server_; }

 private:
  struct Arrivals;

  Client(std::string server, std::string inbox, sink::nats::ConnectionHandle connection);
  [[nodiscard]] static Result<std::unique_ptr<Client>> make(
      const sink::nats::NatsSettings& settings, const sink::Endpoint& server, TimePoint until);
  [[nodiscard]] Status subscribe();

  static void arrived(natsConnection* connection, natsSubscription* subscription, natsMsg* message,
                      void* held);

  const std::string server_;
  const std::string inbox_;
  const std::shared_ptr<Arrivals> arrivals_;
  sink::nats::ConnectionHandle connection_;
  sink::nats::SubscriptionHandle subscription_;
};

}  // namespace outbox::source::nats
