// Tests which pages a strand accepts for its core. An idle relay polls, and the core would write a
// settlement for each page that it gets.
#include "relay/strand.hpp"

#include <gtest/gtest.h>

#include "unit/relay/core_driver.hpp"

namespace outbox::relay {
namespace {

class StrandTest : public ::testing::Test {
 protected:
  /// Shows the strand an empty page of this pair. Returns whether it accepts the page.
  bool sees(store::Pair pair, std::int64_t from = 0, bool drained = true, bool caught_up = true) {
    store::Page page = *page_of(pair, from, {}, drained);
    page.caught_up = caught_up;
    return strand_.accept(page, now_);
  }
  /// Gives the strand a page with an event, so that it accepted a page just now.
  void see_an_event() {
    const auto page = page_of({.s1 = "0", .s2 = "1", .bound = 1}, 0, {{1, "a"}}, true);
    ASSERT_TRUE(strand_.accept(*page, now_));
  }

  SinkState sink_;
  Window window_{{}};
  KeyGate gate_;
  TimePoint now_{std::chrono::seconds(100)};
  Strand strand_{{}, drained_at("0"), sink_, window_, gate_};
};

TEST_F(StrandTest, events_are_seen_and_counted) {
  see_an_event();
  EXPECT_EQ(window_.events(), 1U);
  EXPECT_EQ(window_.bytes(), kEventBytes);
}

TEST_F(StrandTest, an_empty_pair_at_the_end_of_the_log_is_not_seen) {
  see_an_event();
  EXPECT_FALSE(sees({.s1 = "1", .s2 = "2", .bound = 1}));
  EXPECT_FALSE(sees(store::Pair::endless(), 1, false));
}

TEST_F(StrandTest, the_end_of_a_begun_pair_is_seen) {
  see_an_event();
  EXPECT_TRUE(sees({.s1 = "1", .s2 = "2", .bound = 1}, 1));
}

TEST_F(StrandTest, while_the_core_remembers_deliveries_each_end_is_seen) {
  see_an_event();
  strand_.core.remember(ref_of(7));
  strand_.update_wanted_end(false);
  EXPECT_TRUE(sees({.s1 = "1", .s2 = "2", .bound = 1}, 0, true, false));
  EXPECT_TRUE(sees(store::Pair::endless(), 1, false, true));
  EXPECT_FALSE(sees(store::Pair::endless(), 1, false, false));
}

TEST_F(StrandTest, a_cursor_far_behind_the_end_follows_it_but_not_each_time) {
  EXPECT_TRUE(sees({.s1 = "1", .s2 = "2", .bound = 1'000'000}));
  EXPECT_FALSE(sees({.s1 = "2", .s2 = "3", .bound = 2'000'000})) << "at most once a second";
  now_ += std::chrono::seconds(1);
  EXPECT_TRUE(sees({.s1 = "2", .s2 = "3", .bound = 2'000'000}));
}

TEST_F(StrandTest, a_cursor_far_behind_in_transactions_follows_too) {
  EXPECT_TRUE(sees({.s1 = "1", .s2 = "2", .bound = 1, .horizon = 1'000'000}));
}

TEST_F(StrandTest, a_cursor_near_the_end_rests) {
  EXPECT_FALSE(sees({.s1 = "1", .s2 = "2", .bound = 9'999, .horizon = 99'999}));
}

}  // namespace
}  // namespace outbox::relay
