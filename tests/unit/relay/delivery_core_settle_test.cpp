// Tests what the delivery core settles, and what its window holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/key.hpp"
#include "unit/relay/core_driver.hpp"

namespace outbox::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Outcome::Kind;
using std::chrono::milliseconds;

store::Tally tally_of(const std::vector<std::int64_t>& seqs) {
  store::Tally tally;
  for (const std::int64_t seq : seqs) tally.add(event::id_hash(id_of(seq)));
  return tally;
}

/// The range of a row as text: "0>1 from 0 to 5", or "0>1 from 0 to end" if it has no upper end.
std::string place(const store::Settlement& row) {
  return row.s1 + ">" + row.s2 + " from " + std::to_string(row.from_position) + " to " +
         (row.position ? std::to_string(*row.position) : std::string("end"));
}

std::vector<std::string> places(const std::vector<store::Settlement>& rows) {
  std::vector<std::string> all;
  for (const auto& row : rows) all.push_back(place(row));
  return all;
}

CoreDriver opened(CoreOptions options = {}, store::Cursor start = drained_at("0"),
                  Window::Limits limits = {}) {
  CoreDriver driver(std::move(options), std::move(start), limits);
  driver.open();
  return driver;
}

TEST(Settle, a_whole_pair_is_one_row_with_its_ledger) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b", false}, {3, "c"}});
  driver.ack_all(driver.send_all());
  const auto rows = driver.settle();
  ASSERT_THAT(places(rows), ElementsAre("0>1 from 0 to end"));
  EXPECT_EQ(rows[0].acked, tally_of({1, 3}));
  EXPECT_EQ(rows[0].filtered, tally_of({2}));
  EXPECT_EQ(rows[0].parked, store::Tally{});
  EXPECT_EQ(rows[0].bound, 1000);
  EXPECT_EQ(driver.core.acked(), 2U);
  EXPECT_EQ(driver.core.filtered(), 1U);
  EXPECT_TRUE(driver.core.idle());
}

TEST(Settle, nothing_is_due_before_the_interval_or_the_count) {
  auto driver = opened({.settle_interval = milliseconds(50), .settle_events = 3});
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}, {5, "e"}});
  driver.send_all();
  EXPECT_THAT(driver.core.settle(driver.now + milliseconds(500)).rows, IsEmpty())
      << "nothing is done yet";
  EXPECT_FALSE(driver.core.settle_at());
  driver.ack(1);
  const TimePoint first_done = driver.now;
  EXPECT_EQ(driver.core.settle_at(), first_done + milliseconds(50));
  driver.pass(milliseconds(49));
  driver.ack(2);
  EXPECT_EQ(driver.core.settle_at(), first_done + milliseconds(50)) << "the oldest decides";
  EXPECT_THAT(driver.core.settle(driver.now).rows, IsEmpty());
  driver.pass(milliseconds(1));
  EXPECT_THAT(places(driver.core.settle(driver.now).rows), ElementsAre("0>1 from 0 to 2"));
  driver.core.settled();
  driver.ack_all({3, 4});
  EXPECT_THAT(driver.core.settle(driver.now).rows, IsEmpty());
  driver.ack(5);
  EXPECT_THAT(places(driver.core.settle(driver.now).rows), ElementsAre("0>1 from 2 to end"))
      << "three are enough, at once";
}

TEST(Settle, large_snapshots_are_settled_less_often) {
  auto driver = opened({.settle_interval = milliseconds(50), .settle_events = 2});
  const std::string large(32 << 10, 's');
  const TimePoint first_done = driver.now;
  driver.pair("0", large, {{1, "a"}, {2, "b"}});
  driver.ack_all(driver.send_all());
  EXPECT_GT(driver.core.settle_at(), first_done + milliseconds(499)) << "64 KiB a second";
  EXPECT_LE(driver.core.settle_at(), first_done + milliseconds(501));
  driver.pass(milliseconds(499));
  EXPECT_THAT(driver.core.settle(driver.now).rows, IsEmpty());
  driver.pass(milliseconds(2));
  EXPECT_EQ(driver.core.settle(driver.now).rows.size(), 1U);
  driver.core.settled();
  driver.pair(large, std::string(10 << 20, 's'), {{3, "a"}});
  driver.ack_all(driver.send_all());
  driver.pass(std::chrono::seconds(2));
  EXPECT_EQ(driver.core.settle(driver.now).rows.size(), 1U) << "never later than that";
}

