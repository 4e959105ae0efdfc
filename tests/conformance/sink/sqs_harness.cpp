// Runs the suite over the SQS sink, with a FIFO queue of ElasticMQ.
#include "conformance/sink/http_server.hpp"
#include "conformance/sink/server_harness.hpp"
#include "integration/sqs/sqs_client.hpp"

namespace outbox::test {
namespace {

class SqsHarness final : public ServerHarness {
 public:
  explicit SqsHarness(int port)
      : client_(port), port_(port), queue_(fresh_queue(".fifo")), url_(client_.create(queue_)) {}
  ~SqsHarness() override { client_.remove(url_); }

  std::string server() const override { return "elasticmq"; }
  std::string sink() const override { return "sqs"; }
  int port() const override { return port_; }
  SinkSettings settings(int port) const override {
    return {{"queue", queue_},         {"region", "eu-test-1"},
            {"access_key", "AKID"},    {"secret_key", "any"},
            {"encoding", "auto"},      {"max_batch_bytes", "1MiB"},
            {"concurrency", "30"},     {"deadline", "3s"},
            {"connect_timeout", "2s"}, {"endpoint", "http://127.0.0.1:" + std::to_string(port)}};
  }
  /// Another server checks the password, because ElasticMQ accepts any.
  SinkSettings wrong_password(int /*port*/) const override {
    SinkSettings wrong = settings(checking_.port());
    wrong["access_key"] = "AKIDTEST";
    wrong["secret_key"] = "quite-wrong";
    return wrong;
  }
  std::string password_setting() const override { return "secret_key"; }
  std::size_t too_large() const override { return (std::size_t{1} << 20U) + 1; }

  bool must_be_emptied() const override { return true; }
  /// A message that was received is deleted at the server, so all of them are kept here.
  std::vector<Arrived> delivered() override {
    for (const SqsMessage& message : client_.drain(url_)) arrived_.push_back(make_arrived(message));
    return arrived_;
  }

 private:
  const SqsClient client_;
  const int port_;
  const std::string queue_;
  const std::string url_;
  const HttpServer checking_{std::nullopt, false, "sqs_server.py"};
  std::vector<Arrived> arrived_;
};

}  // namespace

ServerHarnessKind server_harness_kind() {
  return {"sqs",
          []() -> std::unique_ptr<ServerHarness> {
            const auto port = shared_sqs();
            if (!port) return nullptr;
            return std::make_unique<SqsHarness>(*port);
          },
          "needs an ElasticMQ server: OUTBOX_TEST_SQS is not set (scripts/servers start DIR)"};
}

}  // namespace outbox::test
