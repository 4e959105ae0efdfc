// Tests what is RabbitMQ's own of its source: properties and headers, queues that are missing or go
// away, what the server refuses. tests/conformance/source tests what every source promises.
#include "source/rabbitmq/rabbitmq_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "event/time_text.hpp"
#include "integration/rabbitmq/rabbit_client.hpp"
#include "sink/rabbitmq/table.hpp"
#include "source/registry.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using namespace std::chrono_literals;
using sink::rabbitmq::make_entry;
using sink::rabbitmq::make_table;
using sink::rabbitmq::to_bytes;
using source::Received;
using source::Source;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class RabbitSourceTest : public testing::Test {
 protected:
  using Settings = std::map<std::string, std::string>;

  void SetUp() override { OUTBOX_NEEDS_RABBITMQ(); }

  [[nodiscard]] static const SharedRabbit& server() {
    static const SharedRabbit server = *shared_rabbit();
    return server;
  }
  [[nodiscard]] static ConsumerSpec spec(std::vector<std::string> queues, Settings settings = {}) {
    settings.emplace("url", "amqp://127.0.0.1:" + std::to_string(server().port));
    settings.emplace("username", server().username);
    settings.emplace("password", server().password);
    return {.name = "billing",
            .source = "rabbitmq",
            .read = std::move(queues),
            .settings = std::move(settings)};
  }
  [[nodiscard]] static std::unique_ptr<Source> open(const ConsumerSpec& spec) {
    auto made = source::make_source(spec);
    EXPECT_TRUE(made) << made.error().text();
    const Status opened = (*made)->open();
    EXPECT_TRUE(opened) << opened.error().text();
    return std::move(*made);
  }
  [[nodiscard]] static Error error_of_open(const ConsumerSpec& spec) {
    const auto made = source::make_source(spec);
    EXPECT_TRUE(made) << made.error().text();
    const Status opened = (*made)->open();
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }

  static void send(const std::string& queue, int first, int last, std::size_t size = 0) {
    RabbitClient client(server());
    for (int i = first; i < last; ++i) {
      amqp_basic_properties_t properties{};
      client.publish(queue, properties, std::to_string(i) + std::string(size, ' '));
    }
    client.confirm();
  }
  /// Reads until there are `count` messages.
  static std::vector<Received> read(Source& from, std::size_t count, std::size_t most = 100) {
    std::vector<Received> all;
    EXPECT_TRUE(eventually([&] {
      const Status status = from.receive({.messages = most, .wait = 100ms}, all);
      EXPECT_TRUE(status) << status.error().text();
      return !status || all.size() >= count;
    }));
    EXPECT_EQ(all.size(), count);
    return all;
  }
  /// Lets the source stay connected, without any message, until the condition holds.
  template <class Condition>
  static void pause(Source& from, Condition condition, std::size_t bytes = 1U << 20U) {
    std::vector<Received> none;
    EXPECT_TRUE(eventually([&] {
      const Status status = from.receive({.messages = 0, .bytes = bytes, .wait = 100ms}, none);
      EXPECT_TRUE(status) << status.error().text();
      return !status || condition();
    }));
    EXPECT_THAT(none, IsEmpty());
  }
  static std::vector<int> numbers(const std::vector<Received>& messages) {
    std::vector<int> all;
    for (const Received& one : messages) all.push_back(std::stoi(one.payload));
    return all;
  }
  static std::vector<int> range(int first, int last) {
    std::vector<int> all;
    for (int i = first; i < last; ++i) all.push_back(i);
    return all;
  }
  static std::string header(const Received& message, const std::string& name) {
    std::string found = "none";
    for (const auto& [each, value] : message.headers) {
      if (each == name) found = value;
    }
    return found;
  }
};

amqp_table_entry_t entry_of(const char* name, amqp_field_value_kind_t kind) {
  amqp_table_entry_t entry{};
  entry.key = to_bytes(name);
  entry.value.kind = static_cast<std::uint8_t>(kind);
  return entry;
}

// ---- messages

