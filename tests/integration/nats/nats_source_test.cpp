// Tests what only the source of NATS has: filters, durable consumers that exist already or vanish,
// rights, and the order after a reader that died.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

#include "integration/nats/server.hpp"
#include "source/nats/received.hpp"
#include "source/registry.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using namespace std::chrono_literals;
using source::Received;
using source::Source;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class NatsSourceTest : public testing::Test {
 protected:
  void SetUp() override { OUTBOX_NEEDS_NATS(); }

  static ConsumerSpec spec_of(const NatsServer& server, std::string read, int port = 0) {
    return {
        .name = "billing",
        .source = "nats",
        .read = {std::move(read)},
        .settings = {{"url", fmt::format("nats://127.0.0.1:{}", port == 0 ? server.port : port)},
                     {"username", server.user},
                     {"password", server.password},
                     {"deadline", "5s"},
                     {"connect_timeout", "5s"}}};
  }
  static ConsumerSpec spec_of(const NatsStream& stream) {
    return spec_of(stream.server(), stream.name());
  }
  static std::unique_ptr<Source> make(const ConsumerSpec& spec) {
    auto made = source::make_source(spec);
    EXPECT_TRUE(made) << made.error().text();
    return made ? std::move(*made) : nullptr;
  }
  static std::unique_ptr<Source> open(const ConsumerSpec& spec) {
    auto made = make(spec);
    const Status status = made->open();
    EXPECT_TRUE(status) << status.error().text();
    return made;
  }
  static std::string refusal(const ConsumerSpec& spec) {
    const Status status = make(spec)->open();
    EXPECT_FALSE(status);
    return status ? "" : status.error().text();
  }
  static std::string bad_spec(const ConsumerSpec& spec) {
    const auto made = source::make_source(spec);
    EXPECT_FALSE(made);
    return made ? "" : made.error().text();
  }

  static void send(const NatsStream& stream, int first, int last,
                   const std::string& subject = "order.events") {
    std::vector<NatsStored> all;
    for (int i = first; i < last; ++i)
      all.push_back({.subject = stream.subject(subject), .headers = {}, .body = std::to_string(i)});
    stream.send(all);
  }
  /// Reads `count` messages.
  static std::vector<Received> read(Source& from, std::size_t count, bool acknowledge = true) {
    std::vector<Received> all;
    EXPECT_TRUE(eventually([&] {
      std::vector<Received> some;
      const Status status = from.receive({.messages = count - all.size(), .wait = 100ms}, some);
      EXPECT_TRUE(status) << status.error().text();
      if (acknowledge) {
        EXPECT_TRUE(from.acknowledge(some));
      }
      for (auto& one : some) all.push_back(std::move(one));
      return all.size() >= count || !status;
    }));
    return all;
  }
  static std::vector<int> numbers(const std::vector<Received>& messages) {
    std::vector<int> all;
    for (const Received& one : messages) all.push_back(std::stoi(one.payload));
    return all;
  }
  static std::vector<int> count_from(int first, int last) {
    std::vector<int> all;
    for (int i = first; i < last; ++i) all.push_back(i);
    return all;
  }
  /// The error that receive() has at last.
  static Error failure(Source& from) {
    Error error;
    EXPECT_TRUE(eventually([&] {
      std::vector<Received> some;
      const Status status = from.receive({.messages = 10, .wait = 100ms}, some);
      if (!status) error = status.error();
      return !status;
    }));
    return error;
  }
  static void make_consumer(const NatsStream& stream, Json config) {
    config["durable_name"] = "billing";
    if (!config.contains("ack_policy")) config["ack_policy"] = "explicit";
    stream.api("CONSUMER.DURABLE.CREATE." + stream.name() + ".billing",
               {{"stream_name", stream.name()}, {"config", config}});
  }
  static Json info(const NatsStream& stream) {
    return stream.api("CONSUMER.INFO." + stream.name() + ".billing");
  }
};

// ---- what is read

TEST_F(NatsSourceTest, a_message_has_its_place_subject_headers_key_and_time) {
  NatsStream stream(*shared_nats());
  stream.send({{.subject = stream.subject("order.placed"),
                .headers = {{"Nats-Msg-Id", "4711"}, {"outbox-key", "42"}, {"a", ""}, {"z", ""}},
                .body = "{}"}});
  const auto got = read(*open(spec_of(stream)), 1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].place, stream.name() + "/1");
  EXPECT_EQ(got[0].channel, stream.subject("order.placed"));
  EXPECT_EQ(got[0].key, "42");
  EXPECT_EQ(got[0].payload, "{}");
  // The client writes headers in an order of its own.
  EXPECT_THAT(got[0].headers,
              UnorderedElementsAre(Header("Nats-Msg-Id", "4711"), Header("outbox-key", "42"),
                                   Header("a", ""), Header("z", "")));
  ASSERT_TRUE(got[0].sent_at);
  EXPECT_LT(std::chrono::abs(std::chrono::system_clock::now() - *got[0].sent_at), 1h);
}