TEST(Settle, while_rows_are_being_written_no_others_are_due) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  driver.send_all();
  driver.ack(1);
  driver.pass(std::chrono::seconds(1));
  EXPECT_THAT(driver.core.settle(driver.now).rows, ElementsAre(::testing::_));
  driver.ack(2);
  driver.pass(std::chrono::seconds(1));
  EXPECT_THAT(driver.core.settle(driver.now).rows, IsEmpty());
  EXPECT_FALSE(driver.core.settle_at());
  EXPECT_FALSE(driver.core.idle());
  driver.core.settled();
  EXPECT_THAT(places(driver.core.settle(driver.now).rows), ElementsAre("0>1 from 1 to end"));
}

TEST(Settle, only_the_unbroken_beginning_is_settled) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c", false}, {4, "d"}});
  driver.send_all();
  driver.ack(4);
  driver.ack(2);
  EXPECT_THAT(driver.settle(), IsEmpty());
  driver.ack(1);
  const auto rows = driver.settle();
  ASSERT_THAT(places(rows), ElementsAre("0>1 from 0 to end"));
  EXPECT_EQ(rows[0].acked, tally_of({1, 2, 4}));
}

TEST(Settle, a_settlement_has_the_rest_of_a_pair_the_whole_pairs_and_the_part_of_the_last) {
  auto driver = opened();
  driver.page({.s1 = "0", .s2 = "1", .bound = 10}, 0, {{1, "a"}, {2, "b"}}, false);
  driver.ack_all(driver.send_all());
  EXPECT_THAT(places(driver.settle()), ElementsAre("0>1 from 0 to 2"));
  driver.page({.s1 = "0", .s2 = "1", .bound = 10}, 2, {{3, "a"}}, true);
  driver.pair("1", "2", {{4, "a"}});
  driver.pair("2", "3", {{5, "b", false}});
  driver.pair("3", "4", {});
  driver.pair("4", "5", {{6, "a"}});
  driver.page({.s1 = "5", .s2 = "6", .bound = 20}, 0, {{7, "a"}}, false);
  driver.page({.s1 = "5", .s2 = "6", .bound = 20}, 7, {{8, "a"}, {9, "a"}}, true);
  driver.send_all();
  driver.ack_all({3, 4, 6, 7, 8});
  const auto rows = driver.settle();
  ASSERT_THAT(places(rows),
              ElementsAre("0>1 from 2 to end", "1>5 from 0 to end", "5>6 from 0 to 8"));
  EXPECT_EQ(rows[0].acked, tally_of({3}));
  EXPECT_EQ(rows[1].acked, tally_of({4, 6}));
  EXPECT_EQ(rows[1].filtered, tally_of({5}));
  EXPECT_EQ(rows[1].bound, 1000);
  EXPECT_EQ(rows[2].acked, tally_of({7, 8}));
  EXPECT_EQ(rows[2].bound, 20);
  driver.ack(9);
  EXPECT_THAT(places(driver.settle()), ElementsAre("5>6 from 8 to end"));
}

TEST(Settle, a_begun_cursor_goes_on_where_it_stands) {
  auto driver = opened({}, {.s1 = "3", .s2 = "4", .position = 17, .bound = 30});
  driver.page({.s1 = "3", .s2 = "4", .bound = 30}, 17, {{18, "a"}}, false);
  driver.page({.s1 = "3", .s2 = "4", .bound = 30}, 18, {}, true);
  driver.ack_all(driver.send_all());
  EXPECT_THAT(places(driver.settle()), ElementsAre("3>4 from 17 to end"));
  EXPECT_EQ(driver.core.done(), drained_at("4"));
}

