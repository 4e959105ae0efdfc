// What clients are told of how a verb has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "console/api.hpp"

namespace outbox::console {
namespace {

using testing::HasSubstr;
using testing::Not;

const Operation kLook{.method = "GET", .path = "/events", .words = {}};
const Operation kOne{.method = "GET", .path = "/events/{id}", .words = {}};
const Operation kChange{.method = "POST", .path = "/parked/retry", .words = {}, .document = false};

TEST(Answer, a_document_goes_out_as_the_verb_has_printed_it) {
  EXPECT_EQ(answer(kLook, {.code = 0, .output = "{}\n"}, "1").body, "{}\n");
}

TEST(Answer, a_document_that_says_what_is_wrong_is_no_failure) {
  EXPECT_EQ(answer(kLook, {.code = 3, .output = "[]\n"}, "1").status, 200);
}

TEST(Answer, a_change_answers_with_the_words_of_the_command_line) {
  EXPECT_EQ(answer(kChange, {.code = 0, .output = "2 events are sent again\n"}, "1").body,
            "{\n  \"output\": \"2 events are sent again\\n\"\n}\n");
}

TEST(Answer, a_failure_has_the_status_that_says_what_to_do_and_the_hint_of_the_verb) {
  const auto failed = [](const Operation& operation, int code) {
    return answer(operation, {.code = code, .errors = {"no such thing (hint: look)"}}, "1");
  };
  EXPECT_EQ(failed(kLook, 2).status, 400);
  EXPECT_EQ(failed(kLook, 5).status, 503);
  EXPECT_EQ(failed(kOne, 1).status, 404);
  EXPECT_EQ(failed(kChange, 1).status, 409);
  EXPECT_EQ(failed(kChange, 1).body,
            "{\n  \"title\": \"no such thing\",\n  \"status\": 409,\n  \"hint\": \"look\"\n}\n");
}

TEST(Answer, what_nobody_expected_is_told_to_the_log_only) {
  const Answer told =
      answer(kLook, {.code = 1, .unexpected = true, .errors = {"internal error: password"}}, "17");
  EXPECT_EQ(told.status, 500);
  EXPECT_THAT(told.body, HasSubstr("17"));
  EXPECT_THAT(told.body, Not(HasSubstr("password")));
}

TEST(Answer, bytes_that_are_no_text_are_replaced) {
  EXPECT_THAT(answer(kChange, {.code = 0, .output = "\xff"}, "1").body, HasSubstr("\xef\xbf\xbd"));
}

}  // namespace
}  // namespace outbox::console
