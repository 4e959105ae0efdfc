#include "subscription/filter.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace outbox::subscription {
namespace {

EventView order(std::string_view headers = "{}") {
  EventView event;
  event.aggregate_type = "order";
  event.event_type = "OrderPlaced";
  event.headers = headers;
  return event;
}

bool header_matches(const std::map<std::string, std::string>& wanted, std::string_view headers) {
  SubscriptionSpec spec;
  spec.match_headers = wanted;
  return Filter(spec).matches(order(headers));
}

TEST(Glob, star_is_any_run_and_question_mark_one_character) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("Order*", "OrderPlaced"));
  EXPECT_TRUE(glob_match("Order*", "Order"));
  EXPECT_TRUE(glob_match("*Placed", "OrderPlaced"));
  EXPECT_TRUE(glob_match("O*P*d", "OrderPlaced"));
  EXPECT_TRUE(glob_match("Order?laced", "OrderPlaced"));
  EXPECT_TRUE(glob_match("a**b", "ab"));
  EXPECT_TRUE(glob_match("*ab", "aab"));
  EXPECT_FALSE(glob_match("Order", "OrderPlaced"));
  EXPECT_FALSE(glob_match("order*", "OrderPlaced"));
  EXPECT_FALSE(glob_match("Order?", "Order"));
  EXPECT_FALSE(glob_match("", "x"));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("*x", ""));
}

TEST(Glob, a_character_is_a_utf8_sequence) {
  EXPECT_TRUE(glob_match("gr?n", "gr\xc3\xbcn"));
  EXPECT_FALSE(glob_match("gr??n", "gr\xc3\xbcn"));
  EXPECT_FALSE(glob_match("*??", "\xc3\xbc"));
  EXPECT_TRUE(glob_match("?", "\xf0\x9f\x98\x80"));
}

TEST(Glob, brackets_and_backslashes_are_themselves) {
  EXPECT_TRUE(glob_match("a[b]\\", "a[b]\\"));
  EXPECT_FALSE(glob_match("[ab]", "a"));
}

TEST(Glob, a_hostile_glob_is_not_exponential) {
  std::string glob;
  for (int i = 0; i < 60; ++i) glob += "*a";
  glob += "*b";
  EXPECT_FALSE(glob_match(glob, std::string(10'000, 'a')));
}

/// Matches globs by a simple and slow algorithm.
bool slow_match(std::string_view glob, std::string_view text) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*')
    return slow_match(glob.substr(1), text) || (!text.empty() && slow_match(glob, text.substr(1)));
  return !text.empty() && (glob[0] == '?' || glob[0] == text[0]) &&
         slow_match(glob.substr(1), text.substr(1));
}

RC_GTEST_PROP(Glob, means_the_same_as_its_definition, ()) {
  const auto glob = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '*', '?'));
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b'));
  const auto short_glob = glob.substr(0, 8);
  const auto short_text = text.substr(0, 12);
  RC_ASSERT(glob_match(short_glob, short_text) == slow_match(short_glob, short_text));
}

TEST(Filter, without_rules_matches_all) {
  const Filter filter{SubscriptionSpec{}};
  EXPECT_TRUE(filter.matches(order()));
  SubscriptionSpec star;
  star.event_types = {"X", "*"};
  EXPECT_TRUE(Filter(star).matches(order()));
}

TEST(Filter, a_task_matches_only_its_queue_named_in_full) {
  EventView task;
  task.aggregate_type = "outbox-task:mail";
  task.event_type = "mail.send";
  SubscriptionSpec spec;
  EXPECT_FALSE(Filter(spec).matches(task));
  for (const char* glob : {"*", "outbox-task:*", "outbox-task:mai?"}) {
    spec.aggregate_types = {glob};
    EXPECT_FALSE(Filter(spec).matches(task)) << glob;
  }
  spec.aggregate_types = {"order", "outbox-task:mail"};
  EXPECT_TRUE(Filter(spec).matches(task));
  EXPECT_TRUE(Filter(spec).matches(order()));
  task.aggregate_type = "outbox-task:mails";
  EXPECT_FALSE(Filter(spec).matches(task));
}

TEST(Filter, a_type_of_a_queue_may_be_left_out) {
  SubscriptionSpec spec;
  spec.aggregate_types = {"outbox-task:mail", "Order"};
  const Filter filter(spec, {"print", "send"});
  EventView event;
  event.aggregate_type = "outbox-task:mail";
  event.event_type = "print";
  EXPECT_FALSE(filter.matches(event));
  event.event_type = "prints";
  EXPECT_TRUE(filter.matches(event));
  event.aggregate_type = "Order";
  event.event_type = "print";
  EXPECT_TRUE(filter.matches(event)) << "it is no task";
}