TEST_F(RabbitSourceTest, reads_the_properties) {
  const RabbitQueue queue(server());
  {
    RabbitClient client(server());
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TYPE_FLAG |
                        AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG |
                        AMQP_BASIC_TIMESTAMP_FLAG;
    properties.message_id = to_bytes("m-1");
    properties.type = to_bytes("OrderPlaced");
    properties.content_type = to_bytes("application/json");
    properties.correlation_id = to_bytes("c-1");
    properties.timestamp = 1'700'000'000;
    client.publish(queue.name(), properties, "{}");
    client.publish(queue.name(), amqp_basic_properties_t{}, "");
    properties._flags = AMQP_BASIC_TIMESTAMP_FLAG;
    properties.timestamp = ~std::uint64_t{0};
    client.publish(queue.name(), properties, "");
    client.confirm();
  }
  const auto from = open(spec({queue.name()}));
  const auto messages = read(*from, 3);
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[0].id, "m-1");
  EXPECT_EQ(messages[0].type, "OrderPlaced");
  EXPECT_EQ(messages[0].content_type, "application/json");
  EXPECT_EQ(messages[0].correlation_id, "c-1");
  EXPECT_EQ(messages[0].sent_at, event::timestamp(1'700'000'000'000'000));
  EXPECT_EQ(messages[0].channel, queue.name());
  EXPECT_THAT(messages[0].place, StartsWith(queue.name() + "/"));
  EXPECT_EQ(header(messages[0], "amqp-exchange"), "");
  EXPECT_EQ(header(messages[0], "amqp-routing-key"), queue.name());
  EXPECT_EQ(messages[1].id + messages[1].type + messages[1].content_type +
                messages[1].correlation_id + messages[1].key,
            "");
  EXPECT_FALSE(messages[1].sent_at);
  EXPECT_FALSE(messages[2].sent_at) << "no time that can be told";
}

TEST_F(RabbitSourceTest, reads_headers_of_every_type) {
  const RabbitQueue queue(server());
  amqp_table_entry_t inner[] = {make_entry("text", "a \"b\""),
                                entry_of("flag", AMQP_FIELD_KIND_BOOLEAN),
                                entry_of("nothing", AMQP_FIELD_KIND_VOID)};
  amqp_field_value_t items[] = {entry_of("", AMQP_FIELD_KIND_I32).value, inner[0].value};
  items[0].value.i32 = -7;
  std::vector<amqp_table_entry_t> headers{
      make_entry("text", std::string_view("a\r\nb\0\xff", 6)),
      make_entry("outbox-key", "k 1"),
      make_entry("amqp-routing-key", "a lie"),
      entry_of("bytes", AMQP_FIELD_KIND_BYTES),
      sink::rabbitmq::true_entry("true"),
      entry_of("false", AMQP_FIELD_KIND_BOOLEAN),
      entry_of("i8", AMQP_FIELD_KIND_I8),
      entry_of("i16", AMQP_FIELD_KIND_I16),
      entry_of("i32", AMQP_FIELD_KIND_I32),
      entry_of("i64", AMQP_FIELD_KIND_I64),
      entry_of("u8", AMQP_FIELD_KIND_U8),
      entry_of("f64", AMQP_FIELD_KIND_F64),
      entry_of("decimal", AMQP_FIELD_KIND_DECIMAL),
      entry_of("time", AMQP_FIELD_KIND_TIMESTAMP),
      entry_of("void", AMQP_FIELD_KIND_VOID),
      make_entry("table", make_table(inner)),
      entry_of("array", AMQP_FIELD_KIND_ARRAY),
  };
  const auto value = [&](const char* name) -> auto& {
    const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& one) {
      return sink::rabbitmq::to_text(one.key) == name;
    });
    return found->value.value;
  };
  value("bytes").bytes = to_bytes("raw");
  value("i8").i8 = -8;
  value("i16").i16 = -16;
  value("i32").i32 = -32;
  value("i64").i64 = -64'000'000'000;
  value("u8").u8 = 200;
  value("f64").f64 = 0.5;
  value("decimal").decimal = {.decimals = 2, .value = 5};
  value("time").u64 = 1'700'000'000;
  value("array").array = {.num_entries = 2, .entries = items};
  {
    RabbitClient client(server());
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_HEADERS_FLAG;
    properties.headers = make_table(headers);
    client.publish(queue.name(), properties, "");
    client.confirm();
  }
  const auto from = open(spec({queue.name()}));
  const auto messages = read(*from, 1);
  ASSERT_EQ(messages.size(), 1U);
  const Received& got = messages[0];
  EXPECT_EQ(got.key, "k 1");
  const std::map<std::string, std::string> expected{
      {"text", std::string("a\r\nb\0\xff", 6)},
      {"outbox-key", "k 1"},
      {"amqp-routing-key", queue.name()},
      {"bytes", "raw"},
      {"true", "true"},
      {"false", "false"},
      {"i8", "-8"},
      {"i16", "-16"},
      {"i32", "-32"},
      {"i64", "-64000000000"},
      {"u8", "200"},
      {"f64", "0.5"},
      {"decimal", "0.05"},
      {"time", "2023-11-14T22:13:20.000000Z"},
      {"void", ""},
      {"table", R"({"text":"a \"b\"","flag":false,"nothing":null})"},
      {"array", R"([-7,"a \"b\""])"}};
  for (const auto& [name, text] : expected) EXPECT_EQ(header(got, name), text) << name;
}

