// What the tests of sinks on a Redis server share: a server of their own, sinks with short limits,
// the outcomes of single messages.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "integration/redis/own_redis.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"

namespace outbox::test {

class OwnRedisTest : public testing::Test {
 protected:
  using Settings = std::map<std::string, std::string>;

  /// `kind` is that of the sinks.
  explicit OwnRedisTest(std::string kind) : kind_(std::move(kind)) {}

  void SetUp() override { OUTBOX_NEEDS_REDIS(); }
  void TearDown() override {
    if (sink_) sink_->close();
  }

  OwnRedis& server(std::vector<std::string> arguments = {}) {
    if (!server_) server_.emplace(std::move(arguments));
    return *server_;
  }
  /// Makes a sink for the server. Limits that are not in `settings` are short.
  [[nodiscard]] std::unique_ptr<Sink> make(Settings settings = {}) {
    settings.emplace("url", server().url());
    settings.emplace("deadline", "5s");
    settings.emplace("connect_timeout", "5s");
    return make_sink(make_spec(kind_, std::move(settings)));
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
  [[nodiscard]] Outcome find_outcome(const Load& load, std::size_t place = 0) {
    const Message message = load.message(place, place + 1);
    EXPECT_EQ(sink_->send({&message, 1}), 1U);
    std::vector<Outcome> outcomes;
    EXPECT_TRUE(eventually([&] {
      sink_->receive(outcomes);
      return !outcomes.empty();
    }));
    return outcomes.empty() ? Outcome() : outcomes.front();
  }

  const std::string kind_;
  std::optional<OwnRedis> server_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace outbox::test
