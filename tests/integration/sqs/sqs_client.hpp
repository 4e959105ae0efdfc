// A client of its own for the tests, nothing of the sink's code. It signs nothing: for servers that
// do not ask for it.
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
  std::map<std::string, std::string> attributes;  ///< Of the message.
  std::map<std::string, std::string> system;      ///< "MessageGroupId", "AWSTraceHeader"...

  [[nodiscard]] std::string attribute(const std::string& name) const;
  /// The body of the event, by outbox-encoding.
  [[nodiscard]] std::string decoded() const;
};

class SqsClient {
 public:
  /// On 127.0.0.1.
  explicit SqsClient(int port) : port_(port) {}

  /// The answer of an operation ("CreateQueue"). Throws when it is not 200.
  nlohmann::json call(const std::string& operation, const nlohmann::json& request) const;
  /// Its URL. A name that ends in .fifo makes such a queue.
  [[nodiscard]] std::string create(const std::string& queue) const;
  void remove(const std::string& url) const;
  /// Receives and deletes all that is there, in the order of its arrival (of each group, in a FIFO
  /// queue).
  [[nodiscard]] std::vector<SqsMessage> drain(const std::string& url) const;

 private:
  int port_;
};

/// A name that no other queue has.
[[nodiscard]] std::string fresh_queue(const std::string& suffix = "");

/// The same as the suites want it.
[[nodiscard]] Arrived arrived_of(const SqsMessage& message);

/// The port of the shared server of OUTBOX_TEST_SQS (http://127.0.0.1:PORT).
[[nodiscard]] std::optional<int> shared_sqs();

}  // namespace outbox::test
