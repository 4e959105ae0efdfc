// Runs the suite over the Redis sink, with a real server.
#include <unistd.h>

#include <atomic>

#include "conformance/sink/server_harness.hpp"
#include "integration/redis/redis_client.hpp"

namespace outbox::test {
namespace {

class RedisHarness final : public ServerHarness {
 public:
  explicit RedisHarness(SharedRedis server) : server_(std::move(server)) {
    static std::atomic<int> number{0};
    topic_ = "order.events." + std::to_string(::getpid()) + "." + std::to_string(++number);
  }
  ~RedisHarness() override {
    if (!RedisClient::answers(server_.port, server_.password)) return;
    unblock();
    (void)client().run({"DEL", topic_});
  }

  std::string topic() const override { return topic_; }
  std::string server() const override { return "redis"; }
  std::string sink() const override { return "redis"; }
  int port() const override { return server_.port; }

  SinkSettings settings(int port) const override {
    return {{"url", "redis://127.0.0.1:" + std::to_string(port)},
            {"password", server_.password},
            {"deadline", "3s"},
            {"connect_timeout", "2s"}};
  }
  SinkSettings wrong_password(int port) const override {
    SinkSettings settings = this->settings(port);
    settings["password"] = "not-the-password";
    return settings;
  }

  std::vector<Arrived> delivered() override { return client().arrived(topic_); }
  std::vector<std::string> illegal_topics() const override { return {""}; }
  std::size_t too_large() const override { return (std::size_t{1} << 20U) + 1; }
  bool block() override {
    (void)client().run({"CONFIG", "SET", "maxmemory", "1"});
    return true;
  }
  void unblock() override { (void)client().run({"CONFIG", "SET", "maxmemory", "0"}); }

 private:
  [[nodiscard]] RedisClient client() const { return RedisClient(server_.port, server_.password); }

  const SharedRedis server_;
  std::string topic_;
};

}  // namespace

ServerHarnessKind server_harness_kind() {
  return {"redis",
          []() -> std::unique_ptr<ServerHarness> {
            auto server = shared_redis();
            if (!server) return nullptr;
            return std::make_unique<RedisHarness>(std::move(*server));
          },
          "needs a Redis server: OUTBOX_TEST_REDIS is not set (scripts/servers start DIR)"};
}

}  // namespace outbox::test
