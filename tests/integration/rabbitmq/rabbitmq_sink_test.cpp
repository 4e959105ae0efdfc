// Tests the RabbitMQ sink with a real server: what arrives, routing, what is declared, what the
// server refuses.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "event/time_text.hpp"
#include "integration/rabbitmq/rabbit_fixture.hpp"
#include "sink/rabbitmq/config.hpp"
#include "sink/rabbitmq/management.hpp"

namespace outbox::test {
namespace {

using testing::ElementsAre;
using Kind = Outcome::Kind;

// ---- what arrives

TEST_F(RabbitSinkTest, a_message_has_the_events_properties_and_all_headers) {
  RabbitQueue queue(server());
  Load load(queue.name());
  Load::Item& item = load.add("schlüssel", "{}");
  const std::string bytes("a\r\nb\0c\xff", 7);
  item.headers.push_back({.name = "Größe", .value = "ü 日本 🙂"});
  item.headers.push_back({.name = "bytes", .value = bytes});
  item.headers.push_back({.name = "empty", .value = ""});
  item.headers.push_back({.name = "none", .value = "", .absent = true});
  item.headers.push_back({.name = "correlation_id", .value = "request 7"});
  item.event.occurred_at = event::timestamp(1'700'000'000'500'000);
  open();
  EXPECT_EQ(find_outcome(load).kind, Kind::acked);
  const auto& messages = queue.messages();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].exchange, "");
  EXPECT_EQ(messages[0].routing_key, queue.name());
  EXPECT_EQ(messages[0].body, "{}");
  EXPECT_EQ(messages[0].properties, (Settings{{"content_type", "application/json"},
                                              {"correlation_id", "request 7"},
                                              {"message_id", item.id_text},
                                              {"type", "OrderPlaced"},
                                              {"app_id", "outbox"},
                                              {"timestamp", "1700000000"},
                                              {"delivery_mode", "2"}}));
  EXPECT_EQ(messages[0].headers, (Settings{{"outbox-id", item.id_text},
                                           {"outbox-seq", "1"},
                                           {"content-type", "application/json"},
                                           {"Größe", "ü 日本 🙂"},
                                           {"bytes", bytes},
                                           {"empty", ""},
                                           {"correlation_id", "request 7"},
                                           {"outbox-key", "schlüssel"}}));
  EXPECT_THAT(messages[0].empty_headers, ElementsAre("none"));
}

TEST_F(RabbitSinkTest, bodies_of_any_size_and_any_bytes_arrive_as_they_are) {
  RabbitQueue queue(server());
  Load load(queue.name());
  std::string all_bytes;
  for (int i = 0; i < 1024; ++i) all_bytes.push_back(static_cast<char>(i));
  constexpr std::size_t kFrame = std::size_t{128} << 10U;
  for (const std::size_t size : {kFrame - 9, kFrame - 8, kFrame - 7, 3 * kFrame, 15 * kFrame})
    load.add("k", std::string(size, 'x'), "text/plain");
  load.add("k", all_bytes, "application/octet-stream");
  load.add("k", "", "");
  sink_ = make({});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  const auto& messages = queue.messages();
  ASSERT_EQ(messages.size(), load.size());
  for (std::size_t i = 0; i < load.size(); ++i)
    EXPECT_TRUE(messages[i].body == load.item(i).body) << "body " << i;
}

// ---- routing

TEST_F(RabbitSinkTest, an_exchange_that_depends_on_the_event_gets_its_events) {
  RabbitExchange exchange(server());
  RabbitQueue queue(server());
  exchange.give_to(queue, "order.#");
  Load load("order.placed");
  load.add_many(3, 3);
  const std::string illegal = exchange.name() + "\n";
  const std::string none = exchange.name() + ".none";
  load.item(0).event.aggregate_type = exchange.name();
  load.item(1).event.aggregate_type = illegal;
  load.item(2).event.aggregate_type = none;
  open({{"exchange", "{aggregate_type}"}});
  EXPECT_EQ(find_outcome(load, 0).kind, Kind::acked);
  EXPECT_EQ(find_outcome(load, 1).kind, Kind::rejected);
  const Outcome missing = find_outcome(load, 2);
  EXPECT_EQ(missing.kind, Kind::blocked) << missing.error.text();
  EXPECT_TRUE(contains(missing.error.text(), none)) << missing.error.text();
  ASSERT_EQ(queue.messages().size(), 1U);
  EXPECT_EQ(queue.messages()[0].exchange, exchange.name());
  EXPECT_EQ(queue.messages()[0].routing_key, "order.placed");
}

TEST_F(RabbitSinkTest, an_event_for_a_missing_exchange_is_found_among_others) {
  RabbitExchange exchange(server());
  RabbitQueue queue(server());
  exchange.give_to(queue, "#");
  Load load("order.placed");
  load.add_many(20, 20);
  for (std::size_t i = 0; i < load.size(); ++i) load.item(i).event.aggregate_type = exchange.name();
  const std::string none = exchange.name() + ".none";
  load.item(7).event.aggregate_type = none;
  open({{"exchange", "{aggregate_type}"}});
  for (const auto& [place, outcome] : find_outcomes(load, 0, load.size())) {
    EXPECT_TRUE(outcome.kind == Kind::unknown || (place < 7 && outcome.kind == Kind::acked))
        << place << ": " << outcome.error.text();
  }
  ASSERT_TRUE(sink_->open());
  const Message first = load.message(6, 107);
  const Message second = load.message(7, 108);
  EXPECT_EQ(sink_->send(std::vector<Message>{first, second}), 1U) << "one at a time";
  std::vector<Outcome> outcomes;
  ASSERT_TRUE(eventually([&] {
    sink_->receive(outcomes);
    return !outcomes.empty();
  }));
  EXPECT_EQ(outcomes[0].kind, Kind::acked) << outcomes[0].error.text();
  EXPECT_EQ(find_outcome(load, 7).kind, Kind::blocked);
}

TEST_F(RabbitSinkTest, an_event_that_no_queue_gets_blocks_and_is_delivered_later) {
  RabbitExchange exchange(server());
  RabbitQueue queue(server());
  exchange.give_to(queue, "order.placed");
  Load load("order.placed");
  load.add_many(20, 20);
  load.item(7).topic = "order.cancelled";
  open({{"exchange", exchange.name()}});
  for (const auto& [place, outcome] : find_outcomes(load, 0, load.size())) {
    EXPECT_EQ(outcome.kind, place == 7 ? Kind::blocked : Kind::acked) << place;
    if (place != 7) continue;
    EXPECT_TRUE(contains(outcome.error.text(), "order.cancelled")) << outcome.error.text();
    EXPECT_TRUE(contains(outcome.error.text(), exchange.name())) << outcome.error.text();
    EXPECT_TRUE(contains(outcome.error.text(), "NO_ROUTE")) << outcome.error.text();
  }
  EXPECT_EQ(error_of_reopening(), "");
  exchange.give_to(queue, "order.cancelled");
  EXPECT_EQ(find_outcome(load, 7).kind, Kind::acked);
  EXPECT_EQ(queue.messages().size(), load.size());
}

TEST_F(RabbitSinkTest, events_that_no_queue_gets_can_be_parked_or_discarded) {
  RabbitExchange exchange(server());
  Load load("order.placed");
  load.add_many(5, 5);
  open({{"exchange", exchange.name()}, {"unroutable", "reject"}});
  for (const auto& [place, outcome] : find_outcomes(load, 0, load.size()))
    EXPECT_EQ(outcome.kind, Kind::rejected) << place;
  open({{"exchange", exchange.name()}, {"unroutable", "discard"}});
  for (const auto& [place, outcome] : find_outcomes(load, 0, load.size()))
    EXPECT_EQ(outcome.kind, Kind::acked) << place;
}

TEST_F(RabbitSinkTest, of_two_events_with_one_id_the_one_without_a_queue_is_found) {
  RabbitQueue queue(server());
  Load load(queue.name());
  load.add_many(2, 2);
  load.item(1).event.id = load.item(0).event.id;
  load.item(1).topic = "test.nowhere";
  open();
  auto outcomes = find_outcomes(load, 0, 2);
  EXPECT_EQ(outcomes[0].kind, Kind::acked);
  EXPECT_EQ(outcomes[1].kind, Kind::blocked);
}

// ---- what is declared

class RabbitTopology : public RabbitSinkTest {
 protected:
  void TearDown() override {
    RabbitSinkTest::TearDown();
    if (IsSkipped()) return;
    RabbitClient client(server());
    client.delete_queue(queue_);
    client.delete_exchange(exchange_);
  }
  const std::string exchange_ = unique_rabbit_name();
  const std::string queue_ = unique_rabbit_name();
};

TEST_F(RabbitTopology, what_is_missing_is_named_and_not_made) {
  EXPECT_TRUE(contains(error_of_open({{"exchange", exchange_}}), exchange_));
  EXPECT_TRUE(contains(error_of_open({{"queue", queue_}}), queue_));
  EXPECT_TRUE(contains(error_of_open({{"queue", queue_}}), "rabbitmq.declare"));
  RabbitClient client(server());
  EXPECT_FALSE(client.has_exchange(exchange_));
  EXPECT_FALSE(client.has_queue(queue_));
}

TEST_F(RabbitTopology, exchange_queue_and_binding_can_be_declared_again_and_again) {
  const Settings settings{
      {"declare", "true"}, {"exchange", exchange_}, {"queue", queue_}, {"binding", "order.#"}};
  Load load("order.placed");
  load.add_many(3, 3);
  load.item(2).topic = "customer.moved";
  for (int round = 0; round < 2; ++round) {
    open(settings);
    EXPECT_EQ(find_outcome(load, 0).kind, Kind::acked);
    EXPECT_EQ(find_outcome(load, 2).kind, Kind::blocked);
  }
  // Without `declare`, anyone finds the exchange and the queue by the same properties.
  EXPECT_EQ(error_of_open({{"exchange", exchange_}, {"queue", queue_}}), "");
  RabbitClient client(server());
  client.declare_queue(queue_, {{"x-queue-type", "quorum"}});
  client.declare_exchange(exchange_, "topic");
  std::vector<RabbitMessage> found;
  client.take_all(queue_, found);
  EXPECT_EQ(found.size(), 2U);
}

TEST_F(RabbitTopology, without_a_binding_the_queue_gets_everything) {
  for (const char* type : {"topic", "fanout"}) {
    RabbitClient(server()).delete_exchange(exchange_);
    open(
        {{"declare", "true"}, {"exchange", exchange_}, {"exchange_type", type}, {"queue", queue_}});
    Load load("any.thing");
    load.add_many(1, 1);
    EXPECT_EQ(find_outcome(load).kind, Kind::acked) << type;
  }
}

TEST_F(RabbitTopology, a_queue_alone_is_reached_by_its_name) {
  open({{"declare", "true"}, {"queue", queue_}, {"queue_type", "stream"}});
  Load load(queue_);
  load.add_many(1, 1);
  EXPECT_EQ(find_outcome(load).kind, Kind::acked);
}

TEST_F(RabbitTopology, what_exists_with_other_properties_is_refused) {
  RabbitClient client(server());
  client.declare_queue(queue_, {{"x-queue-type", "classic"}});
  client.declare_exchange(exchange_, "direct");
  const std::string queue = error_of_open({{"declare", "true"}, {"queue", queue_}});
  EXPECT_TRUE(contains(queue, "rabbitmq.queue_type")) << queue;
  const std::string exchange = error_of_open({{"declare", "true"}, {"exchange", exchange_}});
  EXPECT_TRUE(contains(exchange, "rabbitmq.exchange_type")) << exchange;
}

// ---- what the server says about a queue

class RabbitManagement : public RabbitSinkTest {
 protected:
  /// The properties that weaken the queue, or an error. The management API learns of a queue a
  /// little later.
  [[nodiscard]] static std::string read_warnings(const std::string& queue,
                                                 const std::string& password = server().password) {
    FieldErrors errors;
    sink::rabbitmq::RabbitSettings settings;
    settings.url = url(server().port);
    settings.username = server().username;
    settings.password = password;
    settings.queue = queue;
    settings.management_url = server().management;
    const auto options = sink::rabbitmq::parse_options(settings, errors);
    EXPECT_TRUE(errors.empty());
    const auto answer = sink::rabbitmq::ask_about_queue(
        options, std::chrono::steady_clock::now() + std::chrono::seconds(60));
    if (!answer) return answer.error().text();
    const auto checked = sink::rabbitmq::check_queue(*answer);
    if (!checked) return checked.error().text();
    std::string all;
    for (const auto& one : *checked) all += (all.empty() ? "" : ", ") + one.setting;
    return all;
  }
  static void expect_said(const RabbitQueue& queue, const std::string& words) {
    EXPECT_TRUE(
        eventually([&] { return read_warnings(queue.name()) == words; }, std::chrono::seconds(30)))
        << read_warnings(queue.name()) << " instead of " << words;
  }
};

TEST_F(RabbitManagement, says_what_weakens_a_queue) {
  // The server of the tests is the only member.
  expect_said(RabbitQueue(server()), "members = 1");
  expect_said(RabbitQueue(server(), {{"x-queue-type", "classic"}}), "type = classic");
  expect_said(RabbitQueue(server(), {{"x-max-length", "7"}, {"x-overflow", "reject-publish"}}),
              "type = classic");
  expect_said(RabbitQueue(server(), {{"x-max-length", "7"}, {"x-message-ttl", "60000"}}),
              "type = classic, max-length = 7, message-ttl = 60000");
}

TEST_F(RabbitManagement, its_refusals_say_what_to_do) {
  EXPECT_TRUE(contains(read_warnings("test.no-such-queue"), "HTTP 404"));
  const std::string refused = read_warnings("test.any", "not-the-password");
  EXPECT_TRUE(contains(refused, "HTTP 401")) << refused;
  EXPECT_TRUE(contains(refused, "monitoring")) << refused;
  EXPECT_FALSE(contains(refused, "not-the-password")) << refused;
}

TEST_F(RabbitManagement, a_queue_that_cannot_be_checked_is_delivered_to_all_the_same) {
  RabbitQueue queue(server());
  open({{"queue", queue.name()}, {"management_url", "http://127.0.0.1:1"}});
  Load load(queue.name());
  load.add_many(1, 1);
  EXPECT_EQ(find_outcome(load).kind, Kind::acked);
}

// ---- what the server refuses

TEST_F(RabbitSinkTest, a_full_queue_blocks_and_gets_everything_when_it_is_emptied) {
  // A quorum queue takes more than its limit from a client before it refuses.
  RabbitQueue queue(
      server(),
      {{"x-queue-type", "classic"}, {"x-max-length", "5"}, {"x-overflow", "reject-publish"}});
  Load load(queue.name());
  load.add_many(30, 30);
  sink_ = make({});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver(std::chrono::seconds(60), [&] { (void)queue.messages(); }));
  ASSERT_FALSE(relay.failures().empty());
  for (const auto& failure : relay.failures()) {
    EXPECT_EQ(failure.outcome.kind, Kind::blocked) << failure.outcome.error.text();
    EXPECT_TRUE(contains(failure.outcome.error.text(), "reject-publish"));
  }
  expect_each_once(queue, load);
}

