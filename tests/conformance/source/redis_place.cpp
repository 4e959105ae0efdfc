// Streams of Redis, for the suite of sources.
#include "conformance/source/place.hpp"
#include "integration/redis/redis_client.hpp"

namespace outbox::conformance {
namespace {

std::string unique_name(const std::string& prefix) {
  return prefix + "-" + EventId::generate().str();
}

class RedisPlace final : public Place {
 public:
  RedisPlace() : server_(*test::shared_redis()), stream_(unique_name("outbox-test")) {}
  ~RedisPlace() override { (void)client().run({"DEL", stream_, nowhere_}); }

  [[nodiscard]] ConsumerSpec spec() const override { return spec_of(stream_, server_.port); }
  [[nodiscard]] ConsumerSpec spec_at(int port) const override { return spec_of(stream_, port); }
  [[nodiscard]] int port() const override { return server_.port; }
  [[nodiscard]] ConsumerSpec nowhere() const override { return spec_of(nowhere_, server_.port); }

  void send(const std::vector<Sent>& messages) override {
    test::RedisClient client = this->client();
    for (const Sent& one : messages) {
      test::Words command{"XADD", stream_, "*"};
      for (const auto& [name, value] : one.headers) command.insert(command.end(), {name, value});
      if (!one.key.empty()) command.insert(command.end(), {"key", one.key});
      command.insert(command.end(), {"body", one.payload});
      (void)client.run(command);
    }
  }

 private:
  [[nodiscard]] test::RedisClient client() const {
    return test::RedisClient(server_.port, server_.password);
  }
  [[nodiscard]] ConsumerSpec spec_of(const std::string& stream, int port) const {
    return {.name = unique_name("group"),
            .source = "redis",
            .read = {stream},
            .settings = {{"url", "redis://127.0.0.1:" + std::to_string(port)},
                         {"password", server_.password}}};
  }

  const test::SharedRedis server_;
  const std::string stream_;
  const std::string nowhere_{unique_name("outbox-test-nowhere")};
};

}  // namespace

std::unique_ptr<Place> make_place() { return std::make_unique<RedisPlace>(); }

/// Redis before 7.0 does not count what a group has not received.
Limits limits() {
  const auto server = test::shared_redis();
  const bool counts =
      server &&
      std::stoi(test::RedisClient(server->port, server->password).info("redis_version")) >= 7;
  return {.ordered_after_kill = true, .lag = counts, .needs_place = false};
}

const char* variable() { return "OUTBOX_TEST_REDIS"; }

}  // namespace outbox::conformance
