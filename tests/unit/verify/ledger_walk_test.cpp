// Tests the walk over settlements. It finds no fault in what relays write, and always finds one in
// what they would not write.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "event/key.hpp"
#include "support/sanitized.hpp"
#include "unit/verify/ledger_history.hpp"

namespace outbox::verify::test {
namespace {

using store::LedgerEvent;
using store::LedgerRow;
using store::SettlementKind;

constexpr std::uint64_t kSeeds = outbox::test::kSanitized ? 60 : 300;

std::string list_faults(const LedgerReport& report) {
  std::ostringstream text;
  for (const Fault& fault : report.faults)
    text << to_string(fault.kind) << " of " << fault.settlement << ": " << fault.text << "\n";
  return text.str();
}

bool names(const LedgerReport& report, std::int64_t settlement) {
  return std::any_of(report.faults.begin(), report.faults.end(),
                     [&](const Fault& fault) { return fault.settlement == settlement; });
}

/// How many of these events are committed at `now`. Only these can be counted.
std::int64_t committed(const std::vector<LedgerEvent>& events, const Place& now) {
  return std::count_if(events.begin(), events.end(),
                       [&](const LedgerEvent& event) { return now.has(event.xid, event.seq); });
}

std::int64_t find_sum(const LedgerReport& report) {
  return report.acked.count + report.filtered.count + report.parked.count - report.repeated +
         report.pending;
}

TEST(LedgerWalk, what_relays_write_is_no_fault) {
  std::int64_t voided = 0;
  std::int64_t repeated = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    LedgerHistory history(seed);
    history.run(400);
    const auto report = walk(history.rows(), history.events(), history.now());
    ASSERT_EQ(report.fault_count, 0U) << "seed " << seed << "\n" << list_faults(report);
    ASSERT_EQ(find_sum(report), committed(history.events(), history.now())) << "seed " << seed;
    voided += report.voided;
    repeated += report.repeated;
  }
  EXPECT_GT(voided, 0);
  EXPECT_GT(repeated, 0);
}

store::VisiblePtr sees(std::uint64_t xmax) {
  return std::make_shared<const store::Visible>(store::Visible{.xmax = xmax});
}

/// A history from which retention has removed the events of the older half of the transactions.
struct Halved {
  explicit Halved(std::uint64_t seed) : history(seed) {
    history.run(400);
    now = history.now();
    below = now.s1->first_unseen() / 2;
    events = history.events();
    std::erase_if(events, [this](const LedgerEvent& event) { return event.xid < below; });
  }
  LedgerHistory history;
  Place now;
  std::uint64_t below{0};
  std::vector<LedgerEvent> events;
};

store::LedgerRank make_rank(const LedgerRow& row) {
  return {.generation = row.generation, .id = row.id};
}

/// Whether the row is the newest one of a lane.
bool is_a_cursor(const std::vector<LedgerRow>& rows, const LedgerRow& row) {
  store::LaneMask lanes = row.lanes;
  for (const LedgerRow& later : rows) {
    if (make_rank(later) > make_rank(row)) lanes &= ~later.lanes;
  }
  return lanes != 0;
}

/// Changes a settlement of a history without faults, and expects that the walk finds a fault.
class Corrupted : public ::testing::Test {
 protected:
  /// Changes the settlement at this index of the rows, or what belongs to it.
  using Change = std::function<void(std::vector<LedgerRow>&, std::size_t, LedgerHistory&)>;

