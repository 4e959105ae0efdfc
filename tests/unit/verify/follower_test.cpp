// Tests that the follower compares every settlement once it is old enough, whenever it is asked and
// however often it begins again where it was, and that it names what differs.
#include "verify/follower.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "support/sanitized.hpp"
#include "unit/verify/ledger_history.hpp"
#include "verify/checkpoint.hpp"

namespace outbox::verify::test {
namespace {

using store::LedgerEvent;
using store::LedgerRow;

constexpr std::uint64_t kHistories = outbox::test::kSanitized ? 40 : 200;
/// A settlement that a claim does not see is at most so many rows before the claim.
constexpr std::int64_t kAge = 4'000'000;

/// The ledger of a history, as a store shows it.
class HistoryReader final : public store::LedgerReader {
 public:
  explicit HistoryReader(LedgerHistory& history) : history_(history) {}

  Result<store::LedgerMoment> begin(std::int32_t subscription,
                                    const store::VisitParked& /*visit*/) override {
    EXPECT_TRUE(begin_rows(subscription));
    return store::LedgerMoment{.now = history_.now().s1};
  }
  Status begin_rows(std::int32_t /*subscription*/) override {
    rows_ = history_.rows();
    seek({.generation = -1, .id = 0}, store::kLastGeneration);
    return {};
  }
  void seek(const store::LedgerRank& after, std::int64_t last) override {
    after_ = after;
    last_ = last;
  }
  Result<std::vector<LedgerRow>> next_rows(std::size_t limit) override {
    std::vector<LedgerRow> found;
    for (const LedgerRow& row : rows_) {
      const store::LedgerRank rank{.generation = row.generation, .id = row.id};
      if (rank > after_ && row.generation <= last_ && found.size() < limit) found.push_back(row);
    }
    if (!found.empty()) after_ = {.generation = found.back().generation, .id = found.back().id};
    read += found.size();
    return found;
  }
  Status scan(const store::EventRange& range, const Visit& visit) override {
    std::vector<LedgerEvent> page;
    std::copy_if(history_.events().begin(), history_.events().end(), std::back_inserter(page),
                 [&](const LedgerEvent& event) { return range.has(event); });
    scanned += page.size();
    visit(page);
    return {};
  }
  Result<std::int64_t> count(const store::EventRange& /*range*/) override { return 0; }
  Result<store::Pruned> pruned(std::int32_t /*subscription*/) override { return pruned_now; }

  std::size_t read{0};
  std::size_t scanned{0};
  store::Pruned pruned_now;

 private:
  LedgerHistory& history_;
  std::vector<LedgerRow> rows_;
  store::LedgerRank after_;
  std::int64_t last_{store::kLastGeneration};
};

bool goes_on() { return true; }

/// How many events the settlements cover that count, by a walk over all of them at once.
std::int64_t covered(LedgerHistory& history) {
  LedgerWalk walk;
  for (const LedgerRow& row : history.rows()) walk.add(row);
  walk.finish(history.now());
  for (const store::EventRange& range : walk.window()) {
    for (const LedgerEvent& event : history.events()) {
      if (range.has(event)) (void)walk.count(event);
    }
  }
  walk.close();
  return walk.report().events;
}

std::int64_t newest(const LedgerHistory& history) {
  std::int64_t at_us = 0;
  for (const LedgerRow& row : history.rows()) at_us = std::max(at_us, row.at_us);
  return at_us;
}

Follower::Progress advance(Follower& follower, HistoryReader& reader, std::int64_t now_us,
                           std::int64_t age_us = kAge) {
  Follower::Progress all;
  do {
    const auto progress =
        follower.advance(reader, 1, {.now_us = now_us, .age_us = age_us}, goes_on);
    EXPECT_TRUE(progress.has_value());
    if (!progress) return all;
    all.events += progress->events;
    all.settlements += progress->settlements;
    all.fault_count += progress->fault_count;
    all.faults.insert(all.faults.end(), progress->faults.begin(), progress->faults.end());
    all.more = progress->more;
  } while (all.more);
  return all;
}

/// A process that ends, and another one that reads what it has written.
Follower begin_again(const Follower& follower, std::size_t rows = 5000) {
  const std::string text = to_text({.outbox = "this", .lanes = follower.compared()});
  const auto read = read_checkpoint(text);
  EXPECT_TRUE(read.has_value()) << text;
  EXPECT_EQ(read->outbox, "this");
  return Follower(read->lanes, rows);
}

TEST(Follower, what_relays_write_is_compared_bit_by_bit_and_is_no_fault) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    LedgerHistory history(seed);
    HistoryReader reader(history);
    Follower follower({});
    std::int64_t events = 0;
    for (int pass = 0; pass < 20; ++pass) {
      history.run(20);
      const auto progress = advance(follower, reader, newest(history));
      ASSERT_EQ(progress.fault_count, 0U)
          << "seed " << seed << ": " << progress.faults.front().text;
      events += progress.events;
      if (history.any(3) == 0) follower = begin_again(follower);
    }
    events += advance(follower, reader, newest(history) + kAge + 1).events;
    EXPECT_EQ(events, covered(history)) << "seed " << seed;
  }
}

