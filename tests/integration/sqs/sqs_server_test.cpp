// Tests the sink with ElasticMQ, which is another implementation of SQS. It checks no signatures.
#include <optional>
#include <set>

#include "integration/sqs/fixture.hpp"
#include "integration/sqs/sqs_client.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

class ElasticMq : public testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_SQS();
    port_ = shared_sqs().value();
    client_.emplace(port_);
  }
  void TearDown() override {
    for (const std::string& url : urls_) client_->remove(url);
  }
  [[nodiscard]] std::string create(const std::string& suffix = "") {
    const std::string queue = fresh_queue(suffix);
    urls_.push_back(client_->create(queue));
    return queue;
  }

  int port_{0};
  std::optional<SqsClient> client_;
  std::vector<std::string> urls_;
};

TEST_F(ElasticMq, a_standard_queue_gets_bodies_attributes_and_the_trace) {
  const std::string queue = create();
  Load load;
  load.add("schlüssel", "größe: 日本語 🙂", "text/plain; charset=utf-8");
  load.item(0).headers.push_back({.name = "kunde", .value = "Jürgen\r\nGroß"});
  load.item(0).headers.push_back(
      {.name = "traceparent", .value = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"});
  ASSERT_EQ(Sending(make_sqs_sink(port_, {{"queue", queue}}), load).outcome().kind,
            Outcome::Kind::acked);
  const auto got = client_->drain(urls_[0]);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].body, load.item(0).body);
  EXPECT_EQ(got[0].attribute("kunde"), "Jürgen\r\nGroß");
  EXPECT_EQ(got[0].attribute("outbox-key"), "schlüssel");
  EXPECT_EQ(got[0].attribute("outbox-id"), load.item(0).id_text);
  EXPECT_EQ(got[0].system.at("AWSTraceHeader"),
            "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=0");
}

TEST_F(ElasticMq, a_queue_by_its_url) {
  const std::string queue = create();
  Load load;
  load.add_many(25, 25);
  EXPECT_EQ(Sending(make_sqs_sink(port_, {{"url", urls_[0]}}), load).relay().acked(), 25U);
  EXPECT_EQ(client_->drain(urls_[0]).size(), 25U);
}

TEST_F(ElasticMq, the_groups_of_a_fifo_queue_are_the_keys_whatever_they_are) {
  const std::string queue = create(".fifo");
  const std::vector<std::string> keys{"42",   "with spaces", "with%20spaces", std::string(300, 'k'),
                                      "ключ", "a/b:c",       "50%",           ""};
  Load load;
  for (const std::string& key : keys) load.add(key, "{}");
  load.add(std::nullopt, "{}");
  ASSERT_EQ(Sending(make_sqs_sink(port_, {{"queue", queue}}), load).outcome().kind,
            Outcome::Kind::acked);
  std::set<std::string> groups;
  for (const SqsMessage& message : client_->drain(urls_[0]))
    groups.insert(message.system.at("MessageGroupId"));
  EXPECT_EQ(groups.size(), load.size());
}

TEST_F(ElasticMq, a_fifo_queue_stores_an_event_once_though_its_answer_was_lost) {
  const std::string queue = create(".fifo");
  TcpGate gate(port_);
  const auto sink = make_sqs_sink(gate.port(), {{"queue", queue}});
  ASSERT_TRUE(sink->open());
  Load load;
  load.add_many(10, 10);
  MiniRelay relay(*sink, load);
  gate.set(TcpGate::Mode::answers_lost);
  relay.offer_all();
  ASSERT_TRUE(eventually([&] { return gate.lost_answers() > 0; }));
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 0U);
  gate.set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(client_->drain(urls_[0]).size(), load.size());
}

TEST_F(ElasticMq, two_subscriptions_and_a_replay_may_send_one_event_to_one_fifo_queue) {
  const std::string queue = create(".fifo");
  Load load;
  load.add("42", "{}");
  for (const char* subscription : {"orders", "audit", "orders"}) {
    Sending sending(make_sqs_sink(port_, {{"queue", queue}}, subscription), load);
    ASSERT_EQ(sending.outcome().kind, Outcome::Kind::acked);
  }
  load.item(0).event.headers = R"({"outbox-replay":"3"})";
  Sending replay(make_sqs_sink(port_, {{"queue", queue}}), load);
  ASSERT_EQ(replay.outcome().kind, Outcome::Kind::acked);
  EXPECT_EQ(client_->drain(urls_[0]).size(), 3U);
}

TEST_F(ElasticMq, says_what_it_promises) {
  SubscriptionSpec spec;
  spec.name = "orders";
  spec.sink = "sqs";
  spec.sink_settings = {{"queue", create(".fifo")},
                        {"region", "eu-test-1"},
                        {"access_key", "a"},
                        {"secret_key", "b"},
                        {"endpoint", "http://127.0.0.1:" + std::to_string(port_)}};
  const auto fifo = sink::inspect(spec);
  ASSERT_TRUE(fifo) << fifo.error().text();
  EXPECT_TRUE(contains(fifo->destination, spec.sink_settings["queue"]));
  EXPECT_EQ(fifo->order, "of each key");
  EXPECT_TRUE(fifo->weaknesses.empty()) << "nobody else can listen in";
  spec.sink_settings["queue"] = create();
  EXPECT_TRUE(contains(sink::inspect(spec).value().order, "of nothing"));
  spec.sink_settings["queue"] = "never-made";
  EXPECT_FALSE(sink::inspect(spec));
}

TEST_F(ElasticMq, a_missing_queue_is_named) {
  const Status opened = make_sqs_sink(port_, {{"queue", "never-made"}})->open();
  ASSERT_FALSE(opened);
  EXPECT_TRUE(contains(opened.error().message, "never-made")) << opened.error().text();
  EXPECT_EQ(opened.error().code, Errc::not_found) << opened.error().text();
}

TEST_F(ElasticMq, a_queue_that_is_deleted_blocks_and_goes_on_when_it_is_back) {
  const std::string queue = create();
  const auto sink = make_sqs_sink(port_, {{"queue", queue}});
  ASSERT_TRUE(sink->open());
  client_->remove(urls_[0]);
  Load load;
  load.add_many(5, 5);
  MiniRelay relay(*sink, load);
  relay.offer_all();
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 5U);
  EXPECT_EQ(relay.failures()[0].outcome.kind, Outcome::Kind::blocked)
      << relay.failures()[0].outcome.error.text();
  urls_[0] = client_->create(queue);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(client_->drain(urls_[0]).size(), 5U);
}

TEST_F(ElasticMq, more_headers_than_attributes_arrive) {
  const std::string queue = create();
  static const std::vector<std::string> names{"h0", "h1", "h2", "h3", "h4",    "h5",
                                              "h6", "h7", "h8", "h9", "odd!x", "last"};
  Load load;
  load.add("42", "{}");
  for (const std::string& name : names)
    load.item(0).headers.push_back({.name = name, .value = name == "last" ? "日本\x01" : "v"});
  ASSERT_EQ(Sending(make_sqs_sink(port_, {{"queue", queue}}), load).outcome().kind,
            Outcome::Kind::acked);
  const auto got = client_->drain(urls_[0]);
  ASSERT_EQ(got.size(), 1U);
  const Json rest = Json::parse(got[0].attribute("outbox-headers"));
  EXPECT_EQ(rest.at("last"), "日本\x01");
  EXPECT_EQ(rest.at("odd!x"), "v");
  EXPECT_EQ(got[0].attributes.size() - 1 + rest.size(), load.item(0).headers.size() + 1);
}

}  // namespace
}  // namespace outbox::test