  static void expect_found(const Change& change, bool by_its_name = true) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      LedgerHistory history(seed);
      history.run(300);
      auto rows = history.rows();
      const auto clean = walk(rows, history.events(), history.now());
      ASSERT_EQ(clean.fault_count, 0U);
      const auto at = chosen(rows, history);
      if (at == 0) continue;
      const std::int64_t id = rows[at].id;
      change(rows, at, history);
      const auto report = walk(rows, history.events(), history.now());
      ASSERT_GT(report.fault_count, 0U) << "seed " << seed << ", settlement " << id;
      if (by_its_name) {
        ASSERT_TRUE(names(report, id)) << "seed " << seed << ", settlement " << id << "\n"
                                       << list_faults(report);
      }
    }
  }

  /// The index of a settlement that acked events, stands before the first claim, is followed by
  /// another settlement, and is not void; 0 if there is none.
  static std::size_t chosen(const std::vector<LedgerRow>& rows, LedgerHistory& history) {
    std::vector<std::size_t> possible;
    for (std::size_t i = 1; i + 1 < rows.size(); ++i) {
      if (rows[i].kind == SettlementKind::claim || rows[i + 1].kind == SettlementKind::claim) break;
      const Place end = end_place(rows[i + 1]);
      const bool counts = std::all_of(rows.begin(), rows.end(), [&](const LedgerRow& row) {
        return row.kind != SettlementKind::claim || within(end, end_place(row));
      });
      if (counts && rows[i].acked.count > 0) possible.push_back(i);
    }
    return possible.empty() ? 0 : possible[history.any(possible.size())];
  }
};

TEST_F(Corrupted, a_count_is_found) {
  expect_found([](auto& rows, std::size_t at, auto&) { --rows[at].acked.count; });
}

TEST_F(Corrupted, a_hash_is_found) {
  expect_found([](auto& rows, std::size_t at, auto&) { rows[at].acked.hash ^= 1; });
}

TEST_F(Corrupted, an_event_that_is_gone_is_found) {
  expect_found([](auto& rows, std::size_t at, LedgerHistory& history) {
    const Place from = start_place(rows[at]);
    const Place to = end_place(rows[at]);
    auto& events = history.events();
    events.erase(std::find_if(events.begin(), events.end(), [&](const LedgerEvent& event) {
      return !from.has(event.xid, event.seq) && to.has(event.xid, event.seq);
    }));
  });
}

TEST_F(Corrupted, another_event_in_its_place_is_found) {
  expect_found([](auto& rows, std::size_t at, LedgerHistory& history) {
    const Place from = start_place(rows[at]);
    const Place to = end_place(rows[at]);
    for (LedgerEvent& event : history.events()) {
      if (from.has(event.xid, event.seq) || !to.has(event.xid, event.seq)) continue;
      event.id.bytes[3] = static_cast<decltype(event.id.bytes)::value_type>(
          static_cast<unsigned>(event.id.bytes[3]) ^ 1U);
      return;
    }
  });
}

TEST_F(Corrupted, a_settlement_that_is_gone_is_found) {
  expect_found([](auto& rows, std::size_t at,
                  auto&) { rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(at)); },
               false);
}

TEST_F(Corrupted, a_settlement_that_comes_twice_is_found) {
  expect_found([](auto& rows, std::size_t at, auto&) {
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(at), rows[at]);
  });
}

TEST_F(Corrupted, a_cursor_that_was_moved_is_found) {
  expect_found(
      [](auto& rows, std::size_t at, auto&) {
        rows[at].s2 =
            std::make_shared<const store::Visible>(store::Visible{.xmax = rows[at].s2->xmax + 5});
      },
      false);
}

TEST_F(Corrupted, a_forged_claim_is_found) {
  expect_found(
      [](auto& rows, std::size_t at, LedgerHistory& history) {
        LedgerRow claim{.id = 100'000, .kind = SettlementKind::claim, .generation = 100'000};
        claim.s1 = at % 2 == 0 ? std::make_shared<const store::Visible>(store::Visible{.xmax = 4})
                               : std::make_shared<const store::Visible>(
                                     store::Visible{.xmax = history.now().s1->xmax + 7});
        rows.push_back(claim);
      },
      false);
}

TEST_F(Corrupted, the_first_cursor_that_is_gone_is_found) {
  expect_found([](auto& rows, std::size_t, auto&) { rows.erase(rows.begin()); }, false);
}

