#include "demo/order.hpp"

#include <gtest/gtest.h>

namespace outbox::demo {
namespace {

Order order() { return {.reference = "2-000117", .customer = 7, .version = 3, .cents = 103}; }

std::string message(const Order& order) { return to_event(order).payload; }

TEST(Order, arrives_as_it_was_committed) {
  test::Judge judge({committed(order())});
  judge.saw(delivered(message(order())));
  EXPECT_TRUE(judge.verdict().kept()) << judge.verdict();
  EXPECT_TRUE(judge.complete());
}

TEST(Order, arrives_in_a_line_of_the_file_sink) {
  test::Judge judge({committed(order())});
  judge.saw(delivered(R"({"topic":"customer.events","key":"7","body":)" + message(order()) + "}"));
  EXPECT_TRUE(judge.complete());
}

TEST(Order, that_was_changed_is_noticed) {
  Order changed = order();
  changed.cents += 1;
  for (const std::string& text :
       {message(changed),
        std::string(R"({"order": "2-000117", "customer": 7, "version": "3", "cents": 103})"),
        std::string(R"({"order": "2-000117", "customer": 7, "version": 3})")}) {
    test::Judge judge({committed(order())});
    judge.saw(delivered(text));
    EXPECT_EQ(judge.verdict().altered, 1U) << text;
    EXPECT_EQ(judge.verdict().lost, 1U) << text;
  }
}

TEST(Order, that_cannot_be_read_is_a_ghost) {
  for (const char* const text :
       {"", "{", "[]", "7", R"({"order": 7, "customer": 1, "version": 1, "cents": 1})"}) {
    test::Judge judge({committed(order())});
    judge.saw(delivered(text));
    EXPECT_EQ(judge.verdict().ghosts, 1U) << text;
  }
}

TEST(Order, its_event_says_all_of_it) {
  const Event event = to_event(order());
  EXPECT_EQ(event.aggregate_type, "customer");
  EXPECT_EQ(event.aggregate_id, "7");
  EXPECT_EQ(event.payload, R"({"order": "2-000117", "customer": 7, "version": 3, "cents": 103})");
}

}  // namespace
}  // namespace outbox::demo
