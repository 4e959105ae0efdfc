// Runs the suite over the sink for asynq, with a real server.
#include <unistd.h>

#include <atomic>

#include "conformance/sink/server_harness.hpp"
#include "integration/asynq/asynq_tasks.hpp"

namespace outbox::test {
namespace {

class AsynqHarness final : public ServerHarness {
 public:
  explicit AsynqHarness(SharedRedis server) : server_(std::move(server)) {
    static std::atomic<int> number{0};
    queue_ = "orders-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  }
  ~AsynqHarness() override {
    if (!RedisClient::answers(server_.port, server_.password)) return;
    unblock();
    RedisClient redis = client();
    for (const std::string& id : pending_ids(redis, queue_))
      (void)redis.run({"DEL", asynq_key(queue_, "t:" + id)});
    (void)redis.run({"DEL", asynq_key(queue_, "pending")});
    (void)redis.run({"SREM", "asynq:queues", queue_});
  }

  std::string server() const override { return "redis"; }
  std::string sink() const override { return "asynq"; }
  int port() const override { return server_.port; }

  SinkSettings settings(int port) const override {
    return {{"url", "redis://127.0.0.1:" + std::to_string(port)},
            {"password", server_.password},
            {"queue", queue_},
            {"deadline", "3s"},
            {"connect_timeout", "2s"}};
  }
  SinkSettings wrong_password(int port) const override {
    SinkSettings settings = this->settings(port);
    settings["password"] = "not-the-password";
    return settings;
  }

  std::vector<Arrived> delivered() override {
    RedisClient redis = client();
    return arrived_tasks(redis, queue_);
  }
  std::size_t too_large() const override { return (std::size_t{1} << 20U) + 1; }
  bool block() override {
    (void)client().run({"CONFIG", "SET", "maxmemory", "1"});
    return true;
  }
  void unblock() override { (void)client().run({"CONFIG", "SET", "maxmemory", "0"}); }

 private:
  [[nodiscard]] RedisClient client() const { return RedisClient(server_.port, server_.password); }

  const SharedRedis server_;
  std::string queue_;
};

}  // namespace

ServerHarnessKind server_harness_kind() {
  return {"asynq",
          []() -> std::unique_ptr<ServerHarness> {
            auto server = shared_redis();
            if (!server) return nullptr;
            return std::make_unique<AsynqHarness>(std::move(*server));
          },
          "needs a Redis server: OUTBOX_TEST_REDIS is not set (scripts/servers start DIR)"};
}

}  // namespace outbox::test
