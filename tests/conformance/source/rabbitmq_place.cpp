// A queue of RabbitMQ of the type OUTBOX_TEST_QUEUE_TYPE, for the suite of sources.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "conformance/source/place.hpp"
#include "integration/rabbitmq/rabbit_client.hpp"
#include "sink/rabbitmq/table.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"

namespace outbox::conformance {
namespace {

using sink::rabbitmq::make_entry;
using sink::rabbitmq::make_table;

class RabbitPlace final : public Place {
 public:
  RabbitPlace()
      : server_(*test::shared_rabbit()),
        queue_(server_, {{"x-queue-type", OUTBOX_TEST_QUEUE_TYPE}}) {}

  [[nodiscard]] ConsumerSpec spec() const override { return spec_at(server_.port); }
  [[nodiscard]] ConsumerSpec spec_at(int port) const override {
    return spec_of(queue_.name(), port);
  }
  [[nodiscard]] int port() const override { return server_.port; }
  [[nodiscard]] ConsumerSpec nowhere() const override {
    return spec_of(test::unique_rabbit_name(), server_.port);
  }

  void send(const std::vector<Sent>& messages) override {
    test::RabbitClient client(server_);
    for (const Sent& one : messages) {
      std::vector<amqp_table_entry_t> headers;
      for (const auto& [name, value] : one.headers) headers.push_back(make_entry(name, value));
      if (!one.key.empty()) headers.push_back(make_entry("outbox-key", one.key));
      amqp_basic_properties_t properties{};
      properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_HEADERS_FLAG;
      properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
      properties.headers = make_table(headers);
      client.publish(queue_.name(), properties, one.payload);
    }
    client.confirm();
  }
  /// RabbitMQ 3.10 never starts a quorum queue again that is not yet in the file names.dets, which
  /// it writes when nothing has been registered for half a second (ra_directory).
  void wait_until_kept() override {
    const auto folder = test::environment("OUTBOX_TEST_SERVERS");
    if (!folder) return;
    EXPECT_TRUE(test::eventually([&] {
      for (const auto& entry :
           std::filesystem::recursive_directory_iterator(*folder + "/rabbitmq/data")) {
        if (entry.path().filename() != "names.dets") continue;
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        if (bytes.find(queue_.name()) != std::string::npos) return true;
      }
      return false;
    }));
  }

 private:
  [[nodiscard]] ConsumerSpec spec_of(const std::string& queue, int port) const {
    return {.name = "suite",
            .source = "rabbitmq",
            .read = {queue},
            .settings = {{"url", "amqp://127.0.0.1:" + std::to_string(port)},
                         {"username", server_.username},
                         {"password", server_.password}}};
  }

  const test::SharedRabbit server_;
  const test::RabbitQueue queue_;
};

}  // namespace

std::unique_ptr<Place> make_place() { return std::make_unique<RabbitPlace>(); }

Limits limits() { return {.start = false}; }

const char* variable() { return "OUTBOX_TEST_RABBITMQ"; }

}  // namespace outbox::conformance
