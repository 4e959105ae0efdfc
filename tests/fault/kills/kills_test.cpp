// Tests one round of relays, database and broker that are killed at random under load.
// `scripts/soak --kills` runs as many rounds as one likes.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "fault/kills/report.hpp"
#include "fault/kills/round.hpp"
#include "support/servers.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test::kills {
namespace {

TEST(Schedule, is_decided_by_its_seed_and_has_every_fault) {
  const auto one = schedule(7, 1, 30);
  std::map<Fault, int> count;
  for (const Strike& strike : one) ++count[strike.fault];
  EXPECT_EQ(count.size(), kFaults);
  const auto faults = [](const std::vector<Strike>& all) {
    std::vector<std::pair<Fault, std::uint64_t>> pairs;
    for (const Strike& strike : all) pairs.emplace_back(strike.fault, strike.victim);
    return pairs;
  };
  EXPECT_EQ(faults(one), faults(schedule(7, 1, 30)));
  EXPECT_NE(faults(one), faults(schedule(7, 2, 30)));
  EXPECT_NE(faults(one), faults(schedule(8, 1, 30)));
}

TEST(KillsReport, goes_on_where_it_was_interrupted_and_refuses_another_seed) {
  const TempDir folder;
  RoundResult round;
  round.hits[0] = 3;
  round.hits[3] = 2;
  round.verdict.committed = 100;
  Report(folder.path(), 7).add(round);
  Report again(folder.path(), 7);
  EXPECT_EQ(again.rounds(), 1);
  EXPECT_EQ(again.kills(), 5U);
  again.add(round);
  EXPECT_NE(again.table().find("| all | 10 | 200 |"), std::string::npos) << again.table();
  EXPECT_THROW(Report(folder.path(), 8), std::runtime_error);
}

TEST(Kills, lose_invent_and_reorder_nothing_and_repeat_no_more_than_promised) {
  OUTBOX_NEEDS_PGBIN();
  OUTBOX_NEEDS_KAFKA();
  OUTBOX_NEEDS("OUTBOX_TEST_SERVERS", "a broker that may be killed");
  const TempDir folder;
  RoundOptions options;
  options.seed = std::random_device()();
  options.kills = 30;
  options.brokers = *environment("OUTBOX_TEST_KAFKA");
  options.folder = folder.path();
  SCOPED_TRACE("seed " + std::to_string(options.seed));
  const RoundResult round = run_round(options);
  EXPECT_EQ(round.trouble, "");
  EXPECT_EQ(round.kills(), options.kills);
  EXPECT_TRUE(round.verdict.kept()) << round.verdict;
  EXPECT_LE(round.verdict.duplicates, round.duplicates_allowed);
  RecordProperty("seed", std::to_string(options.seed));
  RecordProperty("duplicates", std::to_string(round.verdict.duplicates));
  RecordProperty("seconds", std::to_string(round.seconds));
}

}  // namespace
}  // namespace outbox::test::kills