TEST_F(RabbitSourceTest, says_which_exchange_and_routing_key_a_message_was_sent_with) {
  const RabbitQueue queue(server());
  RabbitClient client(server());
  const std::string exchange = unique_rabbit_name();
  client.declare_exchange(exchange, "topic");
  client.bind(queue.name(), exchange, "order.#");
  client.publish("order.placed", amqp_basic_properties_t{}, "x", exchange);
  client.confirm();
  const auto from = open(spec({queue.name()}));
  const auto messages = read(*from, 1);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(header(messages[0], "amqp-exchange"), exchange);
  EXPECT_EQ(header(messages[0], "amqp-routing-key"), "order.placed");
  EXPECT_EQ(messages[0].channel, queue.name());
  client.delete_exchange(exchange);
}

TEST_F(RabbitSourceTest, reads_several_queues_and_acknowledges_them_together) {
  const RabbitQueue one(server());
  const RabbitQueue two(server(), {{"x-queue-type", "classic"}});
  send(one.name(), 0, 50);
  send(two.name(), 100, 150);
  const ConsumerSpec both = spec({one.name(), two.name(), one.name()});
  const auto from = open(both);
  const auto messages = read(*from, 100);
  std::map<std::string, std::vector<int>> by_queue;
  for (const Received& each : messages) by_queue[each.channel].push_back(std::stoi(each.payload));
  EXPECT_EQ(by_queue[one.name()], range(0, 50));
  EXPECT_EQ(by_queue[two.name()], range(100, 150));
  EXPECT_TRUE(from->acknowledge(messages));
  from->close();
  send(one.name(), 50, 51);
  ASSERT_TRUE(from->open());
  EXPECT_EQ(numbers(read(*from, 1)), range(50, 51)) << "nothing else came again";
}

/// Bytes that OpenSSL has decrypted are not in the socket any more.
TEST_F(RabbitSourceTest, reads_over_tls) {
  const RabbitQueue queue(server());
  send(queue.name(), 0, 100, 100'000);
  const auto from = open(
      spec({queue.name()}, {{"url", server().secure_url}, {"tls_ca", server().tls + "/ca.pem"}}));
  EXPECT_EQ(numbers(read(*from, 100, 7)), range(0, 100));
}

// ---- acknowledging and pausing

TEST_F(RabbitSourceTest,
       a_message_that_was_not_acknowledged_has_another_place_when_it_comes_again) {
  const RabbitQueue queue(server());
  send(queue.name(), 0, 1);
  const auto from = open(spec({queue.name()}));
  const auto first = read(*from, 1);
  from->close();
  ASSERT_TRUE(from->open());
  const auto second = read(*from, 1);
  ASSERT_EQ(first.size() + second.size(), 2U);
  EXPECT_NE(first[0].place, second[0].place);
}

/// While nothing is wanted the source has taken all of them from the network, so that the
/// acknowledgement of the first ones must leave out the others.
TEST_F(RabbitSourceTest, acknowledges_only_what_it_has_handed_over) {
  const RabbitQueue queue(server());
  send(queue.name(), 0, 50);
  const ConsumerSpec consumer = spec({queue.name()});
  const auto from = open(consumer);
  const auto* const rabbit = dynamic_cast<const source::rabbitmq::RabbitSource*>(from.get());
  ASSERT_NE(rabbit, nullptr);
  pause(*from, [&] { return rabbit->kept() == 50; });
  const auto some = read(*from, 10, 10);
  EXPECT_EQ(numbers(some), range(0, 10));
  EXPECT_TRUE(from->acknowledge(some));
  from->close();
  ASSERT_TRUE(from->open());
  EXPECT_EQ(numbers(read(*from, 40)), range(10, 50));
}

/// A batch of these messages is far more than what the source may keep.
TEST_F(RabbitSourceTest, keeps_little_while_nothing_is_wanted) {
  const RabbitQueue queue(server());
  constexpr std::size_t kSize = 1'000'000;
  send(queue.name(), 0, 60, kSize);
  const auto from = open(spec({queue.name()}, {{"heartbeat", "1s"}}));
  const auto* const rabbit = dynamic_cast<const source::rabbitmq::RabbitSource*>(from.get());
  ASSERT_NE(rabbit, nullptr);
  const auto until = std::chrono::steady_clock::now() + 4s;
  pause(
      *from, [&] { return std::chrono::steady_clock::now() > until && rabbit->kept() > 0; },
      2 * kSize);
  EXPECT_LE(rabbit->kept(), 3U);
  EXPECT_EQ(numbers(read(*from, 60)), range(0, 60));
}

TEST_F(RabbitSourceTest, several_heartbeats_pass_while_nothing_is_wanted) {
  const RabbitQueue queue(server());
  const auto from = open(spec({queue.name()}, {{"heartbeat", "1s"}}));
  const auto until = std::chrono::steady_clock::now() + 5s;
  pause(*from, [&] { return std::chrono::steady_clock::now() > until; });
  send(queue.name(), 0, 1);
  EXPECT_EQ(numbers(read(*from, 1)), range(0, 1));
}

TEST_F(RabbitSourceTest, a_server_that_has_gone_silent_is_noticed) {
  const RabbitQueue queue(server());
  TcpGate gate(server().port);
  const auto from =
      open(spec({queue.name()},
                {{"url", "amqp://127.0.0.1:" + std::to_string(gate.port())}, {"heartbeat", "1s"}}));
  gate.set(TcpGate::Mode::blackhole);
  std::vector<Received> none;
  Status status;
  EXPECT_TRUE(eventually([&] {
    status = from->receive({.wait = 100ms}, none);
    return !status;
  }));
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().hint, "");
  from->close();
  gate.set(TcpGate::Mode::open);
  send(queue.name(), 0, 1);
  ASSERT_TRUE(eventually([&] { return from->open().has_value(); }));
  EXPECT_EQ(numbers(read(*from, 1)), range(0, 1));
}