TEST(Follower,
     of_a_long_ledger_a_few_rows_at_a_time_are_in_memory_and_a_process_may_end_meanwhile) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    LedgerHistory history(seed);
    history.run(400);
    HistoryReader reader(history);
    Follower follower({}, 7);
    std::int64_t events = 0;
    for (bool more = true; more;) {
      const auto progress = follower.advance(
          reader, 1, {.now_us = newest(history) + kAge + 1, .age_us = kAge}, goes_on);
      ASSERT_TRUE(progress.has_value());
      ASSERT_EQ(progress->fault_count, 0U)
          << "seed " << seed << ": " << progress->faults.front().text;
      events += progress->events;
      more = progress->more;
      if (progress->settlements > 0 && history.any(3) == 0) follower = begin_again(follower, 7);
    }
    EXPECT_EQ(events, covered(history)) << "seed " << seed;
  }
}

TEST(Follower, rows_and_events_are_read_once_and_not_from_the_beginning_again) {
  LedgerHistory history(1);
  HistoryReader reader(history);
  Follower follower({});
  history.run(400);
  (void)advance(follower, reader, newest(history) + kAge + 1);
  const auto read = std::exchange(reader.read, 0);
  EXPECT_GE(read, history.rows().size());
  reader.scanned = 0;
  (void)advance(follower, reader, newest(history) + kAge + 1);
  EXPECT_EQ(reader.read, 0U);
  EXPECT_EQ(reader.scanned, 0U);
  follower = begin_again(follower);
  (void)advance(follower, reader, newest(history) + kAge + 1);
  EXPECT_LT(reader.read, read / 2);
  EXPECT_EQ(reader.scanned, 0U);
}

TEST(Follower, an_event_that_is_gone_or_another_one_is_named) {
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    LedgerHistory history(seed);
    HistoryReader reader(history);
    Follower follower({});
    history.run(100);
    (void)advance(follower, reader, newest(history));
    const std::size_t before = history.events().size();
    history.run(100);
    auto& events = history.events();
    if (events.size() == before) continue;
    const std::size_t place = before + history.any(events.size() - before);
    if (history.any(2) == 0) {
      events.erase(events.begin() + static_cast<std::ptrdiff_t>(place));
    } else {
      auto& byte = events[place].id.bytes[3];
      byte = static_cast<std::remove_reference_t<decltype(byte)>>(~byte);
    }
    const LedgerReport broken = walk(history.rows(), history.events(), history.now());
    const auto progress = advance(follower, reader, newest(history) + kAge + 1);
    EXPECT_EQ(progress.fault_count, broken.fault_count) << "seed " << seed;
  }
}

TEST(Follower, a_settlement_that_is_too_young_waits) {
  LedgerHistory history(3);
  HistoryReader reader(history);
  Follower follower({});
  history.run(300);
  EXPECT_EQ(advance(follower, reader, 0).settlements, 0);
  EXPECT_GT(advance(follower, reader, newest(history) + kAge + 1).settlements, 0);
}

TEST(Follower, what_retention_has_removed_meanwhile_is_no_fault) {
  LedgerHistory history(5);
  HistoryReader reader(history);
  Follower follower({});
  history.run(200);
  (void)advance(follower, reader, 0);
  const std::uint64_t below = history.now().s1->first_unseen() / 2;
  std::erase_if(history.events(), [&](const LedgerEvent& event) { return event.xid < below; });
  reader.pruned_now = {.below_xid = below, .events = 1};
  const auto progress = advance(follower, reader, newest(history) + kAge + 1);
  EXPECT_EQ(progress.fault_count, 0U);
}

TEST(Follower, a_stop_ends_it_and_the_next_one_compares_what_was_left) {
  LedgerHistory history(7);
  HistoryReader reader(history);
  Follower follower({});
  history.run(300);
  int pages = 0;
  const auto stopped =
      follower.advance(reader, 1, {.now_us = newest(history) + kAge + 1, .age_us = kAge},
                       [&] { return ++pages < 2; });
  ASSERT_TRUE(stopped.has_value());
  EXPECT_FALSE(stopped->finished);
  Follower next({});
  EXPECT_EQ(advance(next, reader, newest(history) + kAge + 1).events, covered(history));
}

TEST(Checkpoint, a_text_that_was_written_by_hand_is_an_error) {
  for (const char* const text :
       {"{", "[]", R"({"outbox":"a"})", R"({"outbox":1,"lanes":[]})",
        R"({"outbox":"a","lanes":[{}]})",
        R"({"outbox":"a","lanes":[{"lanes":"x","generation":1,"settlement":1,)"
        R"("s1":null,"s2":null,"position":0,"bound":0}]})",
        R"({"outbox":"a","lanes":[{"lanes":"1","generation":1,"settlement":1,)"
        R"("s1":null,"s2":null,"position":0,"bound":0}]})"})
    EXPECT_FALSE(read_checkpoint(text).has_value()) << text;
  EXPECT_TRUE(read_checkpoint("")->lanes.empty());
}

}  // namespace
}  // namespace outbox::verify::test