TEST_F(RabbitSinkTest, an_event_larger_than_the_sinks_limit_is_not_sent) {
  RabbitQueue queue(server());
  TcpGate gate(server().port);
  Load load(queue.name());
  load.add_many(20, 20);
  load.add("large", std::string(5000, 'x'), "text/plain");
  load.add_many(20, 20);
  sink_ = make({{"url", url(gate.port())}, {"max_message_size", "4KiB"}});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_THAT(relay.rejected(), ElementsAre(20));
  EXPECT_EQ(gate.connections(), 1);
  expect_each_once(queue, load, {20});
}

/// Each such event closes the channel, and the connection goes on with a new channel.
TEST_F(RabbitSinkTest, events_larger_than_the_servers_limit_are_rejected_on_one_connection) {
  RabbitQueue queue(server());
  TcpGate gate(server().port);
  Load load(queue.name());
  for (int i = 0; i < 3; ++i) {
    load.add("large", std::string((std::size_t{2} << 20U) + 1, 'x'), "text/plain");
    load.add_many(50, 50);
  }
  sink_ = make({{"url", url(gate.port())}});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_THAT(relay.rejected(), ElementsAre(0, 51, 102));
  EXPECT_EQ(gate.connections(), 1);
  expect_each_once(queue, load, {0, 51, 102});
}

