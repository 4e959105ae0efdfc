// What the tests of the Redis sink share: a server of their own, sinks with short limits, the outcomes of single messages.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "conformance/sink/mini_relay.hpp"
#include "integration/redis/own_redis.hpp"
#include "sink/registry.hpp"
#include "support/servers.hpp"

namespace outbox::test {

constexpr const char* kStream = "order.events";

class RedisSinkTest : public testing::Test {
 protected:
  using Settings = std::map<std::string, std::string>;

  void SetUp() override { OUTBOX_NEEDS_REDIS(); }
  void TearDown() override {
    if (sink_) sink_->close();
  }

  OwnRedis& server(std::vector<std::string> arguments = {}) {
    if (!server_) server_.emplace(std::move(arguments));
    return *server_;
  }
  /// A sink for the server; what is not in `settings` is short.
  [[nodiscard]] std::unique_ptr<Sink> make(Settings settings = {}) {
    settings.emplace("url", server().url());
    settings.emplace("deadline", "5s");
    settings.emplace("connect_timeout", "5s");
    SubscriptionSpec spec;
    spec.name = "orders";
    spec.sink = "redis";
    spec.sink_settings = std::move(settings);
    auto made = sink::make_sink(spec);
    if (made) return std::move(*made);
    ADD_FAILURE() << made.error().text();
    return nullptr;
  }
  /// Makes the sink of the test, and opens it.
  void open(Settings settings = {}) {
    sink_ = make(std::move(settings));
    const Status opened = sink_->open();
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
  }
  [[nodiscard]] std::string error_of_open(Settings settings = {}) {
    const auto sink = make(std::move(settings));
    const Status opened = sink->open();
    sink->close();
    return opened ? "" : opened.error().text();
  }

  /// Sends one message of the load, without opening anything again.
  [[nodiscard]] Outcome outcome_of(const Load& load, std::size_t place = 0) {
    const Message message = load.message(place, place + 1);
    EXPECT_EQ(sink_->send({&message, 1}), 1U);
    std::vector<Outcome> outcomes;
    EXPECT_TRUE(eventually([&] {
      sink_->receive(outcomes);
      return !outcomes.empty();
    }));
    return outcomes.empty() ? Outcome() : outcomes.front();
  }

  [[nodiscard]] long length(const std::string& stream = kStream) {
    return server().client().number({"XLEN", stream});
  }
  [[nodiscard]] bool is_remembered(const Load& load, std::size_t place = 0) {
    const std::string key =
        "outbox:dedup:{" + load.item(place).topic + "}:" + load.item(place).id_text;
    return server().client().number({"EXISTS", key}) == 1;
  }
  void expect_each_once(const Load& load) {
    const auto found = places(server().client().arrived(kStream), load);
    expect_complete_and_ordered(found, load);
    EXPECT_EQ(found.size(), load.size());
  }

  std::optional<OwnRedis> server_;
  std::unique_ptr<Sink> sink_;
};

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace outbox::test
