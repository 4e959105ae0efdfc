// Tests how the objects that a schema should have are compared with those that it has, and which
// ones are wanted after a migration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/diagnosis.hpp"

namespace outbox::store {
namespace {

using ::testing::IsEmpty;

const Definition kBy{.part = "made by", .makes = "PostgreSQL 15"};
const Definition kTable{.object = "table t", .makes = "CREATE TABLE t ()"};
const Definition kIndex{.object = "table t", .part = "index i", .makes = "CREATE INDEX i"};
const Definition kOtherIndex{
    .object = "table t", .part = "index i", .makes = "CREATE INDEX i DESC"};
const Definition kNewIndex{.object = "table t", .part = "index n", .makes = "CREATE INDEX n"};
const Definition kTrigger{.object = "table t", .part = "trigger g", .makes = "CREATE TRIGGER g"};
const Definition kForeign{.object = "table of_somebody", .makes = "CREATE TABLE of_somebody ()"};

TEST(Definitions, nothing_differs) {
  EXPECT_THAT(changes_between({kBy, kTable, kIndex}, {kBy, kTable, kIndex}), IsEmpty());
}

TEST(Definitions, what_is_missing_differs_or_was_added) {
  auto changes = changes_between({kTable, kIndex}, {kTable});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().wanted, kIndex);
  EXPECT_FALSE(changes.front().found);

  changes = changes_between({kTable, kIndex}, {kTable, kOtherIndex});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().wanted, kIndex);
  EXPECT_EQ(changes.front().found, kOtherIndex);

  changes = changes_between({kTable}, {kTable, kTrigger});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_FALSE(changes.front().wanted);
  EXPECT_EQ(changes.front().found, kTrigger);
}

TEST(Definitions, objects_of_somebody_else_and_plain_indexes_are_no_change) {
  EXPECT_THAT(changes_between({kTable}, {kTable, kForeign, kIndex}), IsEmpty());
}

TEST(Definitions, what_goes_with_an_addition_is_none_of_its_own) {
  const Definition column{.object = "table t", .part = "column c", .makes = "ADD c"};
  const Definition fallback{.object = "table t", .part = "default of column c", .makes = "SET c"};
  const auto changes = changes_between({kTable}, {kTable, fallback, column});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().found, column);
}

TEST(Definitions, a_right_is_told_from_that_of_another_role) {
  const Definition app{.object = "table t", .part = "SELECT ON t", .grantee = "outbox_app"};
  Definition relay = app;
  relay.grantee = "outbox_relay";
  EXPECT_EQ(changes_between({kTable, relay}, {kTable, relay, app}).size(), 1U);
}

TEST(Definitions, a_list_says_who_made_it) {
  EXPECT_EQ(made_by({kBy, kTable}), "PostgreSQL 15");
  EXPECT_EQ(made_by({}), "");
}

TEST(Definitions, after_the_first_migration_everything_is_wanted) {
  EXPECT_EQ(wanted_after({}, {}, {kBy, kTable, kIndex}), (Definitions{kBy, kTable, kIndex}));
}

TEST(Definitions, what_a_migration_makes_changes_and_removes_is_what_is_wanted) {
  const Definitions wanted{kBy, kTable, kIndex, kTrigger};
  EXPECT_EQ(wanted_after(wanted, wanted, {kBy, kTable, kOtherIndex, kNewIndex}),
            (Definitions{kBy, kTable, kOtherIndex, kNewIndex}));
}

TEST(Definitions, a_migration_does_not_bless_what_somebody_did_before) {
  // Before the migration somebody changed one index, dropped another, and added a trigger.
  const Definitions wanted{kBy, kTable, kIndex, kNewIndex};
  const Definitions before{kBy, kTable, kOtherIndex, kTrigger};
  const Definition column{.object = "table t", .part = "column c", .makes = "ADD c"};
  const Definitions after{kBy, kTable, kOtherIndex, kTrigger, column};
  const Definitions now = wanted_after(wanted, before, after);
  EXPECT_EQ(now, (Definitions{kBy, kTable, kIndex, column, kNewIndex}));
  EXPECT_EQ(changes_between(now, after).size(), 3U);
}

TEST(Definitions, a_migration_may_mend_what_somebody_did_before) {
  const Definitions wanted{kTable, kIndex};
  EXPECT_EQ(wanted_after(wanted, {kTable}, {kTable, kIndex}), wanted);
}

}  // namespace
}  // namespace outbox::store
