// Runs the suite over the NATS sink, with a real server and a stream for each test.
#include "conformance/sink/server_harness.hpp"
#include "integration/nats/server.hpp"
#include "integration/nats/sink_maker.hpp"

namespace outbox::test {
namespace {

class NatsHarness final : public ServerHarness {
 public:
  std::string server() const override { return "nats"; }
  std::string sink() const override { return "nats"; }
  int port() const override { return stream_.server().port; }
  std::string topic() const override { return stream_.subject(); }

  SinkSettings settings(int port) const override {
    SinkSettings all = nats_settings(stream_.server(), port);
    all["stream"] = stream_.name();
    all["deadline"] = "3s";
    all["connect_timeout"] = "2s";
    return all;
  }
  SinkSettings wrong_password(int port) const override {
    SinkSettings all = settings(port);
    all["password"] = "hunter2-wrong";
    return all;
  }

  std::optional<std::string> missing_topic() const override {
    return "nowhere." + stream_.name() + ".events";
  }
  std::vector<std::string> illegal_topics() const override {
    const std::string ours = stream_.subject("x");
    return {"",
            ours + " y",
            ours + "\ty",
            ours + "..",
            ours + ".*",
            ours + ".>",
            "." + ours,
            ours + ".",
            ours + "\r\nPUB y 0\r\n",
            ours + "*y",
            std::string(5000, 'x'),
            "$JS.API.STREAM.DELETE." + stream_.name()};
  }
  /// A body beyond the server's max_payload.
  std::size_t too_large() const override { return std::size_t{1} << 20U; }
  bool keeps_line_breaks() const override { return false; }

  bool block() override {
    stream_.change({{"max_msgs", 10}});
    return true;
  }
  void unblock() override { stream_.change({{"max_msgs", -1}}); }

  std::vector<Arrived> delivered() override { return stream_.arrived(); }

 private:
  NatsStream stream_{*shared_nats()};
};

}  // namespace

ServerHarnessKind server_harness_kind() {
  return {
      "nats",
      []() -> std::unique_ptr<ServerHarness> {
        if (!shared_nats()) return nullptr;
        return std::make_unique<NatsHarness>();
      },
      "needs a NATS server with JetStream: OUTBOX_TEST_NATS is not set (scripts/servers start DIR nats)"};
}

}  // namespace outbox::test
