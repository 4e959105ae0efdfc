// A RabbitMQ client for the tests. It uses librabbitmq's blocking functions, and nothing of the
// sink's code.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/sink/suite.hpp"

struct amqp_basic_properties_t_;
struct amqp_connection_state_t_;

namespace outbox::test {

/// The shared server, which OUTBOX_TEST_RABBITMQ and the variables with this prefix name
/// (scripts/lib/rabbitmq.sh).
struct SharedRabbit {
  int port{0};
  std::string username;
  std::string password;
  std::string secure_url;  ///< amqps://localhost:PORT
  std::string management;  ///< The URL of its management API.
  std::string tls;         ///< The folder of ca.pem, server.pem, client.pem, client.key.
};
[[nodiscard]] std::optional<SharedRabbit> shared_rabbit();

/// Runs rabbitmqctl for the shared server, and returns what it printed. Throws if it fails.
std::string rabbitmqctl(const std::vector<std::string>& arguments);

struct RabbitMessage {
  std::string exchange;
  std::string routing_key;
  std::string body;
  /// "content_type", "delivery_mode" and so on, as text; absent when it is not set.
  std::map<std::string, std::string> properties;
  std::map<std::string, std::string> headers;
  /// Headers without a value.
  std::vector<std::string> empty_headers;
};

using RabbitArguments = std::map<std::string, std::string>;

class RabbitClient {
 public:
  /// Connects and opens a channel. Throws if it cannot, as the other functions do.
  explicit RabbitClient(const SharedRabbit& server);

  /// Values of digits only are sent as numbers, and "true" as a boolean.
  void declare_queue(const std::string& name, const RabbitArguments& arguments,
                     bool durable = true);
  void declare_exchange(const std::string& name, const std::string& type);
  void bind(const std::string& queue, const std::string& exchange, const std::string& key);
  void unbind(const std::string& queue, const std::string& exchange, const std::string& key);
  void delete_queue(const std::string& name);
  void delete_exchange(const std::string& name);
  void purge(const std::string& queue);
  /// Publishes with this routing key; with the default exchange it is the name of a queue.
  void publish(const std::string& routing_key, const amqp_basic_properties_t_& properties,
               const std::string& body, const std::string& exchange = {});
  /// Waits until the server has confirmed everything that was published.
  void confirm();
  /// Takes all messages that are ready out of the queue. If it throws, `into` has what it took
  /// until then.
  void take_all(const std::string& queue, std::vector<RabbitMessage>& into);
  [[nodiscard]] bool has_queue(const std::string& name);
  [[nodiscard]] bool has_exchange(const std::string& name);

 private:
  void check(const std::string& what);
  void open_channel();
  void take_confirmation(std::chrono::seconds limit);
  void consume(const std::string& queue, std::uint32_t count, std::vector<RabbitMessage>& into);
  bool consume_one(std::chrono::seconds limit, std::vector<RabbitMessage>& into);

  struct Free {
    void operator()(amqp_connection_state_t_* state) const noexcept;
  };
  std::unique_ptr<amqp_connection_state_t_, Free> state_;
  std::uint64_t published_{0};
  std::set<std::uint64_t> unconfirmed_;
};

/// A queue with a unique name, which is removed at the end.
class RabbitQueue {
 public:
  explicit RabbitQueue(SharedRabbit server,
                       RabbitArguments arguments = {{"x-queue-type", "quorum"}});
  RabbitQueue(const RabbitQueue&) = delete;
  RabbitQueue& operator=(const RabbitQueue&) = delete;
  ~RabbitQueue();

  [[nodiscard]] const std::string& name() const { return name_; }
  void create();
  void remove();
  /// Everything that has arrived since the beginning.
  [[nodiscard]] const std::vector<RabbitMessage>& messages();
  [[nodiscard]] std::vector<Arrived> arrived();

 private:
  const SharedRabbit server_;
  const RabbitArguments arguments_;
  const std::string name_;
  std::vector<RabbitMessage> messages_;
};

/// Returns a name for an exchange or a queue.
[[nodiscard]] std::string unique_rabbit_name();

}  // namespace outbox::test