// ---- order

/// The queue has far more messages than the consumer holds when it is closed, and none of them may
/// come before those that it held.
TEST_F(RabbitSourceTest, one_consumer_keeps_the_order_when_it_is_opened_again) {
  for (const char* const type : {"quorum", "classic"}) {
    const RabbitQueue queue(server(), {{"x-queue-type", type}});
    send(queue.name(), 0, 500);
    ConsumerSpec consumer = spec({queue.name()});
    consumer.batch = 20;
    const auto from = open(consumer);
    for (int turn = 0; turn < 20; ++turn) {
      EXPECT_EQ(numbers(read(*from, 20, 20)), range(0, 20)) << type;
      from->close();
      ASSERT_TRUE(from->open());
    }
    std::vector<int> got;
    EXPECT_TRUE(eventually([&] {
      std::vector<Received> some;
      EXPECT_TRUE(from->receive({.messages = 20, .wait = 100ms}, some));
      EXPECT_TRUE(from->acknowledge(some));
      for (const int each : numbers(some)) got.push_back(each);
      return got.size() >= 500;
    }));
    EXPECT_EQ(got, range(0, 500)) << type;
  }
}

/// The server finds out late that the first consumer is gone. A queue with a single active consumer
/// gives nothing to the second one before.
TEST_F(RabbitSourceTest, a_single_active_consumer_keeps_the_order_when_a_connection_is_lost) {
  for (const char* const type : {"quorum", "classic"}) {
    const RabbitQueue queue(server(),
                            {{"x-queue-type", type}, {"x-single-active-consumer", "true"}});
    send(queue.name(), 0, 100);
    TcpGate gate(server().port);
    ConsumerSpec through_gate =
        spec({queue.name()},
             {{"url", "amqp://127.0.0.1:" + std::to_string(gate.port())}, {"heartbeat", "1s"}});
    through_gate.batch = 20;
    const auto one = open(through_gate);
    EXPECT_EQ(numbers(read(*one, 20, 20)), range(0, 20)) << type;
    gate.set(TcpGate::Mode::blackhole);
    const auto two = open(spec({queue.name()}));
    EXPECT_EQ(numbers(read(*two, 100)), range(0, 100)) << type;
    gate.cut();
  }
}

// ---- queues that go away, or are missing