TEST(NatsHeaders, are_read_line_by_line) {
  using source::nats::parse_headers;
  const auto read = parse_headers(
      "NATS/1.0\r\nb: 1\r\na:\r\nb:2 \r\nno header\r\n: x\r\nurl: a:b\r\nlast: \r\n\r\n");
  EXPECT_EQ(read,
            (std::vector<Header>{{"b", "1"}, {"a", ""}, {"b", "2"}, {"url", "a:b"}, {"last", ""}}));
  for (const char* broken : {"", "NATS/1.0", "NATS/1.0\r\n", "NATS/1.0\r\n\r\n", "NATS/1.0\r\na"})
    EXPECT_TRUE(parse_headers(broken).empty()) << broken;
  EXPECT_EQ(parse_headers("NATS/1.0\r\na: 1"), (std::vector<Header>{{"a", "1"}}));
}

TEST_F(NatsSourceTest, a_filter_reads_some_subjects_of_a_stream) {
  NatsStream stream(*shared_nats());
  send(stream, 0, 1, "eu.placed");
  send(stream, 1, 2, "us.placed");
  send(stream, 2, 3, "eu.paid");
  ConsumerSpec spec = spec_of(stream);
  spec.read = {stream.name() + "/" + stream.subject("eu.*")};
  const auto from = open(spec);
  EXPECT_EQ(numbers(read(*from, 2)), (std::vector<int>{0, 2}));
  EXPECT_TRUE(eventually([&] { return from->lag() == 0; }));
  from->close();
  EXPECT_TRUE(from->open()) << "with the durable consumer that is there now";
  spec.read = {stream.name()};
  EXPECT_TRUE(open(spec)) << "the filter of the durable consumer counts";
  spec.read = {stream.name() + "/" + stream.subject("us.*")};
  EXPECT_THAT(refusal(spec), HasSubstr("has the filter"));
}

TEST_F(NatsSourceTest, several_streams_are_read_by_one_consumer) {
  NatsStream one(*shared_nats());
  NatsStream two(*shared_nats());
  ConsumerSpec spec = spec_of(one);
  spec.read = {one.name(), two.name()};
  send(one, 0, 50);
  send(two, 50, 100);
  const auto got = numbers(read(*open(spec), 100));
  EXPECT_EQ(std::set<int>(got.begin(), got.end()).size(), 100U);
}

TEST_F(NatsSourceTest, a_message_that_looks_like_an_answer_of_the_server_stops_nothing) {
  NatsStream stream(*shared_nats());
  for (const char* status : {"503", "409", "404", "100"}) {
    stream.send({{.subject = stream.subject(),
                  .headers = {{"Status", status}, {"Description", "Consumer Deleted"}},
                  .body = ""}});
  }
  send(stream, 0, 1);
  const auto got = read(*open(spec_of(stream)), 5);
  ASSERT_EQ(got.size(), 5U);
  EXPECT_EQ(got[4].payload, "0");
}

TEST_F(NatsSourceTest, names_that_nats_cannot_have_are_refused) {
  const NatsServer server = *shared_nats();
  ConsumerSpec spec = spec_of(server, "ORDERS");
  spec.name = "billing.v2";
  EXPECT_THAT(bad_spec(spec), HasSubstr("set group"));
  spec.group = "billing-v2";
  EXPECT_TRUE(make(spec));
  for (const char* read : {"orders.*", "ORDERS/", "ORDERS/a..b", "ORDERS/a.>.b", "/a"}) {
    spec.read = {read};
    EXPECT_THAT(bad_spec(spec), HasSubstr("read: "));
  }
  spec.read = {"ORDERS/a.*", "ORDERS/b.>"};
  EXPECT_THAT(bad_spec(spec), HasSubstr("twice"));
  spec.read = {"ORDERS"};
  spec.settings["stream"] = "ORDERS";
  EXPECT_THAT(bad_spec(spec), HasSubstr("says how to send"));
}

// ---- durable consumers

