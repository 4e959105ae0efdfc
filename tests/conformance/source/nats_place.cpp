// Streams of NATS JetStream, for the suite of sources.
#include <fmt/format.h>

#include <chrono>

#include "conformance/source/place.hpp"
#include "integration/nats/server.hpp"

namespace outbox::conformance {
namespace {

class NatsPlace final : public Place {
 public:
  [[nodiscard]] ConsumerSpec spec() const override { return spec_of(stream_.name(), port()); }
  [[nodiscard]] ConsumerSpec spec_at(int port) const override {
    return spec_of(stream_.name(), port);
  }
  [[nodiscard]] int port() const override { return stream_.server().port; }
  [[nodiscard]] ConsumerSpec nowhere() const override {
    return spec_of(stream_.name() + "-nowhere", port());
  }

  void send(const std::vector<Sent>& messages) override {
    std::vector<test::NatsStored> all;
    for (const Sent& one : messages) {
      test::NatsStored& stored = all.emplace_back();
      stored.subject = stream_.subject();
      stored.body = one.payload;
      stored.headers.insert(one.headers.begin(), one.headers.end());
      if (!one.key.empty()) stored.headers["outbox-key"] = one.key;
    }
    stream_.send(all);
  }
  void take_back_soon(ConsumerSpec& spec) override {
    stream_.api("CONSUMER.DURABLE.CREATE." + stream_.name() + "." + spec.name,
                {{"stream_name", stream_.name()},
                 {"config",
                  {{"durable_name", spec.name},
                   {"ack_policy", "explicit"},
                   {"ack_wait", std::chrono::nanoseconds(std::chrono::seconds(1)).count()},
                   {"max_ack_pending", 1000}}}});
  }

 private:
  [[nodiscard]] ConsumerSpec spec_of(const std::string& stream, int port) const {
    return {.name = "of-" + stream,
            .source = "nats",
            .read = {stream},
            .settings = {{"url", fmt::format("nats://127.0.0.1:{}", port)},
                         {"username", stream_.server().user},
                         {"password", stream_.server().password}}};
  }

  // A durable consumer belongs to its stream, and no two tests have the same stream.
  test::NatsStream stream_{*test::shared_nats()};
};

}  // namespace

std::unique_ptr<Place> make_place() { return std::make_unique<NatsPlace>(); }

Limits limits() { return {}; }

const char* variable() { return "OUTBOX_TEST_NATS"; }

}  // namespace outbox::conformance
