#include "subscription/rate.hpp"

#include <gtest/gtest.h>

#include "subscription/spec.hpp"

namespace outbox::subscription {
namespace {

TEST(Rate, is_a_number_and_a_time) {
  EXPECT_DOUBLE_EQ(parse_rate("200/s").value(), 200);
  EXPECT_DOUBLE_EQ(parse_rate("30/min").value(), 0.5);
  EXPECT_DOUBLE_EQ(parse_rate("7200/h").value(), 2);
}

TEST(Rate, that_is_none_is_refused_with_its_field) {
  for (const char* text : {"", "200", "0/s", "-1/s", "1.5/s", "200/", "/s", "200/d", "200 /s",
                           "99999999999999999999/s", "10000001/s"}) {
    EXPECT_FALSE(parse_rate(text)) << text;
  }
  SubscriptionSpec spec{.name = "orders", .sink = "null"};
  spec.rate = "fast";
  EXPECT_EQ(validate(spec).error().text(),
            "rate: 'fast' is not a rate (hint: write it like \"200/s\", \"30/min\" or "
            "\"1000/h\")");
}

}  // namespace
}  // namespace outbox::subscription
