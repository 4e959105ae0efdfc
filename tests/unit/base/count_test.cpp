#include "base/count.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace outbox {
namespace {

TEST(Count, agrees_with_the_number) {
  EXPECT_EQ(count("event", 0), "0 events");
  EXPECT_EQ(count("event", 1U), "1 event");
  EXPECT_EQ(count("parked event", std::int64_t{2}), "2 parked events");
  EXPECT_EQ(count("event", 1, "is", "are"), "1 event is");
  EXPECT_EQ(count("event", 12, "is", "are"), "12 events are");
}

}  // namespace
}  // namespace outbox