TEST(Settle, empty_pairs_that_the_core_did_not_see_are_bridged_in_the_same_row) {
  auto driver = opened({}, drained_at("3"));
  driver.pair("9", "10", {{1, "a"}});
  EXPECT_THAT(driver.settle(), IsEmpty())
      << "a bridge alone is not worth a row while its event is on its way";
  driver.ack_all(driver.send_all());
  const auto rows = driver.settle();
  ASSERT_THAT(places(rows), ElementsAre("3>10 from 0 to end"));
  EXPECT_EQ(rows[0].acked, tally_of({1}));
}

TEST(Settle, a_bridge_before_a_begun_pair_is_a_row_of_its_own) {
  auto driver = opened({}, drained_at("3"));
  driver.page({.s1 = "9", .s2 = "10", .bound = 30}, 0, {{1, "a"}, {2, "a"}}, false);
  driver.send_all();
  driver.ack(1);
  const auto rows = driver.settle();
  ASSERT_THAT(places(rows), ElementsAre("3>9 from 0 to end", "9>10 from 0 to 1"));
  EXPECT_EQ(rows[0].acked, store::Tally{});
}

TEST(Settle, the_news_of_an_empty_pair_moves_a_quiet_cursor) {
  auto driver = opened();
  driver.pair("0", "77", {});
  const auto rows = driver.settle();
  ASSERT_THAT(places(rows), ElementsAre("0>77 from 0 to end"));
  EXPECT_EQ(rows[0].acked.count + rows[0].filtered.count, 0);
  EXPECT_TRUE(driver.core.idle());
}

TEST(Settle, a_page_without_a_match_is_settled_without_the_sink) {
  CoreDriver driver{CoreOptions{}};  // The sink is not open.
  driver.pair("0", "1", {{1, "a", false}, {2, "a", false}});
  const auto rows = driver.settle();
  ASSERT_THAT(places(rows), ElementsAre("0>1 from 0 to end"));
  EXPECT_EQ(rows[0].filtered, tally_of({1, 2}));
}

TEST(Settle, pages_without_a_match_take_no_room_and_are_settled_together) {
  auto driver = opened({.settle_interval = milliseconds(50),
                        .passed_interval = milliseconds(1000),
                        .settle_events = 2});
  driver.pair("0", "1", {{1, "a", false}, {2, "a", false}, {3, "a", false}});
  EXPECT_EQ(driver.window.events(), 0U);
  driver.pass(milliseconds(999));
  EXPECT_TRUE(driver.core.settle(driver.now).empty());
  driver.pair("1", "2", {{4, "a", false}});
  EXPECT_EQ(driver.core.settle_at(), driver.now + milliseconds(1));
  driver.pass(milliseconds(1));
  const auto due = driver.core.settle(driver.now);
  ASSERT_THAT(places(due.rows), ElementsAre("0>2 from 0 to end"));
  EXPECT_EQ(due.rows[0].filtered, tally_of({1, 2, 3, 4}));
  driver.core.settled();
  EXPECT_EQ(driver.window.events(), 0U);
}

TEST(Settle, what_was_passed_is_settled_with_the_next_that_was_delivered) {
  auto driver =
      opened({.settle_interval = milliseconds(50), .passed_interval = milliseconds(1000)});
  driver.pair("0", "1", {{1, "a", false}});
  driver.pass(milliseconds(50));
  driver.pair("1", "2", {{2, "a"}});
  driver.ack_all(driver.send_all());
  EXPECT_THAT(places(driver.core.settle(driver.now).rows), ElementsAre("0>2 from 0 to end"));
}

