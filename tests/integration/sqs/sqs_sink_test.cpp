// Tests what SQS answers, and what becomes of the events. The server checks the signature of every
// request.
#include <algorithm>
#include <set>

#include "integration/sqs/fixture.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using Kind = Outcome::Kind;

std::vector<Kind> list_kinds(const std::vector<std::string>& bodies, MiniRelay& relay) {
  std::vector<Kind> kinds(bodies.size(), Kind::acked);
  for (const auto& failure : relay.failures()) kinds[failure.place] = failure.outcome.kind;
  return kinds;
}

// ---- signatures

TEST_F(SqsSink, each_request_is_signed) {
  EXPECT_EQ(outcome("orders").kind, Kind::acked);
  EXPECT_EQ(outcome("orders.fifo").kind, Kind::acked);
  EXPECT_EQ(outcome("orders", {{"access_key", "ASIATEST"},
                               {"secret_key", "another/secret"},
                               {"session_token", "the+session/token=="}})
                .kind,
            Kind::acked);
  for (const Received& request : server_.received())
    EXPECT_EQ(request.header("content-type"), "application/x-amz-json-1.0");
}

TEST_F(SqsSink, a_body_that_is_not_ascii_and_a_large_one_are_signed_too) {
  Load load;
  load.add("schlüssel", "größe: 日本語 🙂", "text/plain; charset=utf-8");
  load.add("large", std::string(250'000, '"'), "text/plain");
  Sending sending(make(), load);
  EXPECT_EQ(sending.outcome().kind, Kind::acked) << sending.outcome().error.text();
}

TEST_F(SqsSink, a_wrong_key_blocks_and_is_not_shown) {
  for (const SinkSettings& wrong :
       {SinkSettings{{"secret_key", "quite-wrong"}}, SinkSettings{{"access_key", "AKIDOTHER"}},
        SinkSettings{{"region", "eu-test-2"}},
        SinkSettings{{"access_key", "ASIATEST"},
                     {"secret_key", "quite-wrong"},
                     {"session_token", "quite-wrong-token"}}}) {
    const Status opened = make(wrong)->open();
    ASSERT_FALSE(opened);
    EXPECT_TRUE(contains(opened.error().hint, "sqs.secret_key")) << opened.error().text();
    EXPECT_FALSE(contains(opened.error().text(), "quite-wrong")) << opened.error().text();
  }
  SinkSettings by_url{{"url", "https://sqs.eu-test-1.amazonaws.com/123456789012/orders"},
                      {"secret_key", "quite-wrong"}};
  Load load;
  load.add_many(1, 1);
  const Outcome said = Sending(make(by_url), load).outcome();
  EXPECT_EQ(said.kind, Kind::blocked) << said.error.text();
  EXPECT_TRUE(entries().empty());
}

// ---- messages

TEST_F(SqsSink, a_message_is_an_entry) {
  Load load;
  load.add("42", R"({ "total": 12.50 })").headers.push_back({.name = "tenant", .value = "north"});
  load.item(0).headers.push_back(
      {.name = "traceparent", .value = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
  ASSERT_EQ(Sending(make({{"delay_seconds", "7"}}), load).outcome().kind, Kind::acked);
  const auto got = entries();
  ASSERT_EQ(got.size(), 1U);
  const auto text = [](const std::string& value) {
    return Json{{"DataType", "String"}, {"StringValue", value}};
  };
  EXPECT_EQ(got[0].at("MessageBody"), R"({ "total": 12.50 })");
  EXPECT_EQ(got[0].at("DelaySeconds"), 7);
  EXPECT_FALSE(got[0].contains("MessageGroupId"));
  EXPECT_EQ(
      got[0].at("MessageSystemAttributes"),
      (Json{{"AWSTraceHeader",
             text("Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1")}}));
  const Json attributes{
      {"outbox-id", text(load.item(0).id_text)},
      {"outbox-seq", text("1")},
      {"content-type", text("application/json")},
      {"outbox-key", text("42")},
      {"tenant", text("north")},
      {"traceparent", text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")}};
  EXPECT_EQ(got[0].at("MessageAttributes"), attributes);
}

TEST_F(SqsSink, a_fifo_queue_gets_groups_and_ids) {
  Load load;
  load.add("42", "{}");
  load.add("with spaces", "{}");
  load.add(std::nullopt, "{}");
  ASSERT_EQ(Sending(make({{"queue", "orders.fifo"}}), load).outcome().kind, Kind::acked);
  ASSERT_EQ(Sending(make_sqs_sink(server_.port(), {{"queue", "orders.fifo"}}, "audit"), load)
                .outcome()
                .kind,
            Kind::acked);
  std::vector<std::string> groups;
  std::vector<std::string> ids;
  for (const Json& entry : entries()) {
    groups.push_back(entry.at("MessageGroupId"));
    ids.push_back(entry.at("MessageDeduplicationId"));
  }
  ASSERT_EQ(groups.size(), 6U);
  EXPECT_EQ(groups[0], "42");
  EXPECT_EQ(groups[1], "with%20spaces");
  EXPECT_EQ(groups[2], load.item(2).id_text);
  EXPECT_EQ(ids[0], load.item(0).id_text + ".1.orders");
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 6U) << "two subscriptions may use one queue";
}

TEST_F(SqsSink, many_events_are_few_requests) {
  Load load;
  load.add_many(95, 95);
  Sending sending(make(), load);
  EXPECT_EQ(sending.relay().acked(), 95U);
  EXPECT_EQ(requests("SendMessageBatch").size(), 10U);
  EXPECT_EQ(requests("GetQueueUrl").size(), 1U) << "looked up once, when the sink was opened";
}

TEST_F(SqsSink, a_batch_is_closed_before_it_is_too_large) {
  Load load;
  for (int i = 0; i < 12; ++i) load.add(std::to_string(i), std::string(60'000, 'x'), "text/plain");
  load.add("fits", std::string(262'144 - 145, 'x'), "");
  Sending sending(make(), load);
  EXPECT_TRUE(sending.relay().failures().empty()) << sending.outcome().error.text();
  EXPECT_TRUE(requests("SendMessageBatch", 400).empty()) << "the server counts, too";
  EXPECT_EQ(requests("SendMessageBatch").size(), 4U);
}

TEST_F(SqsSink, an_event_that_sqs_cannot_take_is_rejected_alone) {
  Load load;
  load.add_many(3, 3);
  load.add("control", "a\x01z", "text/plain");
  load.add("empty", "", "");
  load.add("binary", "\xff\xfe", "application/octet-stream");
  load.add("large", std::string(262'144, 'x'), "text/plain");
  Sending sending(make(), load);
  EXPECT_EQ(sending.relay().rejected(), (std::vector<std::size_t>{3, 4, 5, 6}));
  EXPECT_EQ(sending.relay().acked(), 3U);
  for (const auto& failure : sending.relay().failures())
    EXPECT_FALSE(failure.outcome.error.hint.empty()) << failure.outcome.error.text();
}

TEST_F(SqsSink, with_an_encoding_it_can_send_anything) {
  Load load;
  load.add("text", "größe", "text/plain");
  load.add("control", "a\x01z", "text/plain");
  load.add("empty", "", "");
  ASSERT_EQ(Sending(make({{"encoding", "auto"}}), load).outcome().kind, Kind::acked);
  ASSERT_EQ(Sending(make({{"encoding", "base64"}}), load).outcome().kind, Kind::acked);
  std::vector<std::pair<std::string, std::string>> got;
  for (const Json& entry : entries()) {
    const Json& attributes = entry.at("MessageAttributes");
    got.emplace_back(entry.at("MessageBody"),
                     attributes.contains("outbox-encoding")
                         ? attributes.at("outbox-encoding").at("StringValue").get<std::string>()
                         : "");
  }
  const std::vector<std::pair<std::string, std::string>> wanted{
      {"größe", ""},      {"YQF6", "base64"}, {"-", "empty"}, {"Z3LDtsOfZQ==", "base64"},
      {"YQF6", "base64"}, {"-", "empty"}};
  EXPECT_EQ(got, wanted);
}

TEST_F(SqsSink, more_headers_than_attributes_are_one_json_object) {
  Load load;
  load.add("42", "{}");
  for (int i = 0; i < 12; ++i) {
    static const std::vector<std::string> names{"h0", "h1", "h2", "h3", "h4",  "h5",
                                                "h6", "h7", "h8", "h9", "h10", "h11"};
    load.item(0).headers.push_back({.name = names[static_cast<std::size_t>(i)], .value = "v"});
  }
  load.item(0).headers.push_back({.name = "empty", .value = ""});
  ASSERT_EQ(Sending(make({{"attributes", "h11"}}), load).outcome().kind, Kind::acked);
  const Json attributes = entries().at(0).at("MessageAttributes");
  EXPECT_EQ(attributes.size(), 10U);
  EXPECT_TRUE(attributes.contains("h11"));
  const Json rest =
      Json::parse(attributes.at("outbox-headers").at("StringValue").get<std::string>());
  EXPECT_EQ(rest.at("empty"), "");
  EXPECT_EQ(attributes.size() - 1 + rest.size(), load.item(0).headers.size() + 1) << "with the key";
}

// ---- results of single events

TEST_F(SqsSink, each_entry_has_its_own_outcome) {
  const std::vector<std::string> bodies{"good", "bad", "late", "lost", "slow", "good too"};
  Load load;
  for (const std::string& body : bodies) load.add(body, body, "text/plain");
  Sending sending(make({{"queue", "picky"}}), load);
  EXPECT_EQ(list_kinds(bodies, sending.relay()),
            (std::vector<Kind>{Kind::acked, Kind::rejected, Kind::retry, Kind::unknown,
                               Kind::blocked, Kind::acked}));
  EXPECT_EQ(requests("SendMessageBatch").size(), 1U);
}

TEST_F(SqsSink, a_result_that_contradicts_itself_is_in_doubt) {
  EXPECT_EQ(outcome("both").kind, Kind::unknown);
}

TEST_F(SqsSink, the_event_for_which_a_whole_batch_is_refused_is_found) {
  Load load;
  for (int i = 0; i < 30; ++i)
    load.add(std::to_string(i), i == 4 || i == 17 ? "bad" : "good", "text/plain");
  Sending sending(make({{"queue", "strict"}, {"concurrency", "3"}}), load);
  EXPECT_EQ(sending.relay().rejected(), (std::vector<std::size_t>{4, 17}));
  EXPECT_EQ(sending.relay().acked(), 28U);
  EXPECT_EQ(entries().size(), 28U) << "each was stored once";
}

// ---- refused requests

TEST_F(SqsSink, the_code_of_an_error_decides) {
  for (const auto& [queue, kind] :
       std::map<std::string, Kind>{{"error-400-ThrottlingException", Kind::blocked},
                                   {"error-403-RequestThrottled", Kind::blocked},
                                   {"error-503-Throttling", Kind::blocked},
                                   {"error-403-AccessDeniedException", Kind::blocked},
                                   {"error-400-InvalidClientTokenId", Kind::blocked},
                                   {"error-403-SignatureDoesNotMatch", Kind::blocked},
                                   {"error-400-KmsDisabled", Kind::blocked},
                                   {"error-400-UnsupportedOperation", Kind::blocked},
                                   {"error-400-InvalidMessageContents", Kind::rejected},
                                   {"error-400-SomethingElse", Kind::rejected},
                                   {"error-500-InternalFailure", Kind::unknown},
                                   {"error-503-ServiceUnavailable", Kind::unknown},
                                   {"error-404-SomethingElse", Kind::blocked}}) {
    const Outcome got = outcome(queue);
    EXPECT_EQ(got.kind, kind) << queue << ": " << got.error.text();
    EXPECT_FALSE(got.error.hint.empty()) << queue;
    EXPECT_TRUE(contains(got.error.message, queue)) << got.error.text();
    EXPECT_TRUE(contains(got.error.message, queue.substr(10))) << got.error.text();
  }
}

TEST_F(SqsSink, a_queue_that_is_not_there_is_named) {
  const Status opened = make({{"queue", "missing-one"}})->open();
  ASSERT_FALSE(opened);
  EXPECT_TRUE(contains(opened.error().message, "missing-one")) << opened.error().text();
  EXPECT_TRUE(contains(opened.error().hint, "create the queue")) << opened.error().text();
  const Outcome gone = outcome("gone-one");
  EXPECT_EQ(gone.kind, Kind::blocked) << gone.error.text();
  EXPECT_EQ(gone.error.code, Errc::not_found);
}

// ---- queues by event

class SqsQueues : public SqsSink {
 protected:
  /// Makes one message for each of these types of aggregates.
  [[nodiscard]] static Load of(const std::vector<std::string>& types) {
    static const std::set<std::string> kept{"orders", "invoices", "missing-one", "gone-one",
                                            "not a queue"};
    Load load;
    for (std::size_t i = 0; i < types.size(); ++i) {
      load.add(std::to_string(i), "{}");
      load.item(i).event.aggregate_type = *kept.find(types[i]);
    }
    return load;
  }
};

TEST_F(SqsQueues, are_looked_up_once_and_their_events_sent_together) {
  std::vector<std::string> types;
  for (int i = 0; i < 40; ++i) types.emplace_back(i % 2 == 0 ? "orders" : "invoices");
  const Load load = of(types);
  Sending sending(make({{"queue", "{aggregate_type}"}, {"account", "210987654321"}}), load);
  EXPECT_TRUE(sending.relay().failures().empty()) << sending.outcome().error.text();
  EXPECT_EQ(requests("GetQueueUrl").size(), 2U);
  EXPECT_EQ(requests("SendMessageBatch").size(), 4U);
  for (const Json& request : requests("GetQueueUrl"))
    EXPECT_EQ(request.at("QueueOwnerAWSAccountId"), "210987654321");
}

TEST_F(SqsQueues, a_missing_one_is_the_fault_of_its_events_alone) {
  const Load load =
      of({"orders", "missing-one", "gone-one", "not a queue", "orders", "missing-one"});
  Sending sending(make({{"queue", "{aggregate_type}"}, {"concurrency", "2"}}), load);
  // The sink has two batches under way at a time, and takes the rest when they are done.
  ASSERT_TRUE(sending.relay().deliver());
  EXPECT_EQ(sending.relay().rejected(), (std::vector<std::size_t>{1, 2, 3, 5}));
  EXPECT_EQ(sending.relay().acked(), 2U);
}

TEST_F(SqsQueues, are_given_up_with_the_look_up) {
  TcpGate gate(server_.port());
  const auto sink = make_sqs_sink(gate.port(), {{"queue", "{aggregate_type}"}});
  ASSERT_TRUE(sink->open());
  const Load load = of({"orders", "invoices", "orders"});
  MiniRelay relay(*sink, load);
  gate.set(TcpGate::Mode::stalled);
  EXPECT_EQ(relay.offer(3), 3U);
  sink->purge();
  relay.receive();
  EXPECT_EQ(relay.in_flight(), 0U);
  for (const auto& failure : relay.failures())
    EXPECT_EQ(failure.outcome.kind, Kind::retry) << "nothing of the events was sent";
  gate.set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(entries().size(), 3U);
}

// ---- answers that are lost

TEST_F(SqsSink, without_a_whole_answer_it_is_in_doubt) {
  for (const char* queue : {"hang", "close", "truncated", "nonsense"}) {
    const Outcome got = outcome(queue, {{"deadline", "1s"}, {"connect_timeout", "1s"}});
    EXPECT_EQ(got.kind, Kind::unknown) << queue << ": " << got.error.text();
    EXPECT_EQ(got.error.effect, Effect::unknown) << queue;
    EXPECT_TRUE(contains(got.error.message, std::to_string(server_.port()))) << got.error.text();
  }
}

TEST_F(SqsSink, a_connection_that_dies_with_a_request_and_cannot_be_made_again_is_in_doubt) {
  Load load;
  load.add_many(2, 1);
  Sending sending(
      make({{"url", "https://sqs.eu-test-1.amazonaws.com/123456789012/first-then-close"}}), load);
  EXPECT_EQ(sending.relay().acked(), 1U) << sending.outcome().error.text();
  sending.relay().offer_all();
  ASSERT_TRUE(sending.relay().drain());
  EXPECT_EQ(sending.outcome().kind, Kind::unknown) << sending.outcome().error.text();
}

TEST_F(SqsSink, a_connection_closed_while_idle_costs_nothing) {
  TcpGate gate(server_.port());
  Load load;
  load.add_many(20, 1);
  const auto sink = make_sqs_sink(gate.port(), {});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  while (relay.acked() < load.size()) {
    ASSERT_EQ(relay.offer(1), 1U);
    ASSERT_TRUE(relay.drain());
    gate.cut();
  }
  EXPECT_TRUE(relay.failures().empty());
}

TEST_F(SqsSink, sends_so_many_requests_at_a_time) {
  TcpGate gate(server_.port());
  Load load;
  load.add_many(100, 100);
  const auto sink = make_sqs_sink(gate.port(), {{"concurrency", "3"}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  gate.set(TcpGate::Mode::stalled);
  EXPECT_EQ(relay.offer(100), 30U);
  EXPECT_EQ(sink->send(std::vector<Message>{load.message(99, 1000)}), 0U) << "full";
  gate.set(TcpGate::Mode::open);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 30U);
}

}  // namespace
}  // namespace outbox::test
