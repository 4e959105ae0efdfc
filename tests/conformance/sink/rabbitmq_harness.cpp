// Runs the suite over the RabbitMQ sink, with a real server.
#include "conformance/sink/server_harness.hpp"
#include "integration/rabbitmq/rabbit_client.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

class RabbitHarness final : public ServerHarness {
 public:
  /// Uses a classic queue: a quorum queue on one server that is killed seconds after it was made
  /// may never elect a leader again (3.10).
  explicit RabbitHarness(SharedRabbit server)
      : server_(std::move(server)), queue_(server_, {{"x-queue-type", "classic"}}) {}
  ~RabbitHarness() override {
    if (blocked_) RabbitHarness::unblock();
  }

  std::string topic() const override { return queue_.name(); }
  std::string server() const override { return "rabbitmq"; }
  std::string sink() const override { return "rabbitmq"; }
  int port() const override { return server_.port; }

  SinkSettings settings(int port) const override {
    return {{"url", "amqp://127.0.0.1:" + std::to_string(port)},
            {"username", server_.username},
            {"password", server_.password},
            {"deadline", "3s"},
            {"connect_timeout", "2s"}};
  }
  SinkSettings wrong_password(int port) const override {
    SinkSettings settings = this->settings(port);
    settings["password"] = "not-the-password";
    return settings;
  }

  std::vector<Arrived> delivered() override { return queue_.arrived(); }
  std::optional<std::string> missing_topic() const override { return "test.missing"; }
  std::vector<std::string> illegal_topics() const override { return {std::string(256, 'x')}; }
  /// The limit is set in scripts/lib/rabbitmq.sh.
  std::size_t too_large() const override { return (std::size_t{2} << 20U) + 1; }

  /// A server that is killed seconds after a queue was declared may come back without it, and with
  /// it every message is gone: Mnesia, which keeps the queues (3.10), writes its log later.
  void kill() override {
    (void)rabbitmqctl({"eval", "mnesia:sync_log()."});
    ServerHarness::kill();
  }

  bool block() override {
    blocked_ = true;
    set_memory("0");
    return eventually([] { return rabbitmqctl({"eval", kHasAlarm}).find("true") == 0; });
  }
  void unblock() override {
    set_memory("0.4");
    blocked_ = false;
  }

 private:
  static constexpr const char* kHasAlarm = "rabbit_alarm:get_alarms() =/= [].";
  static void set_memory(const char* part) {
    (void)rabbitmqctl({"set_vm_memory_high_watermark", part});
  }

  const SharedRabbit server_;
  RabbitQueue queue_;
  bool blocked_{false};
};

}  // namespace

ServerHarnessKind server_harness_kind() {
  return {
      "rabbitmq",
      []() -> std::unique_ptr<ServerHarness> {
        auto server = shared_rabbit();
        if (!server) return nullptr;
        return std::make_unique<RabbitHarness>(std::move(*server));
      },
      "needs a RabbitMQ server: OUTBOX_TEST_RABBITMQ is not set (scripts/servers start DIR rabbitmq)"};
}

}  // namespace outbox::test
