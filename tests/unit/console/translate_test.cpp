// From requests of the API to the words of verbs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "console/api.hpp"

namespace outbox::console {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

Words words(const ApiRequest& request) {
  const auto call = translate(request);
  if (!call) return {"problem " + std::to_string(call.error().status), call.error().title};
  return call->words;
}

Words get(std::string_view path, std::multimap<std::string, std::string> query = {}) {
  return words({.method = "GET", .path = path, .query = std::move(query)});
}

Words post(std::string_view path, std::string_view body) {
  return words({.method = "POST", .path = path, .body = body});
}

TEST(Translate, a_question_becomes_a_verb_with_options) {
  EXPECT_THAT(get("/status"), ElementsAre("status", "--json"));
  EXPECT_THAT(get("/status", {{"since", "1h"}}), ElementsAre("status", "--json", "--since=1h"));
  EXPECT_THAT(get("/events", {{"key", "order/42"}, {"limit", "50"}}),
              ElementsAre("events", "--json", "--key=order/42", "--limit=50"));
}

TEST(Translate, a_name_in_the_path_is_decoded_and_given_as_its_verb_takes_it) {
  EXPECT_THAT(get("/events/0198c5b2"), ElementsAre("events", "--json", "--id=0198c5b2"));
  EXPECT_THAT(get("/tasks/0198c5b2"), ElementsAre("tasks", "show", "--json", "--", "0198c5b2"));
  EXPECT_THAT(post("/subscriptions/a%2Fb%20c/pause", R"({"reason": "the shop is closed"})"),
              ElementsAre("subscription", "pause", "--reason=the shop is closed", "--", "a/b c"));
}

TEST(Translate, a_change_becomes_a_verb_that_says_what_it_would_do_unless_it_is_applied) {
  EXPECT_THAT(
      post("/parked/retry", R"({"subscription": "orders", "error": "too large"})"),
      ElementsAre("parked", "retry", "--error=too large", "--subscription=orders", "--preview"));
  EXPECT_THAT(post("/parked/retry", R"({"events": ["12", "13"], "apply": true})"),
              ElementsAre("parked", "retry", "--apply", "--", "12", "13"));
  EXPECT_THAT(post("/parked/retry", R"({"events": ["12"], "apply": false, "error": null})"),
              ElementsAre("parked", "retry", "--preview", "--", "12"));
}

TEST(Translate, what_people_changed_is_asked_for_in_pages) {
  EXPECT_THAT(get("/audit", {{"person", "anna"}, {"cursor", "42"}, {"limit", "500"}}),
              ElementsAre("audit", "--json", "--before=42", "--limit=500", "--person=anna"));
  EXPECT_EQ(get("/audit", {{"limit", "501"}}).front(), "problem 400");
  EXPECT_EQ(post("/audit", "{}").front(), "problem 405");
}

TEST(Translate, no_value_can_be_taken_for_an_option) {
  EXPECT_THAT(get("/tasks/--help"), ElementsAre("tasks", "show", "--json", "--", "--help"));
  EXPECT_THAT(get("/events", {{"type", "--store=sqlite:other.db"}}),
              ElementsAre("events", "--json", "--type=--store=sqlite:other.db"));
  EXPECT_THAT(post("/parked/discard", R"({"events": ["--apply"], "reason": "--apply"})"),
              ElementsAre("parked", "discard", "--reason=--apply", "--", "--apply"));
}

TEST(Translate, a_payload_is_never_the_name_of_a_file) {
  for (const Operation& one : operations()) {
    for (const Parameter& parameter : one.parameters)
      EXPECT_NE(parameter.option, "--payload") << one.path;
  }
  EXPECT_THAT(post("/parked/12/edit", R"({"payload": "@/etc/passwd"})"),
              ElementsAre("parked", "edit", "--payload-text=@/etc/passwd", "--", "12"));
}

TEST(Translate, what_is_not_in_the_table_cannot_be_called) {
  EXPECT_EQ(get("/migrate").front(), "problem 404");
  EXPECT_EQ(get("").front(), "problem 404");
  EXPECT_EQ(get("/").front(), "problem 404");
  EXPECT_EQ(get("/events/").front(), "problem 404");
  EXPECT_EQ(get("/events/1/2").front(), "problem 404");
  EXPECT_EQ(get("/parked/retry").front(), "problem 405") << "no event has this name";
  EXPECT_EQ(post("/status", "{}").front(), "problem 405");
  EXPECT_EQ(words({.method = "DELETE", .path = "/parked"}).front(), "problem 405");
}

TEST(Translate, parameters_are_known_have_their_type_and_are_given_once) {
  EXPECT_THAT(get("/events", {{"tpye", "x"}}),
              ElementsAre("problem 400", "unknown parameter: tpye"));
  EXPECT_EQ(get("/events", {{"limit", "many"}}).front(), "problem 400");
  EXPECT_EQ(get("/events", {{"limit", "-1"}}).front(), "problem 400");
  EXPECT_EQ(get("/events", {{"limit", "500"}}).front(), "events");
  EXPECT_EQ(get("/events", {{"limit", "501"}}).front(), "problem 400") << "it takes memory";
  EXPECT_EQ(get("/events", {{"type", "a"}, {"type", "b"}}).front(), "problem 400");
  EXPECT_EQ(post("/parked/retry", R"({"apply": "yes"})").front(), "problem 400");
  EXPECT_EQ(post("/parked/retry", R"({"events": "12"})").front(), "problem 400");
  EXPECT_EQ(post("/parked/retry", R"({"events": [12]})").front(), "problem 400");
  EXPECT_EQ(post("/parked/retry", "[]").front(), "problem 400");
  EXPECT_EQ(post("/parked/retry", "{").front(), "problem 400");
  EXPECT_EQ(
      words({.method = "POST", .path = "/parked/retry", .query = {{"apply", "true"}}}).front(),
      "problem 400");
}

TEST(Translate, bytes_that_would_end_a_word_are_refused) {
  EXPECT_EQ(get("/tasks/a%00b").front(), "problem 400");
  EXPECT_EQ(get("/tasks/a%0").front(), "problem 400");
  EXPECT_EQ(get("/tasks/a%zz").front(), "problem 400");
  EXPECT_EQ(post("/parked/retry", "{\"error\": \"a\\u0000b\"}").front(), "problem 400");
}

TEST(Translate, nothing_is_changed_by_a_question) {
  for (const Operation& one : operations()) {
    if (one.method == "POST") continue;
    ASSERT_EQ(one.method, "GET") << one.path;
    for (const std::string_view word : one.words) EXPECT_NE(word, "--apply") << one.path;
    for (const Parameter& parameter : one.parameters)
      EXPECT_NE(parameter.option, "--apply") << one.path;
    EXPECT_TRUE(one.document) << one.path;
  }
}

TEST(Translate, each_path_has_a_method_once) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Operation& one : operations())
    EXPECT_TRUE(seen.insert({one.method, one.path}).second) << one.method << " " << one.path;
}

}  // namespace
}  // namespace outbox::console
