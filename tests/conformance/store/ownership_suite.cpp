// Tests that lanes have one owner at a time, and that the higher generation wins.
#include <chrono>

#include "conformance/store/fixture.hpp"
#include "support/eventually.hpp"
#include "support/lane_owner.hpp"

namespace outbox::conformance {

using std::chrono::milliseconds;
using test::LaneOwner;

class OwnershipSuite : public StoreTest {
 protected:
  static constexpr milliseconds kLong{60'000};
  static constexpr milliseconds kShort{300};

  std::unique_ptr<LaneOwner> join(const std::string& name) {
    return std::make_unique<LaneOwner>(*store_, name);
  }
  static LaneOwner::Standing keep(LaneOwner& relay, milliseconds lease) {
    auto standing = relay.keep(lease);
    EXPECT_TRUE(ok(standing));
    return standing.value_or(LaneOwner::Standing{});
  }
  store::SubscriptionProgress totals(const store::SubscriptionRow& row) {
    auto catalog = store_->catalog();
    EXPECT_TRUE(ok(catalog));
    store::SubscriptionProgress progress;
    progress.id = row.id;
    EXPECT_TRUE(ok((*catalog)->add_totals(progress)));
    return progress;
  }
  static bool vacant(LaneOwner& relay) {
    auto vacant = relay.vacant();
    EXPECT_TRUE(ok(vacant));
    return vacant && *vacant;
  }
};
INSTANTIATE_TEST_SUITE_P(Store, OwnershipSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(OwnershipSuite, the_first_owns_and_the_second_waits) {
  auto first = join("first");
  auto second = join("second");
  const auto owner = keep(*first, kLong);
  EXPECT_TRUE(owner.owns());
  EXPECT_GE(owner.generation, 1);
  const auto waiting = keep(*second, kLong);
  EXPECT_FALSE(waiting.owns());
  EXPECT_THAT(waiting.other, ::testing::HasSubstr("first"));
  EXPECT_FALSE(vacant(*second));
  const auto again = keep(*first, kLong);
  EXPECT_TRUE(again.owns());
  EXPECT_EQ(again.generation, owner.generation);
}

TEST_P(OwnershipSuite, the_second_takes_over_what_was_given_back) {
  auto first = join("first");
  auto second = join("second");
  const auto before = keep(*first, kLong);
  EXPECT_FALSE(keep(*second, kLong).owns());
  ASSERT_TRUE(ok(first->leave()));
  EXPECT_TRUE(vacant(*second));
  const auto after = keep(*second, kLong);
  EXPECT_TRUE(after.owns());
  EXPECT_GT(after.generation, before.generation);
}

TEST_P(OwnershipSuite, the_generation_grows_through_an_empty_time) {
  std::int64_t generation = 0;
  for (int i = 0; i < 3; ++i) {
    auto relay = join("relay");
    const auto standing = keep(*relay, kLong);
    ASSERT_TRUE(standing.owns());
    EXPECT_GT(standing.generation, generation);
    generation = standing.generation;
    ASSERT_TRUE(ok(relay->leave()));
  }
}

TEST_P(OwnershipSuite, the_second_takes_over_when_the_lease_has_run_out) {
  auto first = join("first");
  auto second = join("second");
  const auto before = keep(*first, kShort);
  LaneOwner::Standing standing;
  EXPECT_TRUE(eventually([&] { return (standing = keep(*second, kLong)).owns(); }));
  EXPECT_GT(standing.generation, before.generation);
  const auto old = keep(*first, kLong);
  EXPECT_FALSE(old.owns());
  EXPECT_THAT(old.other, ::testing::HasSubstr("second"));
}

TEST_P(OwnershipSuite, the_second_takes_over_when_the_owner_vanished) {
  auto first = join("first");
  auto second = join("second");
  ASSERT_TRUE(keep(*first, kShort).owns());
  first.reset();
  EXPECT_TRUE(eventually([&] { return keep(*second, kLong).owns(); }));
}

TEST_P(OwnershipSuite, a_claim_keeps_the_cursor_and_old_rows_lose) {
  const auto row = subscribe(make_spec("mails"));
  write(make_events(6));
  auto first = join("first");
  const auto old = keep(*first, kLong);
  LogDrive drive(*store_, load(row.id).cursor, 2);
  const auto done = drive.next();
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  const auto settled = make_settlement(row, done, old.generation);
  ASSERT_TRUE(
      ok((*progress)->append({.settlements = std::span(&settled, 1)}, store::Durability::flushed)));

  ASSERT_TRUE(ok(first->leave()));
  auto second = join("second");
  const auto current = keep(*second, kLong);
  ASSERT_TRUE(current.owns());
  EXPECT_EQ(load(row.id).cursor, after(done));
  EXPECT_EQ(load(row.id).generation, current.generation);

  // The first owner wakes up late and settles what it had in flight.
  const auto late = make_settlement(row, drive.next(), old.generation);
  ASSERT_TRUE(
      ok((*progress)->append({.settlements = std::span(&late, 1)}, store::Durability::eventual)));
  EXPECT_EQ(load(row.id).cursor, after(done));

  LogDrive next(*store_, load(row.id).cursor, 3);
  const auto page = next.next();
  const auto valid = make_settlement(row, page, current.generation);
  ASSERT_TRUE(
      ok((*progress)->append({.settlements = std::span(&valid, 1)}, store::Durability::eventual)));
  EXPECT_EQ(load(row.id).cursor, after(page));
}

TEST_P(OwnershipSuite, totals_count_what_the_ledger_counts) {
  const auto row = subscribe(make_spec("mails"));
  write(make_events(9));
  auto first = join("first");
  const auto old = keep(*first, kLong);
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  LogDrive drive(*store_, load(row.id).cursor, 2);
  auto settled = make_settlement(row, drive.next(), old.generation);
  ASSERT_TRUE(
      ok((*progress)->append({.settlements = std::span(&settled, 1)}, store::Durability::flushed)));
  ASSERT_TRUE(ok(first->leave()));
  auto second = join("second");
  const auto current = keep(*second, kLong);
  ASSERT_TRUE(current.owns());
  EXPECT_EQ(totals(row).acked, 2);

  // The second owner delivers, and the first one settles late.
  auto late = make_settlement(row, drive.next(), old.generation);
  late.filtered.add(7);
  ASSERT_TRUE(
      ok((*progress)->append({.settlements = std::span(&late, 1)}, store::Durability::eventual)));
  EXPECT_EQ(totals(row).acked, 2);
  EXPECT_EQ(totals(row).filtered, 0);

  LogDrive next(*store_, load(row.id).cursor, 3);
  std::vector<store::Settlement> rows;
  for (int i = 0; i < 2; ++i) rows.push_back(make_settlement(row, next.next(), current.generation));
  rows.back().filtered.add(7);
  ASSERT_TRUE(ok((*progress)->append({.settlements = rows}, store::Durability::eventual)));
  EXPECT_EQ(totals(row).acked, 8);
  EXPECT_EQ(totals(row).filtered, 1);
  EXPECT_NE(totals(row).last_settled_at, "");
}

TEST_P(OwnershipSuite, a_subscription_made_under_an_owner_is_settled_by_it) {
  auto relay = join("relay");
  const auto standing = keep(*relay, kLong);
  const auto row = subscribe(make_spec("late"));
  write(make_events(2));
  LogDrive drive(*store_, load(row.id).cursor);
  const auto page = drive.next();
  const auto settled = make_settlement(row, page, standing.generation);
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  ASSERT_TRUE(ok(
      (*progress)->append({.settlements = std::span(&settled, 1)}, store::Durability::eventual)));
  EXPECT_EQ(load(row.id).cursor, after(page));
}

TEST_P(OwnershipSuite, the_relays_are_listed) {
  auto first = join("first");
  auto second = join("second");
  const auto standing = keep(*first, kLong);
  (void)keep(*second, kLong);
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(catalog));
  auto relays = (*catalog)->relays();
  ASSERT_TRUE(ok(relays));
  ASSERT_EQ(relays->size(), 2U);
  for (const auto& relay : *relays) {
    EXPECT_TRUE(relay.alive) << relay.name;
    EXPECT_EQ(relay.owner, relay.name == "first");
    EXPECT_TRUE(!relay.owner || relay.generation == standing.generation);
    EXPECT_THAT(relay.heartbeat_at, ::testing::StartsWith("20"));
  }
}

TEST_P(OwnershipSuite, the_store_says_how_large_it_is_and_how_far_it_reaches) {
  const auto catalog = store_->catalog().value();
  const auto empty = catalog->figures();
  ASSERT_TRUE(ok(empty));
  EXPECT_FALSE(empty->oldest_event_us) << "the log is empty";
  std::int64_t bytes = 0;
  for (const auto& [table, size] : empty->bytes) bytes += size;
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(empty->has_snapshots, empty->partitions_ahead.has_value());
  (void)write({make_event("k")});
  const auto one = catalog->figures();
  ASSERT_TRUE(ok(one));
  EXPECT_GT(one->oldest_event_us.value_or(0), std::int64_t{1'700'000'000'000'000});
}

}  // namespace outbox::conformance
