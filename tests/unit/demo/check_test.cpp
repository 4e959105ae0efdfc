#include "demo/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demo/order.hpp"

namespace outbox::demo {
namespace {

Order order(const std::string& reference, std::int64_t version, int customer = 7) {
  return {.reference = reference, .customer = customer, .version = version, .cents = 100 + version};
}

Checker three_orders() { return Checker({order("a", 1), order("b", 2), order("c", 3)}); }

TEST(Checker, finds_nothing_wrong_when_everything_came_once_and_in_order) {
  Checker checker = three_orders();
  EXPECT_FALSE(checker.complete());
  for (const auto& seen : {order("a", 1), order("b", 2), order("c", 3)}) checker.saw(seen);
  EXPECT_TRUE(checker.complete());
  EXPECT_EQ(checker.verdict(), (Verdict{.committed = 3, .delivered = 3}));
  EXPECT_TRUE(checker.verdict().promises_held());
}

TEST(Checker, counts_what_is_missing_as_lost) {
  Checker checker = three_orders();
  checker.saw(order("a", 1));
  checker.saw(order("c", 3));
  EXPECT_EQ(checker.verdict(), (Verdict{.committed = 3, .delivered = 2, .lost = 1}));
  EXPECT_FALSE(checker.verdict().promises_held());
}

TEST(Checker, counts_what_nobody_committed_as_a_ghost_once) {
  Checker checker = three_orders();
  checker.saw(order("rolled back", 2));
  checker.saw(order("rolled back", 2));
  EXPECT_EQ(checker.verdict().ghosts, 1);
  EXPECT_EQ(checker.verdict().duplicates, 1);
  EXPECT_FALSE(checker.verdict().promises_held());
}

TEST(Checker, a_ghost_does_not_count_for_the_order) {
  Checker checker = three_orders();
  checker.saw(order("rolled back", 3));
  checker.saw(order("a", 1));
  EXPECT_EQ(checker.verdict().out_of_order, 0);
}

TEST(Checker, a_changed_order_is_a_ghost) {
  Checker checker = three_orders();
  Order changed = order("a", 1);
  changed.cents += 1;
  checker.saw(changed);
  EXPECT_EQ(checker.verdict().ghosts, 1);
  EXPECT_EQ(checker.verdict().delivered, 0);
}

TEST(Checker, what_cannot_be_read_is_a_ghost) {
  Checker checker = three_orders();
  checker.saw(std::nullopt);
  EXPECT_EQ(checker.verdict().ghosts, 1);
}

TEST(Checker, counts_a_first_delivery_after_a_later_one_as_out_of_order) {
  Checker checker = three_orders();
  for (const auto& seen : {order("a", 1), order("c", 3), order("b", 2)}) checker.saw(seen);
  EXPECT_EQ(checker.verdict(), (Verdict{.committed = 3, .delivered = 3, .out_of_order = 1}));
  EXPECT_FALSE(checker.verdict().promises_held());
}

TEST(Checker, a_duplicate_may_come_after_a_later_order) {
  Checker checker = three_orders();
  for (const auto& seen :
       {order("a", 1), order("b", 2), order("a", 1), order("b", 2), order("c", 3)})
    checker.saw(seen);
  EXPECT_EQ(checker.verdict(), (Verdict{.committed = 3, .delivered = 3, .duplicates = 2}));
  EXPECT_TRUE(checker.verdict().promises_held());
}

TEST(Checker, order_is_per_customer) {
  Checker checker({order("a", 5, 1), order("b", 1, 2)});
  checker.saw(order("a", 5, 1));
  checker.saw(order("b", 1, 2));
  EXPECT_EQ(checker.verdict().out_of_order, 0);
}

TEST(Order, its_event_says_all_of_it) {
  const Order placed = order("2-000117", 3);
  const Event event = to_event(placed);
  EXPECT_EQ(event.aggregate_type, "customer");
  EXPECT_EQ(event.aggregate_id, "7");
  EXPECT_EQ(parse_order(event.payload), placed);
}

TEST(Order, is_not_found_in_other_text) {
  for (const char* const text :
       {"", "{", "[]", "7", R"({"order": 7, "customer": 1, "version": 1, "cents": 1})",
        R"({"order": "a", "customer": 1, "version": "1", "cents": 1})",
        R"({"order": "a", "customer": 1, "version": 1})"}) {
    EXPECT_EQ(parse_order(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace outbox::demo