TEST_F(RabbitSourceTest, a_queue_that_is_deleted_is_an_error_and_is_read_when_it_is_there_again) {
  for (const char* const type : {"quorum", "classic"}) {
    RabbitQueue queue(server(), {{"x-queue-type", type}});
    send(queue.name(), 0, 1);
    const auto from = open(spec({queue.name()}));
    EXPECT_EQ(numbers(read(*from, 1)), range(0, 1));
    queue.remove();
    std::vector<Received> none;
    Status status;
    EXPECT_TRUE(eventually([&] {
      status = from->receive({.wait = 100ms}, none);
      return !status;
    }));
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, HasSubstr(queue.name()));
    EXPECT_THAT(status.error().message, HasSubstr("deleted"));
    EXPECT_NE(status.error().hint, "");
    from->close();
    EXPECT_FALSE(from->open());
    queue.create();
    send(queue.name(), 1, 2);
    ASSERT_TRUE(from->open());
    EXPECT_EQ(numbers(read(*from, 1)), range(1, 2));
  }
}

TEST_F(RabbitSourceTest, a_queue_that_is_missing_is_named) {
  const RabbitQueue queue(server());
  const std::string missing = unique_rabbit_name();
  const Error error = error_of_open(spec({queue.name(), missing}));
  EXPECT_THAT(error.message, HasSubstr(missing));
  EXPECT_THAT(error.message, HasSubstr("NOT_FOUND"));
  EXPECT_THAT(error.hint, HasSubstr("create the queue"));
}

TEST_F(RabbitSourceTest, a_stream_is_refused) {
  const RabbitQueue stream(server(), {{"x-queue-type", "stream"}});
  const Error error = error_of_open(spec({stream.name()}));
  EXPECT_THAT(error.message, HasSubstr(stream.name()));
  EXPECT_THAT(error.hint, HasSubstr("is a stream"));
}

// ---- what the server refuses

TEST_F(RabbitSourceTest, a_wrong_password_is_said) {
  const RabbitQueue queue(server());
  const Error error = error_of_open(spec({queue.name()}, {{"password", "wrong"}}));
  EXPECT_EQ(error.code, Errc::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("ACCESS_REFUSED"));
  EXPECT_THAT(error.hint, HasSubstr("rabbitmq.password"));
}

TEST_F(RabbitSourceTest, a_virtual_host_that_does_not_exist_is_said) {
  const Error error = error_of_open(
      spec({"queue"}, {{"url", "amqp://127.0.0.1:" + std::to_string(server().port) + "/nowhere"}}));
  EXPECT_THAT(error.hint, HasSubstr("virtual host"));
}

TEST_F(RabbitSourceTest, a_missing_right_is_said) {
  const RabbitQueue queue(server());
  const std::string user = unique_rabbit_name();
  (void)rabbitmqctl({"add_user", user, "secret"});
  (void)rabbitmqctl({"set_permissions", user, "", "", ""});
  const Error error =
      error_of_open(spec({queue.name()}, {{"username", user}, {"password", "secret"}}));
  (void)rabbitmqctl({"delete_user", user});
  EXPECT_EQ(error.code, Errc::permission_denied);
  EXPECT_THAT(error.hint, HasSubstr("right to read"));
}

TEST_F(RabbitSourceTest, settings_of_sending_are_refused) {
  for (const char* const setting : {"exchange", "queue", "declare", "max_in_flight"}) {
    const auto made = source::make_source(spec({"queue"}, {{setting, "1"}}));
    ASSERT_FALSE(made) << setting;
    EXPECT_THAT(made.error().message, HasSubstr(std::string("rabbitmq.") + setting));
  }
}

/// These take too long to bring about, or the help of other clients.
TEST(RabbitSourceErrors, say_what_to_do) {
  using source::rabbitmq::explain;
  EXPECT_THAT(explain(AMQP_ACCESS_REFUSED,
                      "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use", "host")
                  .hint,
              HasSubstr("exclusively"));
  EXPECT_THAT(
      explain(AMQP_RESOURCE_LOCKED, "RESOURCE_LOCKED - cannot obtain exclusive access", "host")
          .hint,
      HasSubstr("exclusive"));
  EXPECT_THAT(
      explain(AMQP_PRECONDITION_FAILED,
              "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out", "host")
          .hint,
      HasSubstr("consumer_timeout"));
  EXPECT_THAT(explain(AMQP_CONNECTION_FORCED, "CONNECTION_FORCED - shutdown", "host").hint,
              HasSubstr("comes again"));
}

}  // namespace
}  // namespace outbox::test