TEST(Filter, any_glob_of_a_list_and_each_list) {
  SubscriptionSpec spec;
  spec.event_types = {"Invoice*", "Order*"};
  EXPECT_TRUE(Filter(spec).matches(order()));
  spec.aggregate_types = {"invoice"};
  EXPECT_FALSE(Filter(spec).matches(order()));
  spec.aggregate_types.push_back("or?er");
  EXPECT_TRUE(Filter(spec).matches(order()));
}

TEST(Filter, headers_must_be_there_with_exactly_that_value) {
  EXPECT_TRUE(header_matches({{"tenant", "acme"}}, R"({"a": "b", "Tenant": "acme"})"));
  EXPECT_FALSE(header_matches({{"tenant", "acme"}}, R"({"tenant": "ACME"})"));
  EXPECT_FALSE(header_matches({{"tenant", "acme"}}, "{}"));
  EXPECT_FALSE(header_matches({{"tenant", "acme"}}, ""));
  EXPECT_FALSE(header_matches({{"tenant", "acme"}, {"x", "1"}}, R"({"tenant": "acme"})"));
  EXPECT_TRUE(header_matches({{"tenant", "acme"}, {"x", "1"}}, R"({"tenant": "acme", "x": 1})"));
  EXPECT_TRUE(header_matches({{"tenant", "a\nb"}}, R"({"t\u0065nant": "a\nb"})"));
}

std::vector<EventView> make_events(const std::vector<int>& numbers) {
  static const std::vector<std::string> types = [] {
    std::vector<std::string> all;
    for (int i = 0; i < 50; ++i) all.push_back(std::to_string(i));
    return all;
  }();
  std::vector<EventView> events;
  for (const int number : numbers) {
    events.push_back(order(number % 3 == 0 ? R"({"tenant": "acme"})" : "{}"));
    events.back().event_type = types.at(static_cast<std::size_t>(number));
    if (number % 2 == 0) events.back().aggregate_type = "outbox-task:mail";
  }
  return events;
}

TEST(Kinds, events_of_the_same_types_are_of_one_kind) {
  const auto events = make_events({7, 8, 7, 8, 9});
  const event::Kinds kinds{events};
  EXPECT_EQ(kinds.of_event(), (std::vector<std::uint8_t>{0, 1, 0, 1, 2}));
  EXPECT_EQ(kinds.first(), (std::vector<std::size_t>{0, 1, 4}));
  auto other = make_events({7, 7});
  other[1].aggregate_type = "invoice";
  EXPECT_EQ(event::Kinds(other).first().size(), 2U);
}

TEST(Kinds, too_many_are_not_known) {
  std::vector<int> numbers(event::Kinds::kMost);
  std::iota(numbers.begin(), numbers.end(), 0);
  EXPECT_TRUE(event::Kinds(make_events(numbers)).known());
  numbers.push_back(0);
  EXPECT_TRUE(event::Kinds(make_events(numbers)).known());
  numbers.push_back(static_cast<int>(event::Kinds::kMost));
  EXPECT_FALSE(event::Kinds(make_events(numbers)).known());
  EXPECT_FALSE(event::Kinds(make_events({})).known());
}

/// With and without kinds, and for each filter, the marks are those of each event alone.
RC_GTEST_PROP(Filter, marks_each_event_as_it_matches, ()) {
  const auto numbers = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 40));
  SubscriptionSpec spec;
  spec.event_types = *rc::gen::element(std::vector<std::string>{}, std::vector<std::string>{"1*"},
                                       std::vector<std::string>{"99"});
  spec.aggregate_types =
      *rc::gen::element(std::vector<std::string>{}, std::vector<std::string>{"outbox-task:mail"},
                        std::vector<std::string>{"ord*"});
  if (*rc::gen::arbitrary<bool>()) spec.match_headers = {{"tenant", "acme"}};
  const Filter filter(spec, {"10", "12"});
  const auto events = make_events(numbers);
  std::vector<std::uint8_t> expected;
  for (const EventView& event : events) expected.push_back(filter.matches(event) ? 1 : 0);
  const event::Kinds kinds{events};
  std::vector<std::uint8_t> marks{7};
  filter.mark(events, kinds, marks);
  RC_ASSERT(marks == expected);
  filter.mark(events, event::Kinds(), marks);
  RC_ASSERT(marks == expected);
  if (filter.surely_none(events, kinds))
    RC_ASSERT(std::count(expected.begin(), expected.end(), 1) == 0);
  RC_ASSERT(!filter.surely_none(events, event::Kinds()));
}

TEST(Filter, headers_that_are_no_json_object_match_nothing) {
  EXPECT_FALSE(header_matches({{"tenant", "acme"}}, R"({"tenant": "acme")"));
  EXPECT_FALSE(header_matches({{"tenant", "acme"}}, R"(["tenant"])"));
}

}  // namespace
}  // namespace outbox::subscription
