// Tests the RabbitMQ sink with a server or a network in trouble: alarms, limits that change,
// connections that are closed.
#include <gmock/gmock.h>

#include <stdexcept>

#include "integration/rabbitmq/rabbit_fixture.hpp"

namespace outbox::test {
namespace {

using testing::ElementsAre;
using Kind = Outcome::Kind;

/// Makes the server low on memory for as long as the object lives.
class MemoryAlarm {
 public:
  MemoryAlarm() { (void)rabbitmqctl({"set_vm_memory_high_watermark", "0"}); }
  MemoryAlarm(const MemoryAlarm&) = delete;
  MemoryAlarm& operator=(const MemoryAlarm&) = delete;
  ~MemoryAlarm() {
    try {
      end();
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  void end() {
    if (!ended_) (void)rabbitmqctl({"set_vm_memory_high_watermark", "0.4"});
    ended_ = true;
  }

 private:
  bool ended_{false};
};

/// The server reads nothing while it is low on memory, so that a client that writes and waits would
/// hang.
TEST_F(RabbitSinkTest, a_server_low_on_memory_blocks_and_neither_hangs_nor_loses) {
  RabbitQueue queue(server());
  Load load(queue.name());
  for (int i = 0; i < 400; ++i) load.add("k" + std::to_string(i), std::string(100'000, 'x'), "");
  sink_ = make({{"deadline", "1s"}});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(sink_->open());
  relay.offer(1);  // the first large one goes alone
  ASSERT_TRUE(relay.drain());
  relay.offer(19);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.acked(), 20U);
  MemoryAlarm alarm;
  relay.press_on(50);
  const std::size_t in_flight = relay.in_flight();
  EXPECT_LT(in_flight, 400U) << "it takes no more than the network does";
  ASSERT_TRUE(relay.drain());
  ASSERT_FALSE(relay.failures().empty());
  for (const auto& failure : relay.failures()) {
    EXPECT_TRUE(failure.outcome.kind == Kind::blocked || failure.outcome.kind == Kind::unknown);
    EXPECT_TRUE(contains(failure.outcome.error.text(), "low on memory"))
        << failure.outcome.error.text();
  }
  EXPECT_TRUE(contains(error_of_reopening(), "low on memory"));
  EXPECT_TRUE(contains(error_of_reopening(), "rabbitmqctl status"));
  const Message next = load.message(399, 10'000);
  std::vector<Outcome> outcomes;
  EXPECT_EQ(sink_->send({&next, 1}), 1U);
  sink_->receive(outcomes);
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].kind, Kind::blocked) << outcomes[0].error.text();
  alarm.end();
  ASSERT_TRUE(eventually([&] { return sink_->open().has_value(); }));
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  const auto found = places(queue.arrived(), load);
  expect_complete_and_ordered(found, load);
  EXPECT_LE(found.size(), load.size() + in_flight);
}

TEST_F(RabbitSinkTest, purge_and_close_return_while_the_server_is_low_on_memory) {
  RabbitQueue queue(server());
  Load load(queue.name());
  for (int i = 0; i < 200; ++i) load.add("k" + std::to_string(i), std::string(100'000, 'x'), "");
  sink_ = make({});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(sink_->open());
  MemoryAlarm alarm;
  relay.offer_all();
  sink_->purge();
  relay.receive();
  EXPECT_EQ(relay.in_flight(), 0U);
  sink_->close();
  alarm.end();
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(queue.arrived(), load), load);
}

/// The sink sends an event that is larger than all before it alone, and does not know that the
/// limit was lowered. Therefore the event that closes the channel has others around it.
TEST_F(RabbitSinkTest, an_event_that_closes_the_channel_is_found_among_others) {
  const auto set_limit = [](const char* bytes) {
    (void)rabbitmqctl(
        {"eval", std::string("application:set_env(rabbit, max_message_size, ") + bytes + ")."});
  };
  RabbitQueue queue(server());
  TcpGate gate(server().port);
  Load load(queue.name());
  load.add("first", std::string(3'000'000, 'x'), "");
  load.add_many(100, 100);
  load.add("large", std::string(2'500'000, 'x'), "");
  load.add_many(100, 100);
  set_limit("4194304");
  open({{"url", url(gate.port())}});
  EXPECT_EQ(find_outcome(load, 0).kind, Kind::acked);
  set_limit("2097152");
  gate.cut();  // a channel keeps the limit that it began with
  MiniRelay relay(*sink_, load);
  relay.offer(1);
  ASSERT_TRUE(relay.drain());
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  const auto rejected = relay.rejected();
  EXPECT_THAT(rejected, ElementsAre(0, 101));
  // The first one arrived while the limit was higher.
  expect_complete_and_ordered(places(queue.arrived(), load), load, {101});
}

TEST_F(RabbitSinkTest, connections_that_the_server_closes_are_made_again) {
  RabbitQueue queue(server());
  Load load(queue.name());
  load.add_many(2000, 500);
  sink_ = make({});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(sink_->open());
  relay.offer(500);
  const std::size_t in_flight = relay.in_flight();
  (void)rabbitmqctl({"close_all_connections", "maintenance"});
  ASSERT_TRUE(relay.deliver());
  const auto found = places(queue.arrived(), load);
  expect_complete_and_ordered(found, load);
  EXPECT_LE(found.size(), load.size() + in_flight);
  (void)rabbitmqctl({"close_all_connections", "maintenance"});
  Load one(queue.name());
  one.add_many(1, 1);
  const Message message = one.message(0, 1);
  std::vector<Outcome> outcomes;
  ASSERT_TRUE(eventually([&] {
    sink_->receive(outcomes);
    return sink_->send({&message, 1}) == 1;
  }));
  sink_->receive(outcomes);
  ASSERT_EQ(outcomes.size(), 1U) << "it has noticed, with nothing in flight";
  EXPECT_EQ(outcomes[0].kind, Kind::blocked);
  EXPECT_TRUE(contains(outcomes[0].error.text(), "CONNECTION_FORCED")) << outcomes[0].error.text();
  EXPECT_TRUE(sink_->open());
}

/// Nothing is in flight, so that only the missing heartbeats show the loss.
TEST_F(RabbitSinkTest, a_connection_that_dies_while_idle_is_made_again) {
  TcpGate gate(server().port);
  open({{"url", url(gate.port())}, {"heartbeat", "1s"}, {"connect_timeout", "1s"}});
  ASSERT_EQ(gate.connections(), 1);
  gate.set(TcpGate::Mode::blackhole);
  const RabbitQueue queue(server());
  Load load(queue.name());
  load.add_many(1, 1);
  std::vector<Outcome> outcomes;
  ASSERT_TRUE(eventually([&] {
    sink_->receive(outcomes);
    return !sink_->open();
  }));
  gate.set(TcpGate::Mode::open);
  ASSERT_TRUE(eventually([&] { return sink_->open().has_value(); }));
  EXPECT_EQ(find_outcome(load).kind, Kind::acked);
}

TEST_F(RabbitSinkTest, the_first_of_several_servers_that_answers_is_used) {
  RabbitQueue queue(server());
  TcpGate dead(server().port);
  dead.set(TcpGate::Mode::refused);
  TcpGate silent(server().port);
  silent.set(TcpGate::Mode::blackhole);
  open({{"url", url(dead.port()) + "," + url(silent.port()) + "," + url(server().port)}});
  Load load(queue.name());
  load.add_many(10, 10);
  for (const auto& [place, outcome] : find_outcomes(load, 0, load.size()))
    EXPECT_EQ(outcome.kind, Kind::acked) << place;
}

/// What was not written yet was not delivered. What was written may have been.
TEST_F(RabbitSinkTest, what_the_network_has_not_taken_is_not_in_doubt) {
  RabbitQueue queue(server());
  TcpGate gate(server().port);
  Load load(queue.name());
  for (int i = 0; i < 300; ++i) load.add("k" + std::to_string(i), std::string(50'000, 'x'), "");
  sink_ = make({{"url", url(gate.port())}});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(sink_->open());
  gate.set(TcpGate::Mode::stalled);
  relay.offer_all();
  gate.cut();
  ASSERT_TRUE(relay.drain());
  std::size_t in_doubt = 0;
  for (const auto& failure : relay.failures()) {
    EXPECT_TRUE(failure.outcome.kind == Kind::unknown || failure.outcome.kind == Kind::retry)
        << failure.outcome.error.text();
    if (failure.outcome.kind == Kind::unknown) ++in_doubt;
  }
  gate.set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  const auto found = places(queue.arrived(), load);
  expect_complete_and_ordered(found, load);
  EXPECT_LE(found.size(), load.size() + in_doubt);
}

}  // namespace
}  // namespace outbox::test
