// The parts of the NATS sink that need no server: settings, names, messages, answers, stream check.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "event/headers.hpp"
#include "sink/nats/config.hpp"
#include "sink/nats/error_map.hpp"
#include "sink/nats/message.hpp"
#include "sink/nats/stream_check.hpp"

namespace outbox::test {
namespace {

using namespace sink::nats;  // NOLINT(google-build-using-namespace)
using Given = std::map<std::string, std::string>;
using Json = nlohmann::json;

std::string complaint(Given settings) {
  settings.emplace("url", "nats://a");
  return find_complaint(make_spec("nats", std::move(settings)));
}

bool complains(Given settings, std::string_view about) {
  const std::string text = complaint(std::move(settings));
  EXPECT_NE(text.find(about), std::string::npos) << text;
  return !text.empty();
}

// ---- settings

TEST(NatsSettings, an_address_is_all_that_is_needed) {
  for (const char* url :
       {"nats://a", "nats://a:4223,tls://b", "nats://u:p%40ss@a", "tls://[::1]:1"})
    EXPECT_EQ(complaint({{"url", url}}), "") << url;
  EXPECT_TRUE(sink::make_sink(make_spec("nats", {{"url", "nats://a"}})));
  EXPECT_FALSE(sink::check_settings(make_spec("nats", {})));
}

TEST(NatsSettings, wrong_addresses_are_refused_and_not_shown) {
  for (const char* url :
       {"", "a:4222", "http://u:hush@a", "nats://u:hush@a/orders", "nats://u:hush@"}) {
    EXPECT_TRUE(complains({{"url", url}}, "nats.url: ")) << url;
    EXPECT_EQ(complaint({{"url", url}}).find("hush"), std::string::npos) << url;
  }
}

TEST(NatsSettings, there_is_one_way_to_log_in) {
  EXPECT_EQ(complaint({{"username", "u"}, {"password", "p"}}), "");
  EXPECT_EQ(complaint({{"token", "t"}}), "");
  EXPECT_EQ(complaint({{"credentials_file", "/x.creds"}}), "");
  EXPECT_TRUE(complains({{"username", "u"}, {"token", "t"}}, "only one"));
  EXPECT_TRUE(complains({{"token", "t"}, {"credentials_file", "/x"}}, "only one"));
  EXPECT_TRUE(complains({{"url", "nats://u:p@a"}, {"token", "t"}}, "nats.url: has a user"));
  EXPECT_TRUE(complains({{"password", "p"}}, "nats.password: is set without username"));
}

TEST(NatsSettings, names_and_pairs) {
  EXPECT_EQ(complaint({{"stream", "ORDERS_1"}, {"domain", "hub"}, {"inbox_prefix", "_INBOX.app"}}),
            "");
  EXPECT_TRUE(complains({{"stream", "orders.>"}}, "nats.stream: has a space"));
  EXPECT_TRUE(complains({{"domain", "a b"}}, "nats.domain: "));
  EXPECT_TRUE(complains({{"inbox_prefix", "_INBOX.>"}}, "wildcard"));
  EXPECT_TRUE(complains({{"inbox_prefix", std::string(200, 'x')}}, "100 bytes"));
  EXPECT_TRUE(complains({{"tls_certificate", "/c.pem"}}, "nats.tls_key: is missing"));
  EXPECT_TRUE(complains({{"tls_key", "/k.pem"}}, "nats.tls_certificate: is missing"));
  EXPECT_TRUE(complains({{"deadline", "0s"}}, "nats.deadline"));
  EXPECT_TRUE(complains({{"max_in_flight", "0"}}, "nats.max_in_flight"));
}

TEST(NatsSettings, a_topic_must_make_a_subject) {
  const auto wrong = [](std::string topic) {
    SubscriptionSpec spec = make_spec("nats", {{"url", "nats://a"}});
    spec.topic = std::move(topic);
    const Status checked = sink::check_settings(spec);
    return checked ? "" : checked.error().text();
  };
  for (const char* good : {"{aggregate_type|lower}.events", "orders", "a.{event_type}.{json:x.y}",
                           "a{{b}}", "$KV.orders.{aggregate_id}"})
    EXPECT_EQ(wrong(good), "") << good;
  for (const char* bad : {"orders events", "orders.", "a..b", "orders.*", "{aggregate_type}.>",
                          "$JS.API.STREAM.DELETE.{event_type}"})
    EXPECT_NE(wrong(bad).find("topic: is not a subject"), std::string::npos) << bad;
}

TEST(NatsSettings, passwords_are_quoted_for_json) {
  EXPECT_EQ(json_escaped("plain"), "plain");
  EXPECT_EQ(json_escaped("a\"b\\c\n"), "a\\\"b\\\\c\\n");
  EXPECT_EQ(json_escaped("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

// ---- names

TEST(NatsNames, subjects) {
  for (const char* good : {"a", "order.events", "a-b_c.D9",
                           "gr\xc3\xb6\xc3\x9f"
                           "e.x",
                           "$KV.b.k", "a$b", "{x}"})
    EXPECT_EQ(wrong_subject(good), "") << good;
  using namespace std::string_view_literals;
  for (const std::string_view bad :
       {""sv,          " "sv,    "a b"sv,  "a\tb"sv,   "a\r\nb"sv,       "a\0b"sv, "\x7f"sv,
        "a\xc2\x85"sv, "\xff"sv, "*"sv,    "a.*.b"sv,  "a.>"sv,          "a*"sv,   "."sv,
        ".a"sv,        "a."sv,   "a..b"sv, "$SYS.x"sv, "$JS.API.INFO"sv, "$KV"sv}) {
    EXPECT_NE(wrong_subject(bad), "") << bad;
  }
  EXPECT_EQ(wrong_subject(std::string(kMostSubjectBytes, 'x')), "");
  EXPECT_NE(wrong_subject(std::string(kMostSubjectBytes + 1, 'x')), "");
}

TEST(NatsNames, headers) {
  using namespace std::string_view_literals;
  EXPECT_EQ(wrong_header("traceparent", "00-\xc3\xa4"), "");
  EXPECT_EQ(wrong_header("a", ""), "");
  EXPECT_EQ(wrong_header("nats", "x"), "");
  for (const std::string_view name : {""sv, "a b"sv, "a:b"sv, "a\rb"sv, "a\nb"sv, "\xc3\xa4"sv,
                                      "a\0"sv, "Nats-Rollup"sv, "nats-msg-id"sv, "NATS-TTL"sv})
    EXPECT_NE(wrong_header(name, "x"), "") << name;
  for (const std::string_view value : {"a\rb"sv, "a\nb"sv, "a\0b"sv})
    EXPECT_NE(wrong_header("x", value), "") << value;
}

// ---- messages

class NatsMessage : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(nats_Open(-1), NATS_OK); }

  static Result<MessageHandle> make(const Message& message, const std::string& stream = {}) {
    return make_message(message,
                        {.subscription = "orders", .reply = "_INBOX.x.1", .stream = stream});
  }
  static std::string header(const MessageHandle& message, const char* name) {
    const char* value = nullptr;
    return natsMsgHeader_Get(message.get(), name, &value) == NATS_OK ? value : "(none)";
  }
};

TEST_F(NatsMessage, has_the_id_the_key_the_stream_and_what_the_format_made) {
  Load load("orders.placed");
  load.add("42", "body");
  const auto made = make(load.message(0, 1), "ORDERS");
  ASSERT_TRUE(made);
  EXPECT_STREQ(natsMsg_GetSubject(made->get()), "orders.placed");
  EXPECT_STREQ(natsMsg_GetReply(made->get()), "_INBOX.x.1");
  EXPECT_STREQ(natsMsg_GetData(made->get()), "body");
  EXPECT_EQ(header(*made, "Nats-Msg-Id"), load.item(0).id_text + ".1.orders");
  EXPECT_EQ(header(*made, "Nats-Expected-Stream"), "ORDERS");
  EXPECT_EQ(header(*made, "outbox-key"), "42");
  EXPECT_EQ(header(*made, "outbox-id"), load.item(0).id_text);
}

TEST_F(NatsMessage, without_a_key_or_a_stream_there_is_no_such_header) {
  Load load("orders");
  load.add(std::nullopt, "x");
  load.add("", "x");
  EXPECT_EQ(header(*make(load.message(0, 1)), "outbox-key"), "(none)");
  EXPECT_EQ(header(*make(load.message(0, 1)), "Nats-Expected-Stream"), "(none)");
  EXPECT_EQ(header(*make(load.message(1, 1)), "outbox-key"), "");
}

TEST_F(NatsMessage, is_a_duplicate_only_of_itself) {
  EventView event;
  event.seq = 7;
  const std::string id = event.id.str();
  EXPECT_EQ(message_id(event, "orders"), id + ".7.orders");
  EXPECT_EQ(message_id(event, "audit"), id + ".7.audit") << "of another subscription to the stream";
  event.seq = 8;
  EXPECT_EQ(message_id(event, "orders"), id + ".8.orders") << "another event with the same id";
  const std::string headers = event::with_header(R"({"a":"b"})", event::kReplayHeader, "3");
  event.headers = headers;
  EXPECT_EQ(message_id(event, "orders"), id + ".8.orders.replay.3");
  event.headers = R"({"x":"outbox-replay"})";
  EXPECT_EQ(message_id(event, "orders"), id + ".8.orders");
}

TEST_F(NatsMessage, what_nats_cannot_express_is_the_events_fault) {
  Load load("orders");
  for (int i = 0; i < 4; ++i) load.add("1", "x");
  load.item(0).topic = "a b";
  load.item(1).headers.push_back({.name = "note", .value = "a\nb"});
  load.item(2).headers.push_back({.name = "Nats-Rollup", .value = "all"});
  load.item(3).key = "a\r\nb";
  for (std::size_t i = 0; i < load.size(); ++i) {
    const auto made = make(load.message(i, 1));
    ASSERT_FALSE(made) << i;
    EXPECT_EQ(made.error().remedy, Remedy::fix) << i;
    EXPECT_FALSE(made.error().hint.empty()) << i;
  }
}

// ---- answers

TEST(NatsAnswers, are_told_apart) {
  using Kind = Answer::Kind;
  EXPECT_EQ(parse_answer(R"({"stream":"ORDERS","seq":1})").kind, Kind::stored);
  EXPECT_EQ(parse_answer(R"({"stream":"ORDERS","seq":1,"duplicate":true})").kind, Kind::stored);
  EXPECT_EQ(parse_answer(R"({"stream":"ORDERS","domain":"hub","seq":12})").kind, Kind::stored);
  for (const char* foreign :
       {"", "ok", "1", "[]", "{}", R"({"stream":"","seq":1})", R"({"stream":"x"})", R"({"seq":1})",
        R"({"stream":1,"seq":1})", R"({"stream":"x","seq":0})", "{\"stream\":"})
    EXPECT_EQ(parse_answer(foreign).kind, Kind::foreign) << foreign;
  const Answer refused = parse_answer(
      R"({"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"x","seq":0})");
  EXPECT_EQ(refused.kind, Kind::refused);
  EXPECT_EQ(refused.code, 503);
  EXPECT_EQ(refused.err_code, 10077);
  EXPECT_EQ(refused.text, "maximum messages exceeded");
}

TEST(NatsAnswers, say_what_is_at_fault) {
  using enum Outcome::Kind;
  const auto kind = [](int code, int err_code) {
    const Verdict verdict =
        judge({.kind = Answer::Kind::refused, .code = code, .err_code = err_code, .text = "why"},
              "orders.placed");
    EXPECT_NE(verdict.error.message.find("orders.placed"), std::string::npos);
    EXPECT_NE(verdict.error.message.find("why"), std::string::npos);
    return verdict.kind;
  };
  EXPECT_EQ(judge({.kind = Answer::Kind::stored}, "x").kind, acked);
  EXPECT_EQ(judge({.kind = Answer::Kind::nobody}, "x").kind, blocked);
  for (const int full : {10077, 10047, 10023, 10028}) EXPECT_EQ(kind(503, full), blocked) << full;
  for (const int limit : {10002, 10120, 10060, 10109})
    EXPECT_EQ(kind(400, limit), blocked) << limit;
  for (const int large : {10054, 10097}) EXPECT_EQ(kind(400, large), rejected) << large;
  EXPECT_EQ(kind(409, 10158), unknown) << "a copy of it is being stored";
  EXPECT_EQ(kind(429, 10167), blocked) << "too many requests";
  EXPECT_EQ(kind(400, 19999), rejected);
  EXPECT_EQ(kind(500, 19999), blocked);
  EXPECT_EQ(kind(503, 0), blocked) << "without a code of its own";
}

TEST(NatsAnswers, a_subject_that_may_not_be_published_to) {
  const auto subject = [](std::string_view text) {
    const auto denied = parse_denied(text);
    return denied ? denied->subject + (denied->cut ? "..." : "") : "(none)";
  };
  EXPECT_EQ(subject(R"(Permissions Violation for Publish to "order.events")"), "order.events");
  EXPECT_EQ(subject(R"(Permissions Violation for Publish to "a\"b\\c")"), R"(a"b\c)");
  EXPECT_EQ(subject(R"(Permissions Violation for Publish to "a.lo)"), "a.lo...");
  EXPECT_EQ(subject(R"(Permissions Violation for Subscription to "_INBOX.x.*")"), "(none)");
  EXPECT_EQ(subject("Authorization Violation"), "(none)");
  EXPECT_TRUE(parse_denied(R"(Permissions Violation for Publish to "a.lo)")->means("a.long"));
  EXPECT_FALSE(parse_denied(R"(Permissions Violation for Publish to "a.lo")")->means("a.long"));
}

TEST(NatsAnswers, errors_of_the_client_have_hints) {
  const Error error =
      describe(NATS_CONNECTION_AUTH_FAILED, "nats://a:4222", "Authorization Violation");
  EXPECT_EQ(error.message, "nats: nats://a:4222: Authorization Violation");
  EXPECT_NE(error.hint.find("nats.password"), std::string::npos);
  EXPECT_EQ(error.remedy, Remedy::fix);
  EXPECT_EQ(describe(NATS_IO_ERROR, "x", "").remedy, Remedy::reconnect);
  EXPECT_EQ(client_words("(conn.c:12): No server available"), "No server available");
  EXPECT_EQ(client_words("No server (yet): none"), "No server (yet): none");
}

// ---- the stream

Json stream(const Json& changes = Json::object()) {
  Json config = {{"name", "ORDERS"},
                 {"storage", "file"},
                 {"retention", "limits"},
                 {"discard", "old"},
                 {"max_msgs", -1},
                 {"max_bytes", -1},
                 {"num_replicas", 3},
                 {"no_ack", false},
                 {"max_msgs_per_subject", -1},
                 {"duplicate_window", 120'000'000'000LL}};
  config.update(changes);
  return {{"config", config}, {"state", Json::object()}};
}

/// What is said of a stream with these changes: the setting of each weakness, or the error.
std::string said(const Json& reply) {
  const auto checked = check_stream("ORDERS", reply.dump(), std::chrono::seconds(60));
  if (!checked) return checked.error().text();
  std::string all;
  for (const sink::Weakness& one : *checked) {
    EXPECT_FALSE(one.consequence.empty());
    all += (all.empty() ? "" : ", ") + one.setting;
  }
  return all;
}

TEST(NatsStreamCheck, a_sound_one_has_no_weakness) {
  EXPECT_EQ(said(stream()), "");
  EXPECT_EQ(said(stream({{"discard", "new"}, {"max_msgs", 10}})), "");
}

TEST(NatsStreamCheck, weaknesses_are_named) {
  EXPECT_EQ(said(stream({{"storage", "memory"}})), "storage = memory");
  EXPECT_EQ(said(stream({{"num_replicas", 1}})), "replicas = 1");
  for (const char* limit : {"max_msgs", "max_bytes", "max_msgs_per_subject"})
    EXPECT_EQ(said(stream({{limit, 10}})), "discard = old") << limit;
  EXPECT_EQ(said(stream({{"retention", "interest"}})), "retention = interest");
  EXPECT_EQ(said(stream({{"duplicate_window", 30'000'000'000LL}})), "duplicate_window = 30s");
  EXPECT_EQ(said(stream({{"storage", "memory"}, {"num_replicas", 1}})),
            "storage = memory, replicas = 1");
}

TEST(NatsStreamCheck, what_makes_delivery_impossible_is_an_error) {
  EXPECT_NE(said(stream({{"no_ack", true}})).find("never confirms"), std::string::npos);
  EXPECT_NE(said(stream({{"sealed", true}})).find("sealed"), std::string::npos);
  EXPECT_NE(said(stream({{"mirror", {{"name", "x"}}}})).find("mirror"), std::string::npos);
  const std::string missing =
      said({{"error", {{"code", 404}, {"err_code", 10059}, {"description", "stream not found"}}}});
  EXPECT_NE(missing.find("stream ORDERS: stream not found [nats:10059] (hint: create"),
            std::string::npos)
      << missing;
  EXPECT_NE(said(Json::array()).find("not one of JetStream"), std::string::npos);
}

TEST(NatsStreamCheck, an_account_without_jetstream) {
  EXPECT_TRUE(check_account(R"({"type":"x","memory":0,"limits":{}})"));
  const Status off = check_account(
      R"({"error":{"code":503,"err_code":10039,"description":"JetStream not enabled for account"}})");
  ASSERT_FALSE(off);
  EXPECT_EQ(off.error().message, "nats: JetStream: JetStream not enabled for account");
}

}  // namespace
}  // namespace outbox::test