TEST(Settle, a_store_whose_pair_never_ends_settles_by_position) {
  const store::Pair endless = store::Pair::endless();
  auto driver = opened({}, {.s1 = endless.s1, .s2 = endless.s2, .position = 0});
  driver.page(endless, 0, {{1, "a"}, {2, "a"}}, false);
  driver.ack_all(driver.send_all());
  EXPECT_THAT(places(driver.settle()), ElementsAre("->- from 0 to 2"));
  driver.page(endless, 2, {{3, "a"}}, false);
  driver.page(endless, 3, {{4, "a"}}, false);
  driver.ack_all(driver.send_all());
  EXPECT_THAT(places(driver.settle()), ElementsAre("->- from 2 to 4"));
}

TEST(Settle, rows_lead_from_the_first_cursor_to_the_last_without_a_gap) {
  CoreOptions options;
  options.gapless = false;
  auto driver = opened(options);
  store::Cursor at = drained_at("0");
  store::Tally acked;
  std::vector<std::int64_t> all;
  const auto take = [&](const std::vector<store::Settlement>& rows) {
    EXPECT_LE(rows.size(), 3U);
    for (const auto& row : rows) {
      if (at.drained()) {
        EXPECT_EQ(row.s1, at.s1);
        EXPECT_EQ(row.from_position, 0);
      } else {
        EXPECT_EQ(row.s2, at.s2);
        EXPECT_EQ(row.from_position, at.position);
      }
      at = row.position ? store::Cursor{.s1 = row.s1,
                                        .s2 = row.s2,
                                        .position = *row.position,
                                        .bound = row.bound}
                        : drained_at(row.s2);
      acked += row.acked;
    }
  };
  std::int64_t seq = 0;
  for (int pair = 0; pair < 50; ++pair) {
    const store::Pair made{
        .s1 = std::to_string(pair), .s2 = std::to_string(pair + 1), .bound = seq + 3};
    for (int page = 0; page < 3; ++page) {
      const std::int64_t from = page == 0 ? 0 : seq;
      ++seq;
      all.push_back(seq);
      driver.page(made, from, {{seq, "k" + std::to_string(seq % 4)}}, page == 2);
    }
    // The acks come in reverse, so that the contiguous prefix grows in leaps.
    auto sent = driver.send_all();
    for (auto it = sent.rbegin(); it != sent.rend(); ++it) driver.ack(*it);
    if (pair % 3 == 0) take(driver.settle());
  }
  for (auto sent = driver.send_all(); !sent.empty(); sent = driver.send_all()) driver.ack_all(sent);
  take(driver.settle());
  EXPECT_EQ(at, drained_at("50"));
  EXPECT_EQ(acked, tally_of(all));
  EXPECT_TRUE(driver.core.idle());
}

TEST(Settle, what_an_earlier_run_delivered_is_acked_whatever_the_filter_says_today) {
  auto driver = opened();
  driver.core.remember(ref_of(1));
  driver.core.remember(ref_of(2));
  driver.pair("0", "1", {{1, "a"}, {2, "b", false}, {3, "c", false}});
  EXPECT_THAT(driver.send_all(), IsEmpty());
  const auto rows = driver.settle();
  ASSERT_THAT(places(rows), ElementsAre("0>1 from 0 to end"));
  EXPECT_EQ(rows[0].acked, tally_of({1, 2}));
  EXPECT_EQ(rows[0].filtered, tally_of({3}));
}

TEST(Settle, what_is_remembered_and_was_settled_after_all_is_forgotten_at_the_end_of_the_log) {
  const store::Pair endless = store::Pair::endless();
  auto driver = opened({}, {.s1 = endless.s1, .s2 = endless.s2, .position = 7});
  driver.core.remember(ref_of(7));
  EXPECT_TRUE(driver.core.remembers());
  auto page = std::make_shared<store::Page>(*page_of(endless, 7, {}, false));
  page->caught_up = true;
  driver.core.page_read(page, {}, driver.now);
  EXPECT_FALSE(driver.core.remembers());
  EXPECT_THAT(driver.core.unsettled_acks(), IsEmpty());
  EXPECT_THAT(driver.settle(), IsEmpty()) << "the cursor did not move";
  EXPECT_TRUE(driver.core.idle());
}

