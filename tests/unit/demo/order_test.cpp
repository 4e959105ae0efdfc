#include "demo/order.hpp"

#include <gtest/gtest.h>

namespace outbox::demo {
namespace {

constexpr const char* kReference = "2-000117";

Order order() { return {.reference = kReference, .customer = 7, .version = 3, .cents = 103}; }

TEST(Order, arrives_as_it_was_committed) {
  testkit::Judge judge({committed(order())});
  judge.saw(delivered(parse_order(to_event(order()).payload)));
  EXPECT_TRUE(judge.verdict().kept()) << judge.verdict();
  EXPECT_TRUE(judge.complete());
}

TEST(Order, that_was_changed_is_noticed) {
  Order changed = order();
  changed.cents += 1;
  testkit::Judge judge({committed(order())});
  judge.saw(delivered(changed));
  EXPECT_EQ(judge.verdict().altered, 1U);
  EXPECT_EQ(judge.verdict().lost, 1U);
}

TEST(Order, that_cannot_be_read_is_a_ghost) {
  testkit::Judge judge({committed(order())});
  judge.saw(delivered(std::nullopt));
  EXPECT_EQ(judge.verdict().ghosts, 1U);
}

TEST(Order, its_event_says_all_of_it) {
  const Order placed = order();
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
