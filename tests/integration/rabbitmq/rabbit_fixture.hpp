// What the tests of the RabbitMQ sink share: sinks with short limits, the outcomes of single
// messages.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "integration/rabbitmq/rabbit_client.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {

class RabbitSinkTest : public testing::Test {
 protected:
  using Settings = std::map<std::string, std::string>;

  void SetUp() override { OUTBOX_NEEDS_RABBITMQ(); }
  void TearDown() override {
    if (sink_) sink_->close();
  }

  [[nodiscard]] static const SharedRabbit& server() {
    static const SharedRabbit server = *shared_rabbit();
    return server;
  }
  [[nodiscard]] static std::string url(int port, const std::string& path = "") {
    return "amqp://127.0.0.1:" + std::to_string(port) + path;
  }

  /// Makes a sink for the server. Limits that are not in `settings` are short; a setting with the
  /// value "-" is left out.
  [[nodiscard]] static std::unique_ptr<Sink> make(Settings settings) {
    settings.emplace("url", url(server().port));
    settings.emplace("username", server().username);
    settings.emplace("password", server().password);
    settings.emplace("deadline", "5s");
    settings.emplace("connect_timeout", "5s");
    std::erase_if(settings, [](const auto& one) { return one.second == "-"; });
    SubscriptionSpec spec = make_spec("rabbitmq", std::move(settings));
    spec.topic = "orders";
    return make_sink(spec);
  }
  /// Makes the sink of the test, and opens it.
  void open(Settings settings = {}) {
    sink_ = make(std::move(settings));
    const Status opened = sink_->open();
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
  }
  [[nodiscard]] static std::string error_of_open(Settings settings) {
    const auto sink = make(std::move(settings));
    const Status opened = sink->open();
    sink->close();
    return opened ? "" : opened.error().text();
  }
  [[nodiscard]] std::string error_of_reopening() {
    const Status opened = sink_->open();
    return opened ? "" : opened.error().text();
  }

  /// Sends these messages of the load together, without opening anything again, and returns their
  /// outcomes by place.
  [[nodiscard]] std::map<std::size_t, Outcome> find_outcomes(const Load& load, std::size_t from,
                                                             std::size_t count) {
    std::vector<Message> messages;
    for (std::size_t place = from; place < from + count; ++place)
      messages.push_back(load.message(place, place + 1));
    const std::size_t taken = sink_->send(messages);
    EXPECT_EQ(taken, count);
    std::vector<Outcome> outcomes;
    EXPECT_TRUE(eventually([&] {
      sink_->receive(outcomes);
      return outcomes.size() >= taken;
    }));
    std::map<std::size_t, Outcome> by_place;
    for (const Outcome& outcome : outcomes) by_place[outcome.token - 1] = outcome;
    EXPECT_EQ(by_place.size(), count) << "one outcome for each";
    return by_place;
  }
  [[nodiscard]] Outcome find_outcome(const Load& load, std::size_t place = 0) {
    return find_outcomes(load, place, 1)[place];
  }

  static void expect_each_once(RabbitQueue& queue, const Load& load,
                               const std::vector<std::size_t>& except = {}) {
    const auto found = places(queue.arrived(), load);
    expect_complete_and_ordered(found, load, except);
    EXPECT_EQ(found.size() + except.size(), load.size());
  }

  std::unique_ptr<Sink> sink_;
};

/// An exchange with a unique name, which is removed at the end.
class RabbitExchange {
 public:
  explicit RabbitExchange(SharedRabbit server, std::string type = "topic")
      : server_(std::move(server)), type_(std::move(type)), name_(unique_rabbit_name()) {
    create();
  }
  RabbitExchange(const RabbitExchange&) = delete;
  RabbitExchange& operator=(const RabbitExchange&) = delete;
  ~RabbitExchange() {
    try {
      remove();
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  void create() { RabbitClient(server_).declare_exchange(name_, type_); }
  /// Removes the exchange if it is there.
  void remove() { RabbitClient(server_).delete_exchange(name_); }
  void give_to(const RabbitQueue& queue, const std::string& key) {
    RabbitClient(server_).bind(queue.name(), name_, key);
  }

 private:
  const SharedRabbit server_;
  const std::string type_;
  const std::string name_;
};

}  // namespace outbox::test