TEST(Settle,
     all_that_an_earlier_run_may_have_read_was_seen_at_the_end_of_a_pair_that_this_run_began) {
  auto driver = opened({}, {.s1 = "0", .s2 = "1", .position = 2});
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 2, {{3, "a"}}, true);
  EXPECT_FALSE(driver.core.saw_end()) << "the earlier run may have begun the next pair";
  driver.page({.s1 = "1", .s2 = "2", .bound = 9}, 0, {{4, "a"}}, false);
  EXPECT_FALSE(driver.core.saw_end());
  driver.page({.s1 = "1", .s2 = "2", .bound = 9}, 4, {}, true);
  EXPECT_TRUE(driver.core.saw_end());
}

TEST(Settle, each_row_says_whose_it_is) {
  const store::Settlement stamp{
      .subscription = 3, .lanes = 0xF0, .generation = 7, .config_version = 2};
  auto driver = opened({.row = stamp});
  // A bridge from 0 to 5 comes before this pair.
  driver.page({.s1 = "5", .s2 = "6", .bound = 9}, 0, {{1, "a"}}, false);
  driver.ack_all(driver.send_all());
  const auto rows = driver.settle();
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& row : rows) {
    EXPECT_EQ(row.subscription, stamp.subscription);
    EXPECT_EQ(row.lanes, stamp.lanes);
    EXPECT_EQ(row.generation, stamp.generation);
    EXPECT_EQ(row.config_version, stamp.config_version);
    EXPECT_EQ(row.kind, store::SettlementKind::settle);
  }
}

// ---- the window

TEST(Window, without_room_for_a_page_what_is_done_is_settled_at_once) {
  auto driver = opened({.settle_interval = std::chrono::hours(1), .settle_events = 1000},
                       drained_at("0"), {.events = 10, .page_events = 8});
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 0, {{1, "a"}, {2, "a"}}, false);
  driver.ack_all(driver.send_all());
  EXPECT_THAT(driver.core.settle(driver.now).rows, IsEmpty()) << "a page of 8 fits beside 2";
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 2, {{3, "a"}, {4, "a"}}, false);
  driver.send_all();
  driver.ack(3);
  EXPECT_THAT(driver.core.settle(driver.now).rows, IsEmpty()) << "the sink is what takes time";
  driver.ack(4);
  EXPECT_THAT(places(driver.core.settle(driver.now).rows), ElementsAre("0>1 from 0 to 4"));
}

TEST(Window, holds_what_was_read_until_it_is_settled) {
  auto driver = opened();
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 0, {{1, "a"}, {2, "b", false}}, false);
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 2, {{3, "c"}}, true);
  EXPECT_EQ(driver.window.events(), 3U);
  EXPECT_EQ(driver.window.bytes(), 3 * kEventBytes);
  driver.ack_all(driver.send_all());
  EXPECT_EQ(driver.window.events(), 3U);
  driver.pass(std::chrono::seconds(1));
  EXPECT_EQ(driver.core.settle(driver.now).rows.size(), 1U);
  EXPECT_EQ(driver.window.events(), 3U) << "being written is not written";
  driver.core.settled();
  EXPECT_EQ(driver.window.events(), 0U);
  EXPECT_EQ(driver.window.bytes(), 0U);
}

TEST(Window, gives_back_what_a_settlement_covers_and_no_more) {
  auto driver = opened();
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 0, {{1, "a"}, {2, "b"}}, false);
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 2, {{3, "c"}, {4, "d"}}, true);
  driver.send_all();
  driver.ack_all({1, 2, 3});
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_EQ(driver.window.events(), 1U);
  EXPECT_EQ(driver.window.bytes(), 2 * kEventBytes) << "a page is kept in memory whole";
  driver.ack(4);
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_EQ(driver.window.events(), 0U);
  EXPECT_EQ(driver.window.bytes(), 0U);
}

}  // namespace
}  // namespace outbox::relay