TEST_F(NatsSourceTest, the_durable_consumer_is_made_as_documented_and_stays) {
  NatsStream stream(*shared_nats());
  ConsumerSpec spec = spec_of(stream);
  spec.batch = 100;
  open(spec)->close();
  const Json config = info(stream).at("config");
  EXPECT_EQ(config.at("ack_policy"), "explicit");
  EXPECT_EQ(config.at("deliver_policy"), "all");
  EXPECT_EQ(config.at("ack_wait"), 30'000'000'000);
  EXPECT_EQ(config.at("max_deliver"), -1);
  EXPECT_EQ(config.at("max_ack_pending"), 2000);
}

TEST_F(NatsSourceTest, a_durable_consumer_that_would_lose_messages_is_refused) {
  NatsStream stream(*shared_nats());
  const auto with = [&](const Json& config) {
    make_consumer(stream, config);
    const std::string text = refusal(spec_of(stream));
    stream.api("CONSUMER.DELETE." + stream.name() + ".billing");
    return text;
  };
  EXPECT_THAT(with({{"deliver_subject", "somewhere"}}), HasSubstr("pushes"));
  EXPECT_THAT(with({{"ack_policy", "all"}}), HasSubstr("ack_policy = all"));
  EXPECT_THAT(with({{"headers_only", true}}), HasSubstr("headers only"));
}

TEST_F(NatsSourceTest, limits_of_a_durable_consumer_are_warned_of_once) {
  NatsStream stream(*shared_nats());
  make_consumer(stream, {{"max_deliver", 3}, {"max_ack_pending", 7}, {"max_batch", 5}});
  send(stream, 0, 30);
  const auto from = make(spec_of(stream));
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(from->open());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("max_deliver"));
  EXPECT_THAT(log, HasSubstr("value=3"));
  EXPECT_THAT(log, HasSubstr("value=7"));
  EXPECT_EQ(numbers(read(*from, 30)), count_from(0, 30));
  from->close();
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(from->open());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("max_deliver")));
}

