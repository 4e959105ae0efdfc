// What people may do with the console.
#include "console/access.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "console/operations.hpp"

namespace outbox::console {
namespace {

using testing::HasSubstr;
using testing::Not;

const Operation& find(std::string_view method, std::string_view path) {
  for (const Operation& one : operations()) {
    if (one.method == method && one.path == path) return one;
  }
  throw std::out_of_range(std::string(path));
}

int status(const Operation& operation, Role role, bool payloads = false) {
  const auto problem =
      check_access(operation, {.name = "anna", .role = role, .payloads = payloads});
  return problem ? problem->status : 200;
}

TEST(Access, whoever_views_changes_nothing) {
  for (const Operation& one : operations())
    EXPECT_EQ(status(one, Role::views, true), one.method == "GET" ? 200 : 403) << one.path;
}

TEST(Access, an_operator_decides_what_becomes_of_events_but_not_what_they_say) {
  EXPECT_EQ(status(find("POST", "/parked/retry"), Role::operates), 200);
  EXPECT_EQ(status(find("POST", "/parked/discard"), Role::operates), 200);
  EXPECT_EQ(status(find("POST", "/parked/{event}/edit"), Role::operates, true), 403);
  EXPECT_EQ(status(find("POST", "/schedules/{name}/remove"), Role::operates), 403);
  EXPECT_EQ(status(find("POST", "/verify/acknowledge"), Role::operates), 403);
  EXPECT_EQ(status(find("POST", "/parked/{event}/edit"), Role::administers, true), 200);
}

TEST(Access, contents_are_a_right_of_their_own) {
  EXPECT_EQ(status(find("GET", "/events/{id}/payload"), Role::administers), 403);
  EXPECT_EQ(status(find("GET", "/events/{id}/payload"), Role::views, true), 200);
  EXPECT_EQ(status(find("POST", "/parked/{event}/edit"), Role::administers), 403);
  EXPECT_EQ(status(find("GET", "/parked/{event}"), Role::views), 200);
}

TEST(Access, documents_lose_their_contents_and_nothing_else) {
  const std::string shown = without_payloads(
      R"({"events": [{"id": 1, "payload": "secret", "headers": {"a": "secret"}, "result": "secret"}]})");
  EXPECT_THAT(shown, Not(HasSubstr("secret")));
  EXPECT_THAT(shown, HasSubstr("\"id\": 1"));
  EXPECT_EQ(without_payloads("secret"), "null\n");
}

TEST(Access, whatever_others_can_reach_asks_for_tokens) {
  EXPECT_FALSE(wants_tokens({}));
  EXPECT_TRUE(wants_tokens({.tokens = true}));
  EXPECT_TRUE(wants_tokens({.loopback = false}));
  EXPECT_TRUE(wants_tokens({.behind_tls = true}));
  EXPECT_TRUE(wants_tokens({.tls = true}));
}

}  // namespace
}  // namespace outbox::console
