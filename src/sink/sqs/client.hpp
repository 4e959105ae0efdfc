// Turns requests to SQS into easy handles of libcurl, which signs them (AWS Signature Version 4).
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

/// The operations that are used, which need the rights of the same names.
enum class Operation { send_message_batch, get_queue_url };

/// A request in progress.
struct Exchange : curl::Exchange {
  Operation operation{Operation::send_message_batch};
  Batch batch;  ///< For a look-up only the queue is set.
  std::string body;
};

class Client {
 public:
  explicit Client(const SqsOptions& options);

  /// The handle's request is signed when the transfer begins.
  [[nodiscard]] curl::Easy prepare(Exchange& exchange, const Credentials& credentials) const;
  /// Blocks for at most connect_timeout.
  [[nodiscard]] Answer perform(Exchange& exchange, const Credentials& credentials) const;
  [[nodiscard]] Answer connect() const { return client_.connect(address_); }

  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  const SqsOptions& options_;
  const std::string address_;    ///< "https://sqs.eu-central-1.amazonaws.com:443"
  const std::string signature_;  ///< The value of CURLOPT_AWS_SIGV4.
  const curl::HttpClient client_;
};

/// The body of GetQueueUrl.
[[nodiscard]] std::string lookup_body(const std::string& queue, const std::string& account);

/// Asks for credentials with plain requests, each of which takes at most `limit`.
[[nodiscard]] Fetch fetch_within(std::chrono::milliseconds limit);

}  // namespace outbox::sink::sqs
