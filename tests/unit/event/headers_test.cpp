#include "event/headers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace outbox::event {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs read(std::string_view json) {
  Arena arena;
  std::vector<HeaderView> headers;
  read_headers(json, arena, headers);
  Pairs pairs;
  for (const auto& header : headers) pairs.emplace_back(header.name, header.value);
  return pairs;
}

TEST(Headers, come_in_the_order_of_the_text_with_escapes_resolved) {
  EXPECT_EQ(read(R"({"traceparent": "00-ab-cd-01", "b": "x\"y\u00e9", "a": ""})"),
            (Pairs{{"traceparent", "00-ab-cd-01"}, {"b", "x\"y\xc3\xa9"}, {"a", ""}}));
  EXPECT_EQ(read(R"({"n\u0061me": "v"})"), (Pairs{{"name", "v"}}));
}

TEST(Headers, values_that_are_not_strings_are_their_json_text) {
  EXPECT_EQ(read(R"({"n": 1.50, "t": true, "z": null, "o": {"a": [1, "\n"]}})"),
            (Pairs{{"n", "1.50"}, {"t", "true"}, {"z", "null"}, {"o", R"({"a": [1, "\n"]})"}}));
}

TEST(Headers, what_is_no_json_object_is_no_headers) {
  for (const char* json : {"", "{}", "null", "[]", R"({"a": "b")", R"({"a": "b"} x)",
                           R"({"a": "b", "c"})", "garbage"}) {
    EXPECT_EQ(read(json), Pairs{}) << json;
  }
}

TEST(Headers, an_event_cannot_bring_names_that_are_ours) {
  EXPECT_EQ(
      read(R"({"outbox-id": "forged", "Outbox-Seq": "1", "out\u0062ox-x": "1", "outbox": "kept"})"),
      (Pairs{{"outbox", "kept"}}));
  EXPECT_EQ(read(R"({"OUTBOX_ID": "behind CGI", "outboxid": "kept"})"),
            (Pairs{{"outboxid", "kept"}}));
}

TEST(Headers, names_that_a_destination_may_mix_up_are_the_same) {
  EXPECT_TRUE(same_header("X-Tenant", "x_tenant"));
  EXPECT_TRUE(same_header("cloudEvents:id", "cloudevents_id"));
  EXPECT_FALSE(same_header("tenant", "tenants"));
  EXPECT_FALSE(same_header("a-b", "ab"));
  EXPECT_TRUE(has_header_prefix("CE-id", "ce_"));
  EXPECT_FALSE(has_header_prefix("ce", "ce_"));
}

TEST(Headers, a_corrected_copy_names_its_original) {
  EXPECT_EQ(read(R"({"outbox-edited-from": "019a", "outbox-edited-by": "forged"})"),
            (Pairs{{"outbox-edited-from", "019a"}}));
}

TEST(Headers, are_found_by_name_without_regard_to_case) {
  Arena arena;
  EXPECT_EQ(find_header(R"({"a": "1", "Tenant": "acme", "tenant": "second"})", "tenant", arena),
            "acme");
  EXPECT_EQ(find_header(R"({"a": "1"})", "tenant", arena), "");
  EXPECT_EQ(find_header(R"({"tenant": "acme")", "tenant", arena), "");
  EXPECT_EQ(find_header("{}", "tenant", arena), "");
}

TEST(Headers, one_is_put_before_the_others) {
  EXPECT_EQ(with_header("{}", "outbox-replay", "7"), R"({"outbox-replay":"7"})");
  EXPECT_EQ(with_header(" { } ", "outbox-replay", "7"), R"({"outbox-replay":"7"})");
  EXPECT_EQ(with_header("", "outbox-replay", "7"), R"({"outbox-replay":"7"})");
  EXPECT_EQ(with_header("[1]", "outbox-replay", "7"), R"({"outbox-replay":"7"})");
  EXPECT_EQ(with_header(R"({"a": "1"})", "b", "x\"y"), R"({"b":"x\"y","a": "1"})");
  EXPECT_EQ(with_header(R"( {"a": "1"} )", "b", "2"), R"({"b":"2","a": "1"} )");
}

}  // namespace
}  // namespace outbox::event
