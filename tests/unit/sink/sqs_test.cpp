// The parts of the SQS sink that need no server: settings, attributes, entries, answers, keys.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "sink/sqs/answer.hpp"
#include "sink/sqs/batch.hpp"
#include "sink/sqs/composer.hpp"
#include "sink/sqs/config.hpp"
#include "sink/sqs/credentials.hpp"
#include "sink/sqs/error_map.hpp"
#include "sink/sqs/names.hpp"

namespace outbox::test {
namespace {

using namespace sink::sqs;  // NOLINT(google-build-using-namespace)
using Given = std::map<std::string, std::string>;
using Json = nlohmann::json;
using Kind = Outcome::Kind;

constexpr const char* kUrl = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders";

// ---- settings

std::string complaint(Given settings) {
  const SubscriptionSpec spec = make_spec("sqs", std::move(settings));
  const std::string found = find_complaint(spec);
  EXPECT_EQ(found.empty(), sink::make_sink(spec).has_value());
  return found;
}

/// Adds a queue and a region to the setting.
std::string complaint_about(const std::string& name, const std::string& value) {
  Given settings{{name, value}};
  settings.emplace("queue", "orders");
  settings.emplace("region", "eu-central-1");
  return complaint(std::move(settings));
}

TEST(SqsSettings, a_url_or_a_name_with_a_region_is_all_that_is_needed) {
  for (const char* url : {kUrl, "https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo",
                          "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders"})
    EXPECT_EQ(complaint({{"url", url}}), "") << url;
  EXPECT_EQ(complaint({{"queue", "orders"}, {"region", "eu-central-1"}}), "");
  EXPECT_EQ(complaint({{"queue", "{aggregate_type|kebab}-{header:x}.fifo"}, {"region", "r"}}), "");
  EXPECT_TRUE(contains(complaint({}), "sqs.queue: is missing"));
  EXPECT_TRUE(
      contains(complaint({{"url", kUrl}, {"queue", "orders"}}), "sqs.queue: is set beside"));
  EXPECT_TRUE(contains(complaint({{"queue", "orders"}}), "sqs.region: is missing"));
  EXPECT_TRUE(contains(complaint({{"url", "http://localhost:4566/000000000000/orders"}}),
                       "sqs.region: is missing"));
}

TEST(SqsSettings, wrong_addresses_are_refused_and_not_quoted) {
  for (const char* url : {"sqs.eu-central-1.amazonaws.com/1/orders", "ftp://h/orders", "https://h",
                          "https://h/1/not%20a%20queue", "https://me:hush@h/1/orders",
                          "https://h/1/orders?Action=hush"}) {
    const std::string text = complaint({{"url", url}, {"region", "r"}});
    EXPECT_TRUE(contains(text, "sqs.url: ")) << url << ": " << text;
    EXPECT_TRUE(contains(text, "hint: ")) << text;
    EXPECT_FALSE(contains(text, "hush")) << text;
  }
  for (const char* endpoint : {"h:1", "http://h/path", "http://me:hush@h", "http://a,http://b"})
    EXPECT_TRUE(contains(complaint_about("endpoint", endpoint), "sqs.endpoint: ")) << endpoint;
  EXPECT_EQ(complaint_about("endpoint", "http://localhost:9324/"), "");
}

TEST(SqsSettings, names_of_queues_are_checked_where_they_can_be) {
  for (const char* queue : {"a b", "orders.{event_type}", "ünicode", ".fifo", "{oops}", "a/b"})
    EXPECT_TRUE(contains(complaint_about("queue", queue), "sqs.queue: ")) << queue;
}

TEST(SqsSettings, a_key_is_whole_or_not_there) {
  EXPECT_TRUE(contains(complaint_about("access_key", "a"), "sqs.secret_key: is missing"));
  EXPECT_TRUE(contains(complaint_about("secret_key", "hush"), "sqs.access_key: is missing"));
  EXPECT_TRUE(contains(complaint_about("session_token", "hush"), "sqs.session_token: "));
  for (const char* name : {"access_key", "secret_key", "session_token"}) {
    const std::string text = complaint_about(name, "hush\n");
    EXPECT_TRUE(contains(text, std::string("sqs.") + name + ": has blanks")) << text;
    EXPECT_FALSE(contains(text, "hush")) << text;
  }
}

TEST(SqsSettings, the_others_are_checked) {
  EXPECT_TRUE(contains(complaint_about("region", "eu:central"), "sqs.region: "));
  EXPECT_TRUE(contains(complaint_about("account", "12345"), "sqs.account: "));
  EXPECT_EQ(complaint_about("account", "123456789012"), "");
  EXPECT_TRUE(contains(complaint({{"url", kUrl}, {"account", "123456789012"}}), "sqs.account: "));
  EXPECT_TRUE(contains(complaint_about("delay_seconds", "901"), "sqs.delay_seconds: "));
  EXPECT_TRUE(
      contains(complaint({{"queue", "o.fifo"}, {"region", "r"}, {"delay_seconds", "1"}}), "FIFO"));
  EXPECT_TRUE(contains(complaint_about("encoding", "hex"), "sqs.encoding: "));
  EXPECT_TRUE(contains(complaint_about("attributes", "a,b c"), "sqs.attributes: "));
  EXPECT_TRUE(contains(complaint_about("attributes", "a,b,c,d,e,f,g,h"), "sqs.attributes: "));
  EXPECT_TRUE(contains(complaint_about("max_batch_bytes", "2MiB"), "sqs.max_batch_bytes: "));
  EXPECT_TRUE(contains(complaint_about("connect_timeout", "30s"), "sqs.connect_timeout: "));
  EXPECT_TRUE(contains(complaint_about("tls_key", "/k.pem"), "sqs.tls_certificate: is missing"));
}

TEST(SqsSettings, the_region_and_the_address_of_aws) {
  EXPECT_EQ(parse_region("sqs.eu-central-1.amazonaws.com"), "eu-central-1");
  EXPECT_EQ(parse_region("sqs-fips.us-east-1.amazonaws.com"), "us-east-1");
  EXPECT_EQ(parse_region("vpce-1-2.sqs.us-east-1.vpce.amazonaws.com"), "us-east-1");
  for (const char* none : {"localhost", "sqs", "sqs.", "queue.amazonaws.com", ""})
    EXPECT_EQ(parse_region(none), "") << none;
  const auto address = [](SqsSettings settings) {
    FieldErrors errors;
    return read_options(std::move(settings), "orders", errors).value().endpoint.shown();
  };
  SqsSettings by_name;
  by_name.queue = "orders";
  by_name.region = "cn-north-1";
  EXPECT_EQ(address(by_name), "https://sqs.cn-north-1.amazonaws.com.cn:443");
  SqsSettings by_url;
  by_url.url = kUrl;
  EXPECT_EQ(address(by_url), "https://sqs.eu-central-1.amazonaws.com:443");
  by_url.endpoint = "http://127.0.0.1:9324";
  EXPECT_EQ(address(by_url), "http://127.0.0.1:9324");
}

// ---- names and texts

TEST(SqsNames, of_queues_and_attributes) {
  for (const std::string& good :
       {std::string("a"), std::string("A-b_9"), std::string("a.fifo"), std::string(80, 'q')})
    EXPECT_EQ(wrong_queue_name(good), "") << good;
  for (const std::string& bad : {std::string(), std::string("a.b"), std::string("a b"),
                                 std::string(81, 'q'), std::string("ä"), std::string(".fifo")})
    EXPECT_NE(wrong_queue_name(bad), "") << bad;
  for (const char* good : {"outbox-id", "a.b", "A_9", "awsome", "ce_id"})
    EXPECT_EQ(wrong_attribute_name(good), "") << good;
  for (const std::string& bad : {std::string(), std::string("a b"), std::string(".a"),
                                 std::string("a."), std::string("a..b"), std::string("AWS.x"),
                                 std::string("amazon.x"), std::string("a!"), std::string(257, 'a')})
    EXPECT_NE(wrong_attribute_name(bad), "") << bad;
  EXPECT_TRUE(is_fifo("orders.fifo"));
  EXPECT_FALSE(is_fifo("orders-fifo"));
}

TEST(SqsNames, texts_that_can_be_sent) {
  for (const std::string& good : {std::string("a"), std::string("\t\n\r"), std::string("\x7f"),
                                  std::string("größe 日本 🙂"), std::string("\xef\xbf\xbd"),
                                  std::string("\xf0\x9f\xbf\xbe")})
    EXPECT_TRUE(is_sendable(good)) << good;
  for (const std::string& bad :
       {std::string(), std::string("\0", 1), std::string("a\x1f"), std::string("\xff"),
        std::string("\xef\xbf\xbe"), std::string("\xef\xbf\xbf"), std::string("\xed\xa0\x80")})
    EXPECT_FALSE(is_sendable(bad)) << bad;
}

TEST(SqsNames, different_keys_are_different_groups) {
  const EventId id = EventId::generate();
  const auto group = [&](const std::string& key) { return group_id(key, id); };
  EXPECT_EQ(group("42"), "42");
  EXPECT_EQ(group("a/b:c!"), "a/b:c!") << "what SQS allows stays";
  EXPECT_EQ(group("a b"), "a%20b");
  EXPECT_EQ(group("ü"), "%C3%BC");
  EXPECT_EQ(group_id(std::nullopt, id), id.str());
  std::set<std::string> all;
  const std::vector<std::string> keys{"a b",
                                      "a%20b",
                                      "a%2520b",
                                      "",
                                      "%empty",
                                      std::string(129, 'k'),
                                      std::string(130, 'k'),
                                      group(std::string(129, 'k')),
                                      std::string(128, 'k'),
                                      std::string(50, '%'),
                                      "\n",
                                      std::string("\0", 1)};
  for (const std::string& key : keys) {
    const std::string made = group(key);
    EXPECT_GE(made.size(), 1U);
    EXPECT_LE(made.size(), 128U);
    for (const char c : made) EXPECT_TRUE(c > ' ' && c <= '~') << made;
    all.insert(made);
  }
  EXPECT_EQ(all.size(), keys.size());
}

TEST(SqsNames, an_id_is_of_one_sending_by_one_subscription) {
  EventView event;
  event.id = EventId::generate();
  event.seq = 7;
  EXPECT_EQ(deduplication_id(event, "orders"), event.id.str() + ".7.orders");
  event.headers = R"({"outbox-replay":"3"})";
  EXPECT_EQ(deduplication_id(event, "orders"), event.id.str() + ".7.orders.replay.3");
  event.seq = 9'223'372'036'854'775'807;
  const std::string longest = deduplication_id(event, std::string(63, 's'));
  EXPECT_LE(longest.size(), 128U);
  EXPECT_NE(longest, deduplication_id(event, std::string(62, 's') + "t"));
}

TEST(SqsNames, a_trace_of_x_ray) {
  EXPECT_EQ(trace_header("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1");
  EXPECT_TRUE(
      contains(trace_header("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02").value_or(""),
               "Sampled=0"));
  for (const char* none : {"", "x", "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    EXPECT_EQ(trace_header(none), std::nullopt) << none;
}

// ---- attributes

class SqsAttributes : public testing::Test {
 protected:
  void header(std::string_view name, std::string_view value) {
    load_.item(0).headers.push_back({.name = name, .value = value});
  }
  std::vector<std::string> names(std::vector<std::string> first = {}) {
    std::vector<std::string> found;
    attributes_ = make_attributes(load_.message(0, 1), "", first).value();
    for (const Attribute& one : attributes_) found.push_back(one.name);
    return found;
  }
  [[nodiscard]] Json rest() const { return Json::parse(attributes_.back().value); }

  Load load_;
  std::vector<Attribute> attributes_;
};

TEST_F(SqsAttributes, are_the_headers_and_the_key) {
  load_.add("42", "{}");
  header("tenant", "north");
  EXPECT_EQ(names(), (std::vector<std::string>{"outbox-id", "content-type", "outbox-key",
                                               "outbox-seq", "tenant"}));
}

TEST_F(SqsAttributes, ten_fit_and_of_more_the_rest_is_in_the_last_one) {
  load_.add("42", "{}");
  static const std::vector<std::string> own{"a", "b", "c", "d", "e", "f", "g"};
  for (std::size_t i = 0; i < 6; ++i) header(own[i], "v");
  EXPECT_EQ(names().size(), 10U);
  EXPECT_EQ(names().back(), "f");
  header(own[6], "w");
  EXPECT_EQ(names().size(), 10U);
  EXPECT_EQ(names().back(), "outbox-headers");
  EXPECT_EQ(rest(), (Json{{"f", "v"}, {"g", "w"}}));
}

TEST_F(SqsAttributes, those_that_are_named_come_first) {
  load_.add("42", "{}");
  static const std::vector<std::string> own{"a", "b", "c", "d", "e", "f", "g"};
  for (const std::string& name : own) header(name, "v");
  const auto found = names({"G", "f"});
  EXPECT_EQ(found[0], "outbox-id");
  EXPECT_EQ(found[1], "g") << "in any case";
  EXPECT_EQ(found[2], "f");
  EXPECT_EQ(rest(), (Json{{"d", "v"}, {"e", "v"}}));
}

TEST_F(SqsAttributes, what_cannot_be_one_is_with_the_rest) {
  load_.add("", "{}");
  header("empty", "");
  header("odd!", "v");
  header("control", "a\x01");
  header("outbox-headers", "no place of its own");
  header("crlf", "a\r\nb");
  EXPECT_EQ(names(), (std::vector<std::string>{"outbox-id", "content-type", "outbox-seq", "crlf",
                                               "outbox-headers"}));
  EXPECT_EQ(rest(), (Json{{"outbox-key", ""},
                          {"empty", ""},
                          {"odd!", "v"},
                          {"control", "a\x01"},
                          {"outbox-headers", "no place of its own"}}));
  EXPECT_TRUE(is_sendable(attributes_.back().value));
}

TEST_F(SqsAttributes, bytes_that_are_no_text_reject_the_event) {
  load_.add("42", "{}");
  header("x", "\xff");
  EXPECT_FALSE(make_attributes(load_.message(0, 1), "", {}));
}

TEST_F(SqsAttributes, those_of_cloud_events_stay_together) {
  load_.add("42", "{}");
  load_.item(0).headers.clear();
  for (const char* name : {"ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time",
                           "ce_subject", "ce_partitionkey", "ce_outboxseq", "content-type", "x"})
    header(name, "v");
  const auto found = names();
  EXPECT_EQ(found.front(), "ce_specversion");
  EXPECT_EQ(found[8], "content-type");
  EXPECT_EQ(rest(), (Json{{"outbox-key", "42"}, {"x", "v"}}));
}

// ---- entries and batches

class SqsComposer : public testing::Test {
 protected:
  Result<Composed> compose(const std::string& queue, std::string body, Given more = {}) {
    SqsSettings settings;
    settings.queue = queue;
    settings.region = "r";
    if (more.contains("encoding")) settings.encoding = more["encoding"];
    if (more.contains("delay_seconds")) settings.delay_seconds = std::stoul(more["delay_seconds"]);
    FieldErrors errors;
    options_ = read_options(settings, "orders", errors);
    EXPECT_TRUE(options_) << errors.status().error().text();
    load_.emplace();
    load_->add("42", std::move(body), "");
    Composer composer(*options_);
    return composer.compose(load_->message(0, 9));
  }
  static Json json(const Composed& composed) {
    return Json::parse("{" + composed.entry.members + "}");
  }

  std::optional<SqsOptions> options_;
  std::optional<Load> load_;
};

TEST_F(SqsComposer, counts_bytes_as_sqs_does) {
  const auto made = compose("orders", "größe");
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->queue, "orders");
  EXPECT_EQ(made->entry.token, 9U);
  std::size_t bytes = std::string("größe").size();
  const Json attributes = json(*made).at("MessageAttributes");
  for (const auto& [name, value] : attributes.items())
    bytes += name.size() + 6 + value.at("StringValue").get<std::string>().size();
  EXPECT_EQ(made->entry.bytes, bytes);
}

TEST_F(SqsComposer, a_delay_is_for_standard_queues) {
  EXPECT_EQ(json(*compose("{aggregate_type}", "x", {{"delay_seconds", "3"}})).at("DelaySeconds"),
            3);
  const Json fifo = json(*compose("{aggregate_type}.fifo", "x", {{"delay_seconds", "3"}}));
  EXPECT_FALSE(fifo.contains("DelaySeconds")) << "SQS refuses it";
  EXPECT_EQ(fifo.at("MessageGroupId"), "42");
}

TEST_F(SqsComposer, a_body_that_cannot_be_sent_is_rejected_or_encoded) {
  const std::string bytes("\0\xff", 2);
  const auto refused = compose("orders", bytes);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().hint, "sqs.encoding")) << refused.error().text();
  EXPECT_EQ(json(*compose("orders", bytes, {{"encoding", "auto"}})).at("MessageBody"), "AP8=");
  EXPECT_EQ(json(*compose("orders", "x", {{"encoding", "auto"}})).at("MessageBody"), "x");
  EXPECT_EQ(json(*compose("orders", "x", {{"encoding", "base64"}})).at("MessageBody"), "eA==");
  EXPECT_FALSE(compose("orders", ""));
  const Json empty = json(*compose("orders", "", {{"encoding", "base64"}}));
  EXPECT_EQ(empty.at("MessageAttributes").at("outbox-encoding").at("StringValue"), "empty");
}

TEST_F(SqsComposer, an_event_that_is_too_large_is_refused) {
  EXPECT_TRUE(compose("orders", std::string(262'000, 'x')));
  const auto refused = compose("orders", std::string(262'144, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::too_large);
}

TEST_F(SqsComposer, a_queue_that_cannot_be_one_is_the_fault_of_the_event) {
  const auto refused = compose("{header:tenant}", "x");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().text(), "is empty")) << refused.error().text();
}

TEST(SqsBatch, has_room_for_ten_entries_and_so_many_bytes) {
  Batch batch{.queue = "q"};
  EXPECT_TRUE(batch.has_room(100, 100));
  batch.add({.token = 1, .members = R"("MessageBody":"a")", .bytes = 60});
  EXPECT_TRUE(batch.has_room(40, 100));
  EXPECT_FALSE(batch.has_room(41, 100));
  for (Token token = 2; token <= 10; ++token)
    batch.add({.token = token, .members = "", .bytes = 1});
  EXPECT_FALSE(batch.has_room(1, 100));
}

TEST(SqsBatch, is_one_request_and_can_be_halved) {
  Batch batch{.queue = "q"};
  for (Token token = 1; token <= 3; ++token)
    batch.add({.token = token, .members = R"("MessageBody":"a")", .bytes = 10});
  const Json body = Json::parse(send_body(batch, "https://h/\"q\""));
  EXPECT_EQ(body.at("QueueUrl"), "https://h/\"q\"");
  EXPECT_EQ(body.at("Entries").size(), 3U);
  EXPECT_EQ(body.at("Entries")[2], (Json{{"Id", "2"}, {"MessageBody", "a"}}));
  const auto [first, second] = halves(batch);
  EXPECT_EQ(first.entries.size(), 1U);
  EXPECT_EQ(second.entries.size(), 2U);
  EXPECT_EQ(second.entries[0].token, 2U);
  EXPECT_EQ(second.bytes, 20U);
  EXPECT_EQ(second.queue, "q");
}

TEST(SqsQueueUrls, are_remembered_within_limits) {
  QueueUrls urls;
  EXPECT_EQ(urls.find("a"), nullptr);
  urls.remember("a", "u");
  ASSERT_NE(urls.find("a"), nullptr);
  EXPECT_EQ(*urls.find("a"), "u");
  urls.forget("a");
  EXPECT_EQ(urls.find("a"), nullptr);
  for (int i = 0; i < 25'000; ++i) urls.remember(std::to_string(i), "u");
  EXPECT_NE(urls.find("24999"), nullptr);
  EXPECT_EQ(urls.find("0"), nullptr);
}

// ---- answers

const std::vector<std::string> kSecrets{"hush"};

RequestContext context(bool queue_varies = false) {
  return {.address = "https://h:443",
          .setting = "region",
          .queue = "orders",
          .queue_varies = queue_varies,
          .deadline = std::chrono::seconds(20),
          .secrets = &kSecrets};
}

Outcome refused(long status, const std::string& body, bool queue_varies = false) {
  const auto outcome =
      find_failure({.status = status, .sent = true, .body = body}, context(queue_varies));
  EXPECT_TRUE(outcome);
  return outcome.value_or(Outcome{.kind = Kind::acked});
}

std::string error_body(const std::string& type, const std::string& message = "why") {
  return Json{{"__type", type}, {"message", message}}.dump();
}

TEST(SqsAnswer, codes_in_all_their_forms) {
  EXPECT_EQ(short_code("com.amazonaws.sqs#QueueDoesNotExist"), "QueueDoesNotExist");
  EXPECT_EQ(short_code("AWS.SimpleQueueService.NonExistentQueue"), "NonExistentQueue");
  EXPECT_EQ(short_code("com.amazon.coral.service#AccessDeniedException:http://x"),
            "AccessDeniedException");
  EXPECT_EQ(short_code("AWS.SimpleQueueService.NonExistentQueue;Sender"), "NonExistentQueue");
  EXPECT_EQ(short_code(""), "");
}

TEST(SqsAnswer, what_each_code_means) {
  const std::map<Kind, std::vector<std::pair<long, const char*>>> all{
      {Kind::blocked,
       {{400, "com.amazonaws.sqs#QueueDoesNotExist"},
        {400, "AWS.SimpleQueueService.NonExistentQueue"},
        {403, "AccessDenied"},
        {403, "com.amazon.coral.service#AccessDeniedException"},
        {403, "InvalidClientTokenId"},
        {403, "com.amazon.coral.service#UnrecognizedClientException"},
        {403, "SignatureDoesNotMatch"},
        {403, "com.amazon.coral.service#InvalidSignatureException"},
        {403, "com.amazon.coral.service#ExpiredTokenException"},
        {403, "com.amazonaws.sqs#RequestThrottled"},
        {400, "ThrottlingException"},
        {503, "Throttling"},
        {400, "com.amazonaws.sqs#KmsAccessDenied"},
        {400, "com.amazonaws.sqs#UnsupportedOperation"},
        {404, "Whatever"},
        {301, ""},
        {403, ""},
        {429, ""}}},
      {Kind::rejected,
       {{400, "com.amazonaws.sqs#InvalidMessageContents"},
        {400, "com.amazonaws.sqs#BatchRequestTooLong"},
        {400, "InvalidParameterValue"},
        {400, ""},
        {413, ""}}},
      {Kind::unknown,
       {{500, "InternalFailure"},
        {503, "ServiceUnavailable"},
        {502, ""},
        {504, ""},
        {500, "QueueDoesNotExist"}}},
      {Kind::retry, {{408, ""}, {421, ""}}}};
  for (const auto& [kind, answers] : all) {
    for (const auto& [status, type] : answers) {
      const Outcome got = refused(status, *type == '\0' ? "<html>no</html>" : error_body(type));
      EXPECT_EQ(got.kind, kind) << status << " " << type << " is " << to_string(got.kind);
      EXPECT_FALSE(got.error.hint.empty()) << status << " " << type;
      EXPECT_TRUE(contains(got.error.message, "orders")) << got.error.text();
      EXPECT_EQ(got.error.effect, kind == Kind::unknown ? Effect::unknown : Effect::none);
    }
  }
}

TEST(SqsAnswer, a_missing_queue_may_be_the_fault_of_the_event) {
  EXPECT_EQ(refused(400, error_body("QueueDoesNotExist"), true).kind, Kind::rejected);
  EXPECT_EQ(refused(403, error_body("AccessDenied"), true).kind, Kind::blocked);
}

TEST(SqsAnswer, quotes_what_sqs_says_but_no_secret) {
  const Outcome got = refused(403, error_body("SignatureDoesNotMatch", "for hush"));
  EXPECT_EQ(got.error.message, "sqs: queue 'orders': SignatureDoesNotMatch: \"for ***\"");
  EXPECT_EQ(got.error.origin, "sqs:SignatureDoesNotMatch");
}

TEST(SqsAnswer, a_pause_is_passed_on) {
  const auto outcome = find_failure(
      {.status = 503, .sent = true, .retry_after = std::chrono::seconds(7), .body = ""}, context());
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->retry_after, std::chrono::seconds(7));
}

TEST(SqsAnswer, a_refusal_that_breaks_off_before_its_code_blames_nobody) {
  const auto outcome = find_failure(
      {.code = CURLE_PARTIAL_FILE, .status = 400, .sent = true, .body = "{\"__ty"}, context());
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Kind::retry);
}

TEST(SqsAnswer, without_an_answer_it_matters_whether_anything_was_sent) {
  const auto kind = [](CURLcode code, bool sent) {
    return find_failure({.code = code, .sent = sent}, context()).value().kind;
  };
  EXPECT_EQ(kind(CURLE_OPERATION_TIMEDOUT, true), Kind::unknown);
  EXPECT_EQ(kind(CURLE_RECV_ERROR, true), Kind::unknown);
  EXPECT_EQ(kind(CURLE_COULDNT_CONNECT, true), Kind::unknown);
  EXPECT_EQ(kind(CURLE_COULDNT_CONNECT, false), Kind::blocked);
  EXPECT_EQ(kind(CURLE_SEND_ERROR, false), Kind::retry);
  EXPECT_EQ(kind(CURLE_ABORTED_BY_CALLBACK, false), Kind::retry);
  const auto refused = find_failure({.code = CURLE_COULDNT_CONNECT}, context()).value().error;
  EXPECT_TRUE(contains(refused.hint, "check sqs.region")) << refused.text();
}

std::vector<Kind> kinds(const std::string& body, std::size_t entries) {
  std::vector<Kind> all;
  for (const Outcome& one :
       read_outcomes({.status = 200, .sent = true, .body = body}, entries, context())) {
    all.push_back(one.kind);
    EXPECT_EQ(one.kind == Kind::acked, one.error.message.empty());
  }
  return all;
}

TEST(SqsAnswer, each_entry_is_in_one_of_both_lists) {
  EXPECT_EQ(kinds(R"({"Successful":[{"Id":"0"},{"Id":"2"}],
                      "Failed":[{"Id":"1","Code":"InvalidParameterValue","SenderFault":true,"Message":"x"},
                                {"Id":"3","Code":"InternalError","SenderFault":false},
                                {"Id":"4","Code":"RequestThrottled","SenderFault":true},
                                {"Id":"5"}]})",
                  7),
            (std::vector<Kind>{Kind::acked, Kind::rejected, Kind::acked, Kind::retry, Kind::blocked,
                               Kind::retry, Kind::unknown}));
}

TEST(SqsAnswer, what_is_not_said_is_in_doubt) {
  for (const char* body :
       {"", "{}", "[]", "null", "<html>", R"({"Successful":{}})", R"({"Successful":[1,"0"]})",
        R"({"Successful":[{"Id":0}]})", R"({"Successful":[{"Id":"1"},{"Id":"00"}]})",
        R"({"Successful":[{"Id":"0"}],"Failed":[{"Id":"0","SenderFault":true}]})"})
    EXPECT_EQ(kinds(body, 1), std::vector<Kind>{Kind::unknown}) << body;
}

TEST(SqsAnswer, the_url_of_a_queue) {
  EXPECT_EQ(
      read_queue_url({.status = 200, .body = R"({"QueueUrl":"https://h/1/q"})"}, context()).value(),
      "https://h/1/q");
  const auto none = read_queue_url({.status = 200, .body = "{}"}, context());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Kind::blocked);
}

// ---- credentials

class SqsKeys : public testing::Test {
 protected:
  Result<Credentials> find() {
    return find_credentials(
        settings_, [this](const char* name) { return environment_[name]; },
        [this](const CredentialRequest& request) -> Result<std::string> {
          asked_.push_back(std::string(request.method) + " " + request.url);
          for (const std::string& header : request.headers) asked_.push_back(header);
          const auto answer = answers_.find(request.url);
          if (answer != answers_.end()) return answer->second;
          return tl::unexpected(
              Error{.code = Errc::unavailable, .message = "no answer", .hint = "", .origin = ""});
        });
  }

  SqsSettings settings_;
  Given environment_;
  Given answers_;
  std::vector<std::string> asked_;
};

TEST_F(SqsKeys, of_the_settings_come_first) {
  settings_.access_key = "a";
  settings_.secret_key = "b";
  environment_ = {
      {"AWS_ACCESS_KEY_ID", "c"}, {"AWS_SECRET_ACCESS_KEY", "d"}, {"AWS_SESSION_TOKEN", "e"}};
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->access_key, "a");
  EXPECT_EQ(found->session_token, "") << "that of another key";
  EXPECT_TRUE(asked_.empty());
}

TEST_F(SqsKeys, of_a_container_are_asked_for_at_its_host) {
  environment_["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/x?id=1";
  answers_["http://169.254.170.2/v2/x?id=1"] =
      R"({"AccessKeyId":"a","SecretAccessKey":"b","Token":"c"})";
  const auto found = find();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->session_token, "c");
  for (const char* bad : {"", "[]", "{}", R"({"AccessKeyId":"a"})",
                          R"({"AccessKeyId":"a\n","SecretAccessKey":"b"})"}) {
    answers_["http://169.254.170.2/v2/x?id=1"] = bad;
    EXPECT_FALSE(find()) << bad;
  }
}

TEST_F(SqsKeys, are_not_asked_for_at_hosts_that_anybody_may_have) {
  for (const char* url :
       {"http://192.0.2.1/", "http://169.254.170.2.example.com/", "ftp://127.0.0.1/", "x"}) {
    environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url;
    EXPECT_FALSE(find()) << url;
    EXPECT_TRUE(asked_.empty()) << url;
  }
  for (const char* url : {"https://192.0.2.1/", "http://127.0.0.1:80/",
                          "http://169.254.170.23/v1/credentials", "http://[fd00:ec2::23]/x"}) {
    asked_.clear();
    environment_["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url;
    EXPECT_FALSE(find());
    EXPECT_EQ(asked_.size(), 1U) << url;
  }
}

TEST_F(SqsKeys, of_an_instance_need_a_token_and_a_role) {
  const std::string host = "http://169.254.169.254";
  const std::string roles = host + "/latest/meta-data/iam/security-credentials/";
  answers_ = {{host + "/latest/api/token", "t"},
              {roles, "my-role\nother"},
              {roles + "my-role", R"({"AccessKeyId":"a","SecretAccessKey":"b","Token":"c"})"}};
  ASSERT_TRUE(find());
  EXPECT_EQ(asked_,
            (std::vector<std::string>{"PUT " + host + "/latest/api/token",
                                      "X-aws-ec2-metadata-token-ttl-seconds: 300", "GET " + roles,
                                      "X-aws-ec2-metadata-token: t", "GET " + roles + "my-role",
                                      "X-aws-ec2-metadata-token: t"}));
  answers_[host + "/latest/api/token"] = "t\r\nevil: x";
  EXPECT_FALSE(find());
}

}  // namespace
}  // namespace outbox::test
