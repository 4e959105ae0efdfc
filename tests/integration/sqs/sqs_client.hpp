// An SQS client for the tests, with nothing of the sink's code. It signs nothing, and is for
// servers that do not ask for signatures.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "conformance/sink/suite.hpp"

namespace outbox::test {

/// A message as it was received.
struct SqsMessage {
  std::string body;
  std::map<std::string, std::string> attributes;  ///< The attributes of the message.
  std::map<std::string, std::string> system;  ///< The system attributes, such as "MessageGroupId".

  [[nodiscard]] std::string attribute(const std::string& name) const;
  /// The body of the event, decoded as outbox-encoding says.
  [[nodiscard]] std::string decoded() const;
};

class SqsClient {
 public:
  /// Uses the server at this port of 127.0.0.1.
  explicit SqsClient(int port) : port_(port) {}

  /// Returns the answer of an operation, such as "CreateQueue". Throws if the status is not 200.
  nlohmann::json call(const std::string& operation, const nlohmann::json& request) const;
  /// Creates a queue and returns its URL. A name that ends in .fifo makes a FIFO queue.
  [[nodiscard]] std::string create(const std::string& queue) const;
  void remove(const std::string& url) const;
  /// Receives and deletes all messages, in the order of their arrival, which in a FIFO queue is
  /// that of each group.
  [[nodiscard]] std::vector<SqsMessage> drain(const std::string& url) const;

 private:
  int port_;
};

/// Returns a name that no other queue has.
[[nodiscard]] std::string fresh_queue(const std::string& suffix = "");

/// The message in the form that the conformance suites use.
[[nodiscard]] Arrived make_arrived(const SqsMessage& message);

/// The port of the shared server of OUTBOX_TEST_SQS (http://127.0.0.1:PORT).
[[nodiscard]] std::optional<int> shared_sqs();

}  // namespace outbox::test
