// The parts of the RabbitMQ sink that need no server: settings, properties, headers, bookkeeping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "event/time_text.hpp"
#include "sink/kind.hpp"
#include "sink/rabbitmq/config.hpp"
#include "sink/rabbitmq/error_map.hpp"
#include "sink/rabbitmq/management.hpp"
#include "sink/rabbitmq/outstanding.hpp"
#include "sink/rabbitmq/publication.hpp"
#include "sink/rabbitmq/table.hpp"

namespace outbox::test {
namespace {

using namespace sink::rabbitmq;  // NOLINT(google-build-using-namespace)
using sink::Endpoint;
using testing::ElementsAre;

using testing::IsEmpty;
using Given = std::map<std::string, std::string>;

// ---- settings

std::string complaint(Given settings, const std::string& topic = "orders") {
  SubscriptionSpec spec = make_spec("rabbitmq", std::move(settings));
  spec.topic = topic;
  return find_complaint(spec);
}

std::string complaint_with(Given settings) {
  settings.emplace("url", "amqp://a");
  return complaint(std::move(settings));
}

TEST(RabbitSettings, an_address_is_all_that_is_needed) {
  for (const char* url : {"amqp://a", "amqp://a:5673/shop", "amqp://user:se%40cret@a/%2f",
                          "amqps://a", "amqp://[::1]:5672", "amqp://a:1/shop,amqp://b:2/shop"}) {
    EXPECT_EQ(complaint({{"url", url}}), "") << url;
  }
  EXPECT_TRUE(contains(complaint({}), "rabbitmq.url: is missing"));
}

TEST(RabbitSettings, an_address_that_is_none_is_refused_and_not_quoted) {
  for (const char* url : {"a:5672", "http://a", "amqp://", "amqp://u:hush@a/x?y=2"}) {
    const std::string text = complaint({{"url", url}});
    EXPECT_TRUE(contains(text, "rabbitmq.url: ")) << url << ": " << text;
    EXPECT_FALSE(contains(text, "hush")) << text;
    EXPECT_TRUE(contains(text, "hint: ")) << text;
  }
  EXPECT_TRUE(contains(complaint({{"url", "amqp://a/one,amqp://b/two"}}), "virtual hosts"));
}

TEST(RabbitSettings, a_username_needs_a_password_and_a_password_a_username) {
  EXPECT_TRUE(contains(complaint_with({{"username", "u"}}), "rabbitmq.username"));
  EXPECT_TRUE(contains(complaint_with({{"password", "p"}}), "rabbitmq.password"));
  EXPECT_TRUE(contains(complaint({{"url", "amqp://u@a"}}), "rabbitmq.url"));
  EXPECT_EQ(complaint_with({{"username", "u"}, {"password", "p"}}), "");
  EXPECT_EQ(complaint({{"url", "amqp://u@a"}, {"password", "p"}}), "");
}

TEST(RabbitSettings, settings_of_tls_need_tls) {
  for (const auto& [name, value] : Given{{"tls_ca", "/etc/ca.pem"}, {"insecure_tls", "true"}}) {
    EXPECT_TRUE(contains(complaint_with({{name, value}}), "has no effect without TLS")) << name;
    EXPECT_EQ(complaint({{"url", "amqps://a"}, {name, value}}), "") << name;
  }
  EXPECT_TRUE(contains(complaint({{"url", "amqps://a"}, {"tls_key", "k.pem"}}),
                       "rabbitmq.tls_certificate: is missing"));
  EXPECT_TRUE(contains(complaint({{"url", "amqps://a"}, {"tls_certificate", "c.pem"}}),
                       "rabbitmq.tls_key: is missing"));
}

TEST(RabbitSettings, the_default_exchange_needs_a_routing_key) {
  EXPECT_TRUE(contains(complaint({{"url", "amqp://a"}}, ""), "topic: is empty"));
  EXPECT_EQ(complaint({{"url", "amqp://a"}, {"exchange", "orders"}}, ""), "");
}

TEST(RabbitSettings, what_is_declared_must_be_complete) {
  const Given both{{"declare", "true"}, {"exchange", "e"}, {"queue", "q"}};
  EXPECT_EQ(complaint_with(both), "");
  EXPECT_EQ(complaint_with({{"declare", "true"}, {"queue", "q"}}), "");
  EXPECT_TRUE(contains(complaint_with({{"declare", "true"}}), "nothing to declare"));
  EXPECT_TRUE(contains(complaint_with({{"binding", "x.#"}}), "rabbitmq.binding"));
  Given direct = both;
  direct["exchange_type"] = "direct";
  EXPECT_TRUE(contains(complaint_with(direct), "rabbitmq.binding: is missing"));
  direct["binding"] = "order.events";
  EXPECT_EQ(complaint_with(direct), "");
  Given varying = both;
  varying["exchange"] = "{aggregate_type}";
  EXPECT_TRUE(contains(complaint_with(varying), "depend on the event"));
}

TEST(RabbitSettings, the_management_api_is_asked_about_the_queue_with_the_sinks_login) {
  EXPECT_EQ(complaint_with({{"queue", "q"}, {"management_url", "http://a:15672"}}), "");
  EXPECT_TRUE(contains(complaint_with({{"management_url", "http://a"}}), "has no effect"));
  for (const char* url : {"http://u:hush@a", "amqp://a", "http://a,http://b"}) {
    const std::string text = complaint_with({{"queue", "q"}, {"management_url", url}});
    EXPECT_TRUE(contains(text, "rabbitmq.management_url: ")) << url << ": " << text;
    EXPECT_FALSE(contains(text, "hush")) << text;
  }
}

TEST(RabbitSettings, who_gives_no_login_is_the_guest_or_has_a_certificate) {
  const Endpoint own{.scheme = "amqps", .username = "u", .password = "p", .host = "a", .path = {}};
  const Endpoint none{.scheme = "amqps", .username = {}, .password = {}, .host = "a", .path = {}};
  RabbitOptions options;
  EXPECT_EQ(make_login(options, own).username, "u");
  EXPECT_EQ(make_login(options, none).username, "guest");
  options.plain.tls.certificate = "client.pem";
  EXPECT_EQ(make_login(options, none).username, "");
  options.plain.username = "v";
  options.plain.password = "w";
  EXPECT_EQ(make_login(options, own).username, "v");
  EXPECT_EQ(make_login(options, own).password, "w");
}

TEST(RabbitSettings, names_are_checked) {
  EXPECT_TRUE(contains(complaint_with({{"exchange", std::string(256, 'x')}}), "255 bytes"));
  EXPECT_TRUE(contains(complaint_with({{"exchange", "a\nb"}}), "control characters"));
  EXPECT_TRUE(contains(complaint_with({{"queue", "a\tb"}}), "control characters"));
  EXPECT_TRUE(contains(complaint_with({{"exchange", "{aggregat_type}"}}), "aggregate_type"));
  EXPECT_EQ(complaint_with({{"exchange", "{aggregate_type|kebab}.v1"}}), "");
}

TEST(RabbitSettings, passwords_are_secrets) {
  for (const auto& setting : outbox::sink::find_kind("rabbitmq")->settings) {
    const bool may_hold_one = setting.name == "url" || setting.name == "password";
    EXPECT_EQ(setting.secret, may_hold_one) << setting.name;
  }
}

// ---- the exchange

Publication publication(const std::string& exchange) {
  auto compiled = format::Template::compile("rabbitmq.exchange", exchange);
  EXPECT_TRUE(compiled.has_value());
  return Publication(std::move(*compiled));
}

std::string find_exchange(const std::string& exchange, const std::string& aggregate_type) {
  Load load;
  load.add("k", "B").event.aggregate_type = aggregate_type;
  Publication made = publication(exchange);
  const auto name = made.exchange_for(load.message(0, 1));
  return name ? std::string(*name) : "refused: " + name.error().text();
}

TEST(RabbitExchange, may_depend_on_the_event) {
  EXPECT_EQ(find_exchange("shop", "Order"), "shop");
  EXPECT_EQ(find_exchange("", "Order"), "");
  EXPECT_EQ(find_exchange("shop.{aggregate_type|lower}", "Order"), "shop.order");
}

TEST(RabbitExchange, an_event_cannot_choose_the_default_one_or_a_name_that_none_can_have) {
  EXPECT_TRUE(contains(find_exchange("{aggregate_type}", ""), "refused: "));
  EXPECT_TRUE(contains(find_exchange("{aggregate_type}", "a\nb"), "control characters"));
}

// ---- what is sent

struct Sent {
  std::map<std::string, std::string> properties;
  std::map<std::string, std::string> headers;
  std::vector<std::string> without_value;
};

Sent sent(const Message& message) {
  Publication made = publication("");
  EXPECT_TRUE(made.exchange_for(message).has_value());
  const amqp_basic_properties_t& properties = made.properties_for(message);
  Sent sent;
  const std::tuple<const char*, amqp_flags_t, amqp_bytes_t> texts[] = {
      {"content_type", AMQP_BASIC_CONTENT_TYPE_FLAG, properties.content_type},
      {"correlation_id", AMQP_BASIC_CORRELATION_ID_FLAG, properties.correlation_id},
      {"message_id", AMQP_BASIC_MESSAGE_ID_FLAG, properties.message_id},
      {"type", AMQP_BASIC_TYPE_FLAG, properties.type},
      {"app_id", AMQP_BASIC_APP_ID_FLAG, properties.app_id}};
  for (const auto& [name, flag, text] : texts) {
    if ((properties._flags & flag) != 0) sent.properties[name] = to_text(text);
  }
  if ((properties._flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0)
    sent.properties["timestamp"] = std::to_string(properties.timestamp);
  if ((properties._flags & AMQP_BASIC_DELIVERY_MODE_FLAG) != 0)
    sent.properties["delivery_mode"] = std::to_string(properties.delivery_mode);
  for (int i = 0; i < properties.headers.num_entries; ++i) {
    const amqp_table_entry_t& entry = properties.headers.entries[i];
    const std::string name(to_text(entry.key));
    if (entry.value.kind == AMQP_FIELD_KIND_VOID) {
      sent.without_value.push_back(name);
    } else {
      sent.headers[name] = to_text(entry.value.value.bytes);
    }
  }
  return sent;
}

TEST(RabbitMessage, has_the_events_properties_and_all_headers) {
  Load load("orders");
  Load::Item& item = load.add("k", "B");
  item.headers.push_back({.name = "note", .value = "a\r\nb"});
  item.headers.push_back({.name = "gone", .value = "", .absent = true});
  item.event.occurred_at = event::timestamp(1'700'000'000'999'999);
  const Sent one = sent(load.message(0, 1));
  EXPECT_EQ(one.properties, (Given{{"content_type", "application/json"},
                                   {"message_id", item.id_text},
                                   {"type", "OrderPlaced"},
                                   {"app_id", "outbox"},
                                   {"timestamp", "1700000000"},
                                   {"delivery_mode", "2"}}));
  EXPECT_EQ(one.headers, (Given{{"outbox-id", item.id_text},
                                {"outbox-seq", "1"},
                                {"content-type", "application/json"},
                                {"note", "a\r\nb"},
                                {"outbox-key", "k"}}));
  EXPECT_THAT(one.without_value, ElementsAre("gone"));
}

TEST(RabbitMessage, has_the_correlation_id_that_is_sent_or_that_the_event_has) {
  Load load("orders");
  Load::Item& item = load.add(std::nullopt, "B");
  EXPECT_FALSE(sent(load.message(0, 1)).properties.contains("correlation_id"));
  item.event.headers = R"({"correlation_id":"of the event"})";
  EXPECT_EQ(sent(load.message(0, 1)).properties.at("correlation_id"), "of the event");
  item.headers.push_back({.name = "correlation_id", .value = "sent"});
  EXPECT_EQ(sent(load.message(0, 1)).properties.at("correlation_id"), "sent");
}

TEST(RabbitMessage, a_property_that_is_too_long_is_left_out) {
  Load load("orders");
  const std::string long_type(256, 'x');
  load.add("k", "B").event.event_type = long_type;
  EXPECT_FALSE(sent(load.message(0, 1)).properties.contains("type"));
}

std::string refusal(const Load& load, const std::string& exchange = "e") {
  const auto refused = find_refusal(load.message(0, 1), exchange, 1000);
  return refused ? refused->text() : "";
}

TEST(RabbitMessage, what_amqp_cannot_express_is_the_events_fault) {
  Load fits(std::string(255, 'x'));
  fits.add("k", std::string(1000, 'x'));
  EXPECT_EQ(refusal(fits, std::string(255, 'e')), "");
  EXPECT_TRUE(contains(refusal(fits, std::string(256, 'e')), "255 bytes"));

  Load long_key(std::string(256, 'x'));
  long_key.add("k", "B");
  EXPECT_TRUE(contains(refusal(long_key), "routing key"));

  Load large("orders");
  large.add("k", std::string(1001, 'x'));
  EXPECT_TRUE(contains(refusal(large), "rabbitmq.max_message_size"));

  const std::string long_name(256, 'n');
  for (const std::string_view name :
       {std::string_view("CC"), std::string_view("BCC"), std::string_view(long_name)}) {
    Load load("orders");
    load.add("k", "B").headers.push_back({.name = name, .value = "orders"});
    EXPECT_TRUE(contains(refusal(load), "header")) << name;
    EXPECT_TRUE(contains(refusal(load), "hint: ")) << name;
  }
}

// ---- what is outstanding

class RabbitOutstanding : public testing::Test {
 protected:
  /// Adds tokens from 1 to `count`, which are also the numbers.
  void add(Token count) {
    for (Token token = 1; token <= count; ++token) outstanding_.add({.token = token});
  }
  std::vector<Token> settle(std::uint64_t number, bool multiple) {
    std::vector<Token> settled;
    outstanding_.settle(number, multiple,
                        [&](const auto& entry) { settled.push_back(entry.token); });
    return settled;
  }
  Outstanding outstanding_;
};

TEST_F(RabbitOutstanding, an_ack_of_several_settles_those_that_are_open) {
  add(8);
  EXPECT_THAT(settle(6, false), ElementsAre(6));
  EXPECT_THAT(settle(7, false), ElementsAre(7));
  EXPECT_THAT(settle(5, true), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(outstanding_.size(), 1U);
  EXPECT_THAT(settle(8, true), ElementsAre(8));
  EXPECT_TRUE(outstanding_.empty());
}

TEST_F(RabbitOutstanding, a_number_is_settled_once) {
  add(3);
  EXPECT_THAT(settle(2, false), ElementsAre(2));
  EXPECT_THAT(settle(2, false), IsEmpty());
  EXPECT_THAT(settle(3, true), ElementsAre(1, 3));
  EXPECT_THAT(settle(1, false), IsEmpty());
}

TEST_F(RabbitOutstanding, numbers_that_were_never_given_settle_nothing) {
  EXPECT_THAT(settle(0, true), IsEmpty());
  EXPECT_THAT(settle(1, true), IsEmpty());
  add(2);
  EXPECT_THAT(settle(3, true), IsEmpty());
  EXPECT_THAT(settle(0, false), IsEmpty());
  EXPECT_THAT(settle(0, true), ElementsAre(1, 2)) << "0 is all";
}

TEST_F(RabbitOutstanding, a_new_channel_counts_from_one) {
  add(3);
  outstanding_.take_all([](const auto&) {});
  outstanding_.start_again();
  outstanding_.add({.token = 9});
  EXPECT_THAT(settle(1, false), ElementsAre(9));
}

TEST_F(RabbitOutstanding, numbers_go_on_after_all_were_given_up) {
  add(3);
  outstanding_.take_all([](const auto&) {});
  EXPECT_TRUE(outstanding_.empty());
  outstanding_.add({.token = 9});
  EXPECT_THAT(settle(3, true), IsEmpty());
  EXPECT_THAT(settle(4, false), ElementsAre(9));
}

TEST_F(RabbitOutstanding, the_old_ones_are_given_up_alone) {
  const Outstanding::TimePoint start{};
  for (Token token = 1; token <= 4; ++token)
    outstanding_.add({.token = token, .sent = start + std::chrono::seconds(token)});
  EXPECT_THAT(settle(2, false), ElementsAre(2));
  std::vector<Token> old;
  outstanding_.take_older(start + std::chrono::seconds(4),
                          [&](const auto& entry) { old.push_back(entry.token); });
  EXPECT_THAT(old, ElementsAre(1, 3));
  EXPECT_EQ(outstanding_.size(), 1U);
}

TEST_F(RabbitOutstanding, a_returned_message_is_found_by_its_id_and_its_route) {
  const EventId id = *EventId::parse("01939d3c-0000-7000-8000-000000000001");
  outstanding_.add({.token = 1, .id = id, .route = 7});
  outstanding_.add({.token = 2, .id = id, .route = 8});
  Outstanding::Entry* const found = outstanding_.find_returned(id, 8);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->token, 2U);
  found->returned = true;
  EXPECT_EQ(outstanding_.find_returned(id, 8), nullptr);
  EXPECT_THAT(settle(1, false), ElementsAre(1));
  EXPECT_EQ(outstanding_.find_returned(id, 7), nullptr) << "it has its outcome";
}

// ---- what a server says about a queue

using Json = nlohmann::json;

/// The properties that are weaknesses, or the error.
std::string said(const std::string& reply) {
  const auto checked = check_queue(reply);
  if (!checked) return checked.error().text();
  std::string all;
  for (const sink::Weakness& one : *checked) {
    EXPECT_FALSE(one.consequence.empty());
    all += (all.empty() ? "" : ", ") + one.setting;
  }
  return all;
}

std::string said_with(const Json& arguments, const Json& policy,
                      const std::string& type = "quorum") {
  return said(Json{
      {"durable", true},
      {"type", type},
      {"arguments", arguments},
      {"effective_policy_definition",
       policy}}.dump());
}

TEST(RabbitQueueCheck, a_sound_queue_has_no_weakness) {
  EXPECT_EQ(said(R"({"durable":true,"type":"quorum","members":["a","b","c"],"arguments":{}})"), "");
  EXPECT_EQ(said_with(Json::object(), Json::array()), "") << "as some versions write what is empty";
  EXPECT_EQ(said_with({{"x-max-length", 5}}, {{"overflow", "reject-publish-dlx"}}), "");
  EXPECT_EQ(said_with({{"x-max-length-bytes", 5}}, Json(), "stream"), "");
}

TEST(RabbitQueueCheck, weaknesses_are_named) {
  EXPECT_EQ(said(R"({"durable":false,"type":"classic","auto_delete":true,"exclusive":true})"),
            "durable = false, auto_delete = true, exclusive = true, type = classic");
  EXPECT_EQ(said(R"({"durable":true,"type":"quorum","members":["a"]})"), "members = 1");
  EXPECT_EQ(said_with({{"x-max-length", 5}}, Json::object()), "max-length = 5");
  EXPECT_EQ(said_with(Json::object(), {{"max-length-bytes", 5}, {"overflow", "drop-head"}}),
            "max-length-bytes = 5");
  EXPECT_EQ(said_with({{"x-message-ttl", 1000}}, {{"expires", 9}}),
            "message-ttl = 1000, expires = 9");
}

TEST(RabbitQueueCheck, an_answer_of_another_server_is_no_queue) {
  for (const char* reply : {"", "<html>", "[]", "{}", R"({"error":"x"})"})
    EXPECT_TRUE(contains(said(reply), "rabbitmq.management_url")) << reply;
}

// ---- codes

TEST(RabbitErrors, a_code_says_who_is_at_fault) {
  const std::map<int, Fault> expected{
      {311, Fault::message},     {406, Fault::message},     {501, Fault::message},
      {502, Fault::message},     {403, Fault::destination}, {404, Fault::destination},
      {405, Fault::destination}, {402, Fault::destination}, {530, Fault::destination},
      {540, Fault::destination}, {320, Fault::connection},  {506, Fault::connection},
      {541, Fault::connection},  {503, Fault::connection},  {504, Fault::connection},
      {505, Fault::connection},  {999, Fault::connection}};
  for (const auto& [code, fault] : expected)
    EXPECT_EQ(find_fault(static_cast<std::uint16_t>(code)), fault) << code;
}

TEST(RabbitErrors, every_error_says_where_what_and_what_to_do) {
  for (const int code : {311, 320, 402, 403, 404, 405, 406, 501, 502, 504, 506, 530, 541, 999}) {
    const Error error =
        describe(static_cast<std::uint16_t>(code), "WORDS - of the server", "host:1");
    EXPECT_EQ(error.message, "rabbitmq: host:1: WORDS - of the server");
    EXPECT_FALSE(error.hint.empty()) << code;
    EXPECT_EQ(error.origin, "rabbitmq:" + std::to_string(code));
  }
  EXPECT_TRUE(contains(describe_login(403, "", "host:1").hint, "rabbitmq.password"));
  EXPECT_TRUE(contains(describe_login(530, "", "host:1").hint, "virtual host"));
}

TEST(RabbitErrors, the_servers_words_cannot_break_a_line_of_the_log) {
  EXPECT_EQ(describe(404, "no\nsuch\x1b[31m \xff", "h").message, "rabbitmq: h: no?such?[31m ?");
  EXPECT_EQ(describe(404, "größe", "h").message, "rabbitmq: h: größe");
}

}  // namespace
}  // namespace outbox::test