TEST(LedgerWalkNames, events_that_no_settlement_covers) {
  LedgerHistory history(7);
  const std::vector<LedgerEvent> events{{.xid = 10, .seq = 1}, {.xid = 11, .seq = 2}};
  std::vector<LedgerRow> rows(2);
  rows[0] = {.id = 1, .kind = SettlementKind::reset, .s1 = sees(3)};
  rows[1] = {.id = 2, .s1 = sees(11), .s2 = sees(12), .bound = 2};
  rows[1].acked.add(event::id_hash(events[1].id));
  const auto report = walk(rows, events, {.s1 = sees(12)});
  ASSERT_EQ(report.fault_count, 2U) << list_faults(report);
  EXPECT_EQ(report.faults[0].kind, FaultKind::disjoint);
  EXPECT_EQ(report.faults[1].kind, FaultKind::uncovered);
  EXPECT_EQ(report.faults[1].first_seq, 1);
  EXPECT_EQ(report.faults[1].last_seq, 1);
}

TEST(LedgerWalkPruned, what_was_removed_is_not_compared) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Halved half(seed);
    auto& [history, now, below, events] = half;
    auto rows = history.rows();
    const auto report = walk(rows, events, now, {.below_xid = below});
    ASSERT_EQ(report.fault_count, 0U) << "seed " << seed << "\n" << list_faults(report);
    // The settlements of removed events may be gone as well, but not the first cursor.
    std::size_t gone = 1;
    while (gone < rows.size() && rows[gone].kind == SettlementKind::settle &&
           rows[gone].lanes == store::kAllLanes && rows[gone].s2 && !rows[gone].position &&
           rows[gone].s2->xmax <= below && rows[gone].generation == 0)
      ++gone;
    const store::LedgerRank newest = make_rank(rows[gone - 1]);
    rows.erase(rows.begin() + 1, rows.begin() + static_cast<std::ptrdiff_t>(gone));
    const auto shorter = walk(rows, events, now, {.below_xid = below, .newest = newest});
    ASSERT_EQ(shorter.fault_count, 0U) << "seed " << seed << "\n" << list_faults(shorter);
  }
}

// Retention keeps marks, claims of relays that live, and each row that was a lane's cursor when it
// ran, and removes the rows between them.
TEST(LedgerWalkPruned, of_what_was_removed_any_rows_may_have_stayed) {
  std::size_t removed = 0;
  for (std::uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
    Halved half(seed);
    auto& [history, now, below, events] = half;
    std::vector<LedgerRow> rows;
    store::LedgerRank newest;
    for (const LedgerRow& row : history.rows()) {
      const store::Visible& end = row.s2 ? *row.s2 : *row.s1;
      const bool stays = row.kind == SettlementKind::reset || end.xmax > below ||
                         history.any(4) == 0 || is_a_cursor(history.rows(), row);
      if (stays) {
        rows.push_back(row);
      } else {
        newest = make_rank(row);
        ++removed;
      }
    }
    const auto report = walk(rows, events, now, {.below_xid = below, .newest = newest});
    ASSERT_EQ(report.fault_count, 0U) << "seed " << seed << "\n" << list_faults(report);
  }
  EXPECT_GT(removed, kSeeds);
}

TEST(LedgerWalkPruned, rows_that_are_missing_beyond_what_was_removed_are_found) {
  std::vector<LedgerRow> rows(3);
  rows[0] = {.id = 1, .kind = SettlementKind::reset, .s1 = sees(3)};
  rows[1] = {.id = 5, .kind = SettlementKind::claim, .generation = 1, .s1 = sees(10)};
  rows[2] = {.id = 9, .kind = SettlementKind::claim, .generation = 2, .s1 = sees(20)};
  const auto faults = [&](store::LedgerRank newest) {
    return walk(rows, {}, {.s1 = sees(20)}, {.below_xid = 20, .newest = newest}).fault_count;
  };
  EXPECT_EQ(faults({.generation = 1, .id = 8}), 0U);
  EXPECT_EQ(faults({.generation = 0, .id = 4}), 1U) << "what is before the second claim is missing";
}

}  // namespace
}  // namespace outbox::verify::test
