// The base of tests with an SQS sink, and a server that does what the queue's name says and checks
// each signature.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/sink/http_server.hpp"
#include "conformance/sink/making.hpp"
#include "conformance/sink/sending.hpp"
#include "conformance/sink/suite.hpp"

namespace outbox::test {

using Json = nlohmann::json;

/// Makes a sink with these settings, and with those that every test needs.
[[nodiscard]] inline std::unique_ptr<Sink> make_sqs_sink(
    int port, SinkSettings settings, const std::string& subscription = "orders") {
  SubscriptionSpec spec = make_spec("sqs", std::move(settings), subscription);
  if (!spec.sink_settings.contains("url")) spec.sink_settings.emplace("queue", "orders");
  for (const auto& [name, value] :
       SinkSettings{{"region", "eu-test-1"},
                    {"access_key", "AKIDTEST"},
                    {"secret_key", "a/secret+key"},
                    {"endpoint", "http://127.0.0.1:" + std::to_string(port)},
                    {"deadline", "5s"},
                    {"connect_timeout", "5s"}})
    spec.sink_settings.emplace(name, value);
  // With an empty key the settings have no keys at all, for tests in which they are found
  // elsewhere.
  if (spec.sink_settings["access_key"].empty()) {
    spec.sink_settings.erase("access_key");
    spec.sink_settings.erase("secret_key");
  }
  return make_sink(spec);
}

class SqsSink : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Sink> make(SinkSettings settings = {}) const {
    return make_sqs_sink(server_.port(), std::move(settings));
  }
  /// The outcome of one message that is sent to this queue.
  [[nodiscard]] Outcome outcome(const std::string& queue, SinkSettings settings = {}) const {
    Load load;
    load.add_many(1, 1);
    settings.emplace("queue", queue);
    return Sending(make(std::move(settings)), load).outcome();
  }
  /// The bodies of the requests of an operation that were answered with this status.
  [[nodiscard]] std::vector<Json> requests(const std::string& operation, int status = 200) const {
    std::vector<Json> found;
    for (const Received& request : server_.received()) {
      if (request.header("x-amz-target") == "AmazonSQS." + operation && request.status == status)
        found.push_back(Json::parse(request.body));
    }
    return found;
  }
  /// All entries of requests that were answered 200, in the order of arrival.
  [[nodiscard]] std::vector<Json> entries() const {
    std::vector<Json> all;
    for (const Json& request : requests("SendMessageBatch")) {
      for (const Json& entry : request.at("Entries")) all.push_back(entry);
    }
    return all;
  }

  HttpServer server_{std::nullopt, false, "sqs_server.py"};
};

}  // namespace outbox::test
