// Tests how snapshots are read from the text that the server writes.
#include "store/postgres/snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace outbox::store::postgres {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Snapshot, with_nothing_in_progress) {
  const auto snapshot = parse_snapshot("120761:120761:");
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->xmin, 120761U);
  EXPECT_EQ(snapshot->xmax, 120761U);
  EXPECT_THAT(snapshot->xip, IsEmpty());
}

TEST(Snapshot, with_transactions_in_progress) {
  const auto snapshot = parse_snapshot("10:20:10,14,15");
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->xmin, 10U);
  EXPECT_EQ(snapshot->xmax, 20U);
  EXPECT_THAT(snapshot->xip, ElementsAre(10U, 14U, 15U));
}

TEST(Snapshot, with_ids_beyond_32_bits) {
  const auto snapshot =
      parse_snapshot("18446744073709551613:18446744073709551615:18446744073709551614");
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->xmax, 18446744073709551615U);
  EXPECT_THAT(snapshot->xip, ElementsAre(18446744073709551614U));
}

TEST(Snapshot, what_is_none_is_refused_and_shown) {
  for (const char* text :
       {"", ":", "::", "1", "1:2", "1:2:3,", "1:2:,3", "1:2:3,,4", "1:2:3 4", "1:2:x",
        "a:2:", "1:b:", " 1:2:", "1:2: ", "-1:2:", "1:2:3:4", "-", "18446744073709551616:1:"}) {
    const auto snapshot = parse_snapshot(text);
    ASSERT_FALSE(snapshot) << text;
    EXPECT_EQ(snapshot.error().code, Errc::corrupt);
    EXPECT_NE(snapshot.error().message.find("\"" + std::string(text) + "\""), std::string::npos);
  }
}

RC_GTEST_PROP(SnapshotProperty, comes_back_as_it_was_written, ()) {
  const auto xmin = *rc::gen::arbitrary<std::uint64_t>();
  const auto xmax = *rc::gen::arbitrary<std::uint64_t>();
  const auto xip = *rc::gen::arbitrary<std::vector<std::uint64_t>>();
  std::string text = std::to_string(xmin) + ":" + std::to_string(xmax);
  for (std::size_t i = 0; i < xip.size(); ++i)
    text += (i == 0 ? ":" : ",") + std::to_string(xip[i]);
  if (xip.empty()) text += ":";
  const auto snapshot = parse_snapshot(text);
  RC_ASSERT(snapshot.has_value());
  RC_ASSERT(snapshot->xmin == xmin);
  RC_ASSERT(snapshot->xmax == xmax);
  RC_ASSERT(snapshot->xip == xip);
}

}  // namespace
}  // namespace outbox::store::postgres