TEST_F(RabbitSinkTest, headers_that_do_not_fit_into_a_frame_are_the_events_fault) {
  RabbitQueue queue(server());
  Load load(queue.name());
  load.add_many(20, 20);
  const std::string large(200'000, 'x');
  load.item(4).headers.push_back({.name = "large", .value = large});
  load.item(7).headers.push_back({.name = "CC", .value = "another"});
  sink_ = make({});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_THAT(relay.rejected(), ElementsAre(4, 7));
  expect_each_once(queue, load, {4, 7});
}

/// What was sent behind the message that closed the channel has no answer.
TEST_F(RabbitSinkTest, an_exchange_deleted_under_load_blocks_and_what_was_sent_is_in_doubt) {
  RabbitExchange exchange(server());
  RabbitQueue queue(server());
  exchange.give_to(queue, "#");
  Load load("order.placed");
  load.add_many(300, 300);
  sink_ = make({{"exchange", exchange.name()}});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(sink_->open());
  relay.offer(100);
  ASSERT_TRUE(relay.drain());
  exchange.remove();
  relay.offer(100);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 100U);
  ASSERT_EQ(relay.failures().size(), 100U);
  for (const auto& failure : relay.failures()) {
    EXPECT_EQ(failure.outcome.kind, Kind::unknown) << failure.outcome.error.text();
    EXPECT_EQ(failure.outcome.error.effect, Effect::unknown);
    EXPECT_TRUE(contains(failure.outcome.error.text(), exchange.name()));
  }
  EXPECT_TRUE(contains(error_of_reopening(), exchange.name()));
  exchange.create();
  exchange.give_to(queue, "#");
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_each_once(queue, load);
}

TEST_F(RabbitSinkTest, an_exchange_deleted_before_a_single_event_blocks) {
  RabbitExchange exchange(server());
  Load load("order.placed");
  load.add_many(1, 1);
  open({{"exchange", exchange.name()}});
  exchange.remove();
  const Outcome outcome = find_outcome(load);
  EXPECT_EQ(outcome.kind, Kind::blocked) << outcome.error.text();
  EXPECT_TRUE(contains(outcome.error.text(), "NOT_FOUND")) << outcome.error.text();
  EXPECT_FALSE(outcome.error.hint.empty());
}

}  // namespace
}  // namespace outbox::test
