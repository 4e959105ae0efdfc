#include "base/nearest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace outbox {
namespace {

constexpr std::array<std::string_view, 4> kKnown{"aggregate_type", "aggregate_id", "event_type",
                                                 "id"};

TEST(Nearest, finds_the_word_that_was_meant) {
  EXPECT_EQ(nearest("agregate_type", kKnown), "aggregate_type");
  EXPECT_EQ(nearest("aggregate_di", kKnown), "aggregate_id");
  EXPECT_EQ(nearest("EventType", kKnown), "event_type");
  EXPECT_EQ(nearest("event_type", kKnown), "event_type");
  EXPECT_EQ(nearest("di", kKnown), "id");
}

TEST(Nearest, says_nothing_rather_than_mislead) {
  EXPECT_EQ(nearest("payload", kKnown), std::nullopt);
  EXPECT_EQ(nearest("", kKnown), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(1'000'000, 'x'), kKnown), std::nullopt);
}

}  // namespace
}  // namespace outbox