TEST_F(NatsSourceTest, a_message_with_its_last_delivery_behind_it_does_not_come_again) {
  NatsStream stream(*shared_nats());
  make_consumer(stream, {{"max_deliver", 2}, {"ack_wait", 1'000'000'000}});
  send(stream, 0, 1);
  const auto from = make(spec_of(stream));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(from->open());
    EXPECT_EQ(numbers(read(*from, 1, false)), count_from(0, 1));
    from->close();
  }
  ASSERT_TRUE(from->open());
  send(stream, 1, 2);
  EXPECT_EQ(numbers(read(*from, 1)), count_from(1, 2));
}

TEST_F(NatsSourceTest, a_consumer_that_is_deleted_is_made_again) {
  NatsStream stream(*shared_nats());
  send(stream, 0, 10);
  const auto from = open(spec_of(stream));
  EXPECT_EQ(read(*from, 10).size(), 10U);
  stream.api("CONSUMER.DELETE." + stream.name() + ".billing");
  const Error error = failure(*from);
  EXPECT_EQ(error.code, Errc::not_found) << error.text();
  EXPECT_NE(error.hint, "");
  EXPECT_FALSE(from->lag());
  from->close();
  ASSERT_TRUE(from->open());
  EXPECT_EQ(numbers(read(*from, 10)), count_from(0, 10)) << "start = earliest";
}

TEST_F(NatsSourceTest, a_consumer_that_is_deleted_between_requests_is_noticed) {
  NatsStream stream(*shared_nats());
  const auto from = open(spec_of(stream));
  stream.api("CONSUMER.DELETE." + stream.name() + ".billing");
  const Error error = failure(*from);
  EXPECT_EQ(error.code, Errc::not_found) << error.text();
}

// ---- what is missing

TEST_F(NatsSourceTest, a_stream_that_is_missing_is_an_error_until_it_is_made) {
  NatsStream stream(*shared_nats());
  const auto from = make(spec_of(stream));
  stream.remove();
  const Status status = from->open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::not_found);
  EXPECT_THAT(status.error().text(), HasSubstr("create the stream"));
  stream.create();
  send(stream, 0, 1);
  ASSERT_TRUE(from->open());
  EXPECT_EQ(read(*from, 1).size(), 1U);
  stream.remove();
  EXPECT_EQ(failure(*from).code, Errc::not_found);
}

TEST_F(NatsSourceTest, a_wrong_password_is_an_error_that_says_so) {
  NatsStream stream(*shared_nats());
  ConsumerSpec spec = spec_of(stream);
  spec.settings["password"] = "hunter2-wrong";
  const std::string text = refusal(spec);
  EXPECT_THAT(text, HasSubstr("nats.password"));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

TEST_F(NatsSourceTest, a_server_without_jetstream_is_an_error_that_says_so) {
  const OwnNats own("", false);
  EXPECT_THAT(refusal(spec_of(own.server(), "ORDERS")), HasSubstr("JetStream is not enabled"));
}

TEST_F(NatsSourceTest, rights_that_are_missing_are_named) {
  const OwnNats own(
      "authorization { users = [ { user = root, password = root },\n"
      "  { user = nobody, password = p, permissions = { publish = \"x\" } },\n"
      "  { user = asker, password = p, permissions = {\n"
      "      publish = [\"$JS.API.CONSUMER.INFO.>\", \"$JS.API.CONSUMER.DURABLE.CREATE.>\"] } },\n"
      "  { user = reader, password = p, permissions = {\n"
      "      publish = [\"$JS.API.CONSUMER.INFO.>\", \"$JS.API.CONSUMER.DURABLE.CREATE.>\",\n"
      "                 \"$JS.API.CONSUMER.MSG.NEXT.>\", \"$JS.ACK.>\"],\n"
      "      subscribe = \"_INBOX_outbox.>\" } } ] }\n");
  NatsStream stream(own.server());
  send(stream, 0, 3);
  ConsumerSpec spec = spec_of(own.server("nobody", "p"), stream.name());
  EXPECT_THAT(refusal(spec), HasSubstr("$JS.API.CONSUMER.INFO"));
  const auto asker = open(spec_of(own.server("asker", "p"), stream.name()));
  const Error error = failure(*asker);
  EXPECT_EQ(error.code, Errc::permission_denied) << error.text();
  EXPECT_THAT(error.message, HasSubstr("MSG.NEXT"));
  spec = spec_of(own.server("reader", "p"), stream.name());
  spec.settings["inbox_prefix"] = "_INBOX_outbox";
  EXPECT_EQ(numbers(read(*open(spec), 3)), count_from(0, 3));
}

TEST_F(NatsSourceTest, a_server_that_hangs_while_it_is_connected_to_is_given_up) {
  NatsStream stream(*shared_nats());
  TcpGate gate(stream.server().port);
  gate.set(TcpGate::Mode::answers_lost);
  const auto from = make(spec_of(stream.server(), stream.name(), gate.port()));
  const Status status = from->open();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().hint, "");
  gate.set(TcpGate::Mode::open);
  gate.cut();
  EXPECT_TRUE(from->open());
}

// ---- order

TEST_F(NatsSourceTest, what_was_given_back_comes_before_what_is_new) {
  NatsStream stream(*shared_nats());
  send(stream, 0, 200);
  const auto from = open(spec_of(stream));
  EXPECT_EQ(read(*from, 50, false).size(), 50U);
  from->close();
  send(stream, 200, 300);
  ASSERT_TRUE(from->open());
  EXPECT_EQ(numbers(read(*from, 300)), count_from(0, 300));
}

TEST_F(NatsSourceTest, what_a_broken_connection_left_behind_comes_before_what_is_new) {
  NatsStream stream(*shared_nats());
  make_consumer(stream, {{"ack_wait", 2'000'000'000}});
  send(stream, 0, 200);
  TcpGate gate(stream.server().port);
  const auto from = open(spec_of(stream.server(), stream.name(), gate.port()));
  EXPECT_EQ(numbers(read(*from, 20)), count_from(0, 20));
  EXPECT_EQ(read(*from, 50, false).size(), 50U);
  gate.cut();
  EXPECT_NE(failure(*from).message, "");
  from->close();
  // The server gives up the reader that is gone only after ack_wait.
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(from->open());
    std::vector<Received> some;
    EXPECT_TRUE(from->receive({.messages = 10, .wait = 100ms}, some));
    from->close();
  }
  ASSERT_TRUE(from->open());
  EXPECT_EQ(numbers(read(*from, 180)), count_from(20, 200));
}

TEST_F(NatsSourceTest, messages_that_another_member_holds_do_not_stop_a_new_member) {
  NatsStream stream(*shared_nats());
  make_consumer(stream, {{"ack_wait", 2'000'000'000}});
  send(stream, 0, 20);
  const auto one = open(spec_of(stream));
  EXPECT_EQ(read(*one, 5, false).size(), 5U);
  const auto two = open(spec_of(stream));
  const auto got = numbers(read(*two, 20));
  EXPECT_EQ(got, count_from(0, 20)) << "the first member has not acknowledged in time";
}

}  // namespace
}  // namespace outbox::test
