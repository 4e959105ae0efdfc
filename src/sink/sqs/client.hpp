// Turns requests to SQS into easy handles of libcurl: its JSON protocol, signed with AWS Signature Version 4 by libcurl.
#pragma once

#include <chrono>
#include <outbox/error.hpp>
#include <string>

#include "sink/curl/http_client.hpp"
#include "sink/sqs/answer.hpp"
#include "sink/sqs/batch.hpp"
#include "sink/sqs/config.hpp"
#include "sink/sqs/credentials.hpp"

namespace outbox::sink::sqs {

/// The operations that are used, with the rights of the same names.
enum class Operation { send_message_batch, get_queue_url };

/// A request under way.
struct Exchange : curl::Exchange {
  Operation operation{Operation::send_message_batch};
  Batch batch;  ///< Of a look-up only the queue.
  std::string body;
};

class Client {
 public:
  explicit Client(const SqsOptions& options);

  /// Signed when the transfer begins.
  [[nodiscard]] curl::Easy prepare(Exchange& exchange, const Credentials& credentials) const;
  /// Blocks for connect_timeout at most.
  [[nodiscard]] Answer perform(Exchange& exchange, const Credentials& credentials) const;
  [[nodiscard]] Answer connect() const { return client_.connect(address_); }

  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  const SqsOptions& options_;
  const std::string address_;    ///< "https://sqs.eu-central-1.amazonaws.com:443"
  const std::string signature_;  ///< CURLOPT_AWS_SIGV4
  const curl::HttpClient client_;
};

/// GetQueueUrl's body.
[[nodiscard]] std::string lookup_body(const std::string& queue, const std::string& account);

/// Asks for credentials with plain requests, each of which takes `limit` at most.
[[nodiscard]] Fetch fetch_within(std::chrono::milliseconds limit);

}  // namespace outbox::sink::sqs
