#include "sink/sqs/client.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "event/json_write.hpp"

namespace outbox::sink::sqs {
namespace {

using curl::set;

/// The limit of one fetch: outside AWS, where nobody has the address, it must not delay a relay.
constexpr std::chrono::milliseconds kLongestFetch{2000};

const char* find_target(Operation operation) {
  switch (operation) {
    case Operation::send_message_batch: return "X-Amz-Target: AmazonSQS.SendMessageBatch";
    case Operation::get_queue_url: return "X-Amz-Target: AmazonSQS.GetQueueUrl";
  }
  return "";
}

curl::HttpClient::Options client_options(const SqsOptions& options) {
  return {.encrypted = options.encrypted(),
          // SQS has no HTTP/2, and requests would wait to find that out.
          .http2 = false,
          .proxy = options.plain.proxy,
          .tls = options.plain.tls,
          .connect_timeout = options.plain.connect_timeout};
}

}  // namespace

Client::Client(const SqsOptions& options)
    : options_(options),
      address_(options.endpoint.shown()),
      signature_(fmt::format("aws:amz:{}:sqs", options.region)),
      client_(client_options(options)) {
  // libcurl announces a body of more than 1 MiB; there is no need to wait for the answer.
  set(client_.prototype(), CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
}

curl::Easy Client::prepare(Exchange& exchange, const Credentials& credentials) const {
  curl::Easy easy = client_.handle_for(exchange, address_ + "/");
  curl::append(exchange.headers, "Content-Type: application/x-amz-json-1.0");
  curl::append(exchange.headers, find_target(exchange.operation));
  if (!credentials.session_token.empty()) {
    curl::append(exchange.headers, ("X-Amz-Security-Token: " + credentials.session_token).c_str());
  }
  // Set for each handle, because curl_easy_duphandle() of libcurl 7.88 does not copy it. The
  // signature covers the headers of the exchange. This libcurl would also count a header without a
  // value, which it does not send, so there is none.
  set(easy.get(), CURLOPT_AWS_SIGV4, signature_.c_str());
  set(easy.get(), CURLOPT_USERNAME, credentials.access_key.c_str());
  set(easy.get(), CURLOPT_PASSWORD, credentials.secret_key.c_str());
  curl::HttpClient::set_post(easy.get(), exchange, exchange.body);
  return easy;
}

Answer Client::perform(Exchange& exchange, const Credentials& credentials) const {
  const curl::Easy easy = prepare(exchange, credentials);
  set(easy.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(options_.plain.connect_timeout.count()));
  const CURLcode code = curl_easy_perform(easy.get());
  return curl::HttpClient::make_answer(exchange, easy.get(), code);
}

std::string lookup_body(const std::string& queue, const std::string& account) {
  std::string body = R"({"QueueName":)";
  event::append_json_string(body, queue);
  if (!account.empty()) {
    body += R"(,"QueueOwnerAWSAccountId":)";
    event::append_json_string(body, account);
  }
  return body += '}';
}

Fetch fetch_within(std::chrono::milliseconds limit) {
  limit = std::min(limit, kLongestFetch);
  return [limit](const CredentialRequest& request) -> Result<std::string> {
    const curl::HttpClient client(
        {.encrypted = request.url.starts_with("https:"), .connect_timeout = limit});
    curl::Exchange exchange;
    const curl::Easy easy = client.handle_for(exchange, request.url);
    for (const std::string& header : request.headers)
      curl::append(exchange.headers, header.c_str());
    set(easy.get(), CURLOPT_HTTPHEADER, exchange.headers.get());
    set(easy.get(), CURLOPT_CUSTOMREQUEST, request.method);
    set(easy.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(limit.count()));
    const CURLcode code = curl_easy_perform(easy.get());
    const Answer answer = curl::HttpClient::make_answer(exchange, easy.get(), code);
    if (answer.status == 200 && answer.whole()) return answer.body;
    return fail(Errc::unavailable, Remedy::retry_call,
                answer.status == 0 ? std::string(curl_easy_strerror(code))
                                   : fmt::format("it answered {}", answer.status));
  };
}

}  // namespace outbox::sink::sqs
