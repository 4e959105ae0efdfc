#include "sink/http/client.hpp"

namespace outbox::sink::http {
namespace {

using curl::set;

curl::HttpClient::Options client_options(const HttpOptions& options) {
  return {.encrypted = options.target.encrypted(),
          .proxy = options.plain.proxy,
          .tls = options.plain.tls,
          .connect_timeout = options.plain.connect_timeout,
          // Behind a proxy the sink connects to the proxy's address, which the settings name.
          .guard = options.plain.proxy.empty() ? &options.guard : nullptr};
}

}  // namespace

Client::Client(const HttpOptions& options) : options_(options), client_(client_options(options)) {
  set_identity();
}

void Client::set_identity() const {
  CURL* const easy = client_.prototype();
  const HttpSettings& plain = options_.plain;
  if (plain.username.empty()) return;
  set(easy, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
  set(easy, CURLOPT_USERNAME, plain.username.c_str());
  set(easy, CURLOPT_PASSWORD, plain.password.c_str());
}

std::string_view Client::make_body(Exchange& exchange) {
  const Request& request = exchange.request;
  if (!request.is_array) return request.parts.front().body;
  if (exchange.array.empty()) exchange.array = join_array(request.parts);
  return exchange.array;
}

curl::Easy Client::prepare(Exchange& exchange, const std::vector<std::string>& stamp) const {
  curl::Easy easy = client_.handle_for(exchange, exchange.request.url);
  for (const std::string& line : exchange.request.headers)
    curl::append(exchange.headers, line.c_str());
  for (const std::string& line : stamp) curl::append(exchange.headers, line.c_str());
  curl::HttpClient::set_post(easy.get(), exchange, make_body(exchange));
  set(easy.get(), CURLOPT_CUSTOMREQUEST, options_.plain.method.c_str());
  return easy;
}

}  // namespace outbox::sink::http
