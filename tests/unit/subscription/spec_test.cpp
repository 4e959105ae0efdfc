#include "subscription/spec.hpp"

#include <gtest/gtest.h>

#include <string>

namespace outbox::subscription {
namespace {

SubscriptionSpec full() {
  return {.name = "orders",
          .sink = "kafka",
          .sink_settings = {{"brokers", "a:9092,b:9092"}, {"acks", "all"}},
          .event_types = {"Order*", "Invoice?"},
          .aggregate_types = {"order"},
          .match_headers = {{"tenant", "acme"}},
          .format = "json",
          .topic = "{aggregate_type|kebab}.v1",
          .key = "{header:tenant}/{aggregate_id}",
          .headers = {{"x-tenant", "{header:tenant}"}},
          .rate = {200}};
}

std::string wrong(const SubscriptionSpec& spec) {
  const auto status = validate(spec);
  return status ? "" : status.error().text();
}

template <class T>
std::string wrong(T SubscriptionSpec::*member, T value) {
  SubscriptionSpec spec = full();
  spec.*member = std::move(value);
  return wrong(spec);
}

using Texts = std::map<std::string, std::string>;
using Globs = std::vector<std::string>;

TEST(Spec, a_good_one_passes) {
  EXPECT_EQ(wrong(full()), "");
  EXPECT_EQ(wrong(SubscriptionSpec{.name = "a.b-c_1", .sink = "null"}), "");
}

TEST(Spec, names_what_is_wrong) {
  EXPECT_EQ(wrong(&SubscriptionSpec::name, std::string()), "name: is empty");
  EXPECT_EQ(
      wrong(&SubscriptionSpec::name, std::string("a b")),
      "name: 'a b' has characters that are not allowed (hint: use letters, digits, '-', '_' and '.')");
  EXPECT_EQ(wrong(&SubscriptionSpec::name, std::string(64, 'x')), "name: is longer than 63 bytes");
  EXPECT_EQ(wrong(&SubscriptionSpec::sink, std::string()), "sink: is empty");
  EXPECT_EQ(wrong(&SubscriptionSpec::format, std::string("jsn")),
            "format: unknown format 'jsn' (hint: did you mean json?)");
  EXPECT_EQ(
      wrong(&SubscriptionSpec::format, std::string("xml")),
      "format: unknown format 'xml' (hint: known are raw, json, cloudevents, cloudevents-json, debezium)");
  EXPECT_EQ(wrong(&SubscriptionSpec::event_types, Globs{"a", ""}),
            "event_types: a glob is empty: it would match nothing (hint: write * for everything)");
  EXPECT_EQ(wrong(&SubscriptionSpec::aggregate_types, Globs{"a\n"}),
            "aggregate_types: contains a control character");
  EXPECT_EQ(wrong(&SubscriptionSpec::key, std::string()).substr(0, 4), "key:");
  EXPECT_EQ(wrong(&SubscriptionSpec::topic, std::string("{typ}")).substr(0, 40),
            "topic: unknown field 'typ' at position 2");
  EXPECT_EQ(wrong(&SubscriptionSpec::key, std::string("{idd}")),
            "key: unknown field 'idd' at position 2 (hint: did you mean id?)");
  EXPECT_EQ(wrong(&SubscriptionSpec::headers, Texts{{"x", "{"}}).substr(0, 10), "headers.x:");
  EXPECT_EQ(wrong(&SubscriptionSpec::headers, Texts{{"outbox-id", "1"}}).substr(0, 31),
            "headers: 'outbox-id' is reserve");
  EXPECT_EQ(wrong(&SubscriptionSpec::headers, Texts{{"X", "1"}, {"x", "2"}}).substr(0, 22),
            "headers: 'x' is given ");
  EXPECT_EQ(wrong(&SubscriptionSpec::match_headers, Texts{{"a b", "1"}}),
            "match_headers: 'a b' is not a header name");
  EXPECT_EQ(wrong(&SubscriptionSpec::sink_settings, Texts{{"path", std::string("a\0", 2)}}),
            "sink_settings.path: is not text");
}

TEST(Spec, stored_form_is_stable_and_sorted) {
  EXPECT_EQ(
      to_json(full()),
      R"({"aggregate_types":["order"],"delays":[],"event_types":["Order*","Invoice?"],"format":"json","format_options":{},"group":"",)"
      R"("headers":{"x-tenant":"{header:tenant}"},"key":"{header:tenant}/{aggregate_id}",)"
      R"("match_headers":{"tenant":"acme"},"max_attempts":10,"max_waiting":100000,"on_dead":"continue",)"
      R"("on_reject":"park","rate":"200/s","retry_base":"1s","retry_cap":"5min","retry_factor":2,"retry_jitter":20,"sink":"kafka",)"
      R"("sink_settings":{"acks":"all","brokers":"a:9092,b:9092"},)"
      R"("topic":"{aggregate_type|kebab}.v1"})");
}

TEST(Spec, round_trip) {
  EXPECT_EQ(from_json("orders", to_json(full())), full());
  const SubscriptionSpec plain{.name = "x", .sink = "stdout"};
  EXPECT_EQ(from_json("x", to_json(plain)), plain);
}

TEST(Spec, what_is_missing_has_its_default) {
  EXPECT_EQ(from_json("x", R"({"sink": "stdout"})"),
            (SubscriptionSpec{.name = "x", .sink = "stdout"}));
}

TEST(Spec, a_difference_is_named_and_what_may_be_secret_is_not_shown) {
  SubscriptionSpec before = full();
  EXPECT_TRUE(differences(before, before).empty());
  SubscriptionSpec after = before;
  after.start = Start::now;
  EXPECT_TRUE(differences(before, after).empty()) << "it has started";
  after.event_types = {"Order*"};
  after.format = "raw";
  after.headers = {{"authorization", "Bearer words"}};
  after.sink_settings["acks"] = "1";
  EXPECT_EQ(
      differences(before, after),
      (std::vector<SettingDifference>{{"format", R"("json")", R"("raw")"},
                                      {"event_types", R"(["Order*","Invoice?"])", R"(["Order*"])"},
                                      {"headers.authorization", "-", "(not shown)"},
                                      {"headers.x-tenant", "(not shown)", "-"},
                                      {"kafka.acks", "(not shown)", "(not shown)"}}));
  after = before;
  after.sink = "file";
  after.sink_settings = {{"path", "x"}};
  EXPECT_EQ(differences(before, after),
            (std::vector<SettingDifference>{{"sink", R"("kafka")", R"("file")"},
                                            {"kafka.acks", "(not shown)", "-"},
                                            {"kafka.brokers", "(not shown)", "-"},
                                            {"file.path", "-", "(not shown)"}}));
}

TEST(Spec, a_stored_form_that_is_not_ours_is_refused) {
  const auto error = [](std::string_view json) { return from_json("x", json).error().text(); };
  EXPECT_EQ(error("{"), "subscription 'x': its stored settings are not a JSON object");
  EXPECT_EQ(error("[]"), "subscription 'x': its stored settings are not a JSON object");
  EXPECT_EQ(error(R"({"formt": "raw"})"),
            "formt: unknown setting of a subscription (hint: did you mean format?)");
  EXPECT_EQ(error(R"({"format": 1})"), "format: is not a string");
  EXPECT_EQ(error(R"({"event_types": ["a", 1]})"), "event_types: is not an array of strings");
  EXPECT_EQ(error(R"({"headers": {"a": 1}})"), "headers: is not an object of strings");
  EXPECT_EQ(error(R"({"delays": ["soon"]})"), "delays: is not an array of durations");
  EXPECT_EQ(error(R"({"rate": "fast"})"), "rate: is not a rate");
  EXPECT_EQ(error(R"({"on_dead": "explode"})"),
            "on_dead: unknown value 'explode' (hint: known are continue, block)");
}

}  // namespace
}  // namespace outbox::subscription
