// The judge is judged: each kind of fault is seen, and only that kind.
#include "support/judge.hpp"

#include <gtest/gtest.h>

namespace outbox::test {
namespace {

Attempt attempt(const std::string& id, const std::string& key, std::int64_t version,
                Attempt::End end = Attempt::End::committed) {
  Attempt made;
  made.id = id;
  made.key = key;
  made.version = version;
  made.body = "body of " + id;
  made.end = end;
  return made;
}

Delivery of(const Attempt& attempt) {
  return {.id = attempt.id, .key = attempt.key, .body = attempt.body};
}

const Attempt kA1 = attempt("a1", "a", 1);
const Attempt kA2 = attempt("a2", "a", 2);
const Attempt kA3 = attempt("a3", "a", 3);
const Attempt kB1 = attempt("b1", "b", 1);

TEST(Judge, all_in_order_is_right_whatever_other_keys_do) {
  const Verdict verdict = judge({kA1, kA2, kB1}, {of(kA1), of(kB1), of(kA2)});
  EXPECT_TRUE(verdict.kept()) << verdict;
  EXPECT_EQ(verdict.committed, 3U);
  EXPECT_EQ(verdict.delivered, 3U);
  EXPECT_EQ(verdict.duplicates, 0U);
}

TEST(Judge, what_is_missing_is_lost) {
  const Verdict verdict = judge({kA1, kA2, kB1}, {of(kA1), of(kB1)});
  EXPECT_EQ(verdict.lost, 1U);
  EXPECT_FALSE(verdict.kept());
  ASSERT_EQ(verdict.examples.size(), 1U);
  EXPECT_EQ(verdict.examples[0], "lost: a version 2 (a2)");
}

TEST(Judge, what_was_rolled_back_or_never_written_is_a_ghost) {
  const Attempt taken_back = attempt("a9", "a", 2, Attempt::End::rolled_back);
  const Verdict verdict =
      judge({kA1, taken_back}, {of(kA1), of(taken_back), {.id = "x", .key = "a", .body = ""}});
  EXPECT_EQ(verdict.ghosts, 2U);
  EXPECT_EQ(verdict.out_of_order, 0U);
}

TEST(Judge, a_version_behind_a_later_one_is_out_of_order) {
  EXPECT_EQ(judge({kA1, kA2, kA3}, {of(kA2), of(kA1), of(kA3)}).out_of_order, 1U);
  EXPECT_EQ(judge({kA1, kA2, kA3}, {of(kA3), of(kA1), of(kA2)}).out_of_order, 2U);
}

TEST(Judge, a_repeated_delivery_is_a_duplicate_and_no_disorder) {
  const Verdict verdict = judge({kA1, kA2}, {of(kA1), of(kA2), of(kA1), of(kA1), of(kA2)});
  EXPECT_TRUE(verdict.kept()) << verdict;
  EXPECT_EQ(verdict.duplicates, 3U);
}

TEST(Judge, other_bytes_or_another_key_are_altered_and_not_delivered) {
  EXPECT_EQ(judge({kA1}, {{.id = "a1", .key = "a", .body = "other"}}).lost, 1U);
  EXPECT_EQ(judge({kA1}, {{.id = "a1", .key = "a", .body = "other"}}).altered, 1U);
  EXPECT_EQ(judge({kA1}, {{.id = "a1", .key = "b", .body = kA1.body}}).altered, 1U);
  EXPECT_EQ(judge({kA1}, {of(kA1), {.id = "a1", .key = "a", .body = "other"}}).altered, 1U);
}

TEST(Judge, of_what_nobody_knows_both_ends_are_right) {
  const Attempt unknown = attempt("a9", "a", 2, Attempt::End::unknown);
  EXPECT_TRUE(judge({kA1, unknown}, {of(kA1)}).kept());
  EXPECT_TRUE(judge({kA1, unknown}, {of(kA1), of(unknown)}).kept());
}

TEST(Judge, a_ghost_counts_once_and_not_for_the_order) {
  const Delivery ghost{.id = "x", .key = "a", .body = ""};
  const Verdict verdict = judge({kA1}, {ghost, of(kA1), ghost});
  EXPECT_EQ(verdict.ghosts, 1U);
  EXPECT_EQ(verdict.duplicates, 1U);
  EXPECT_EQ(verdict.out_of_order, 0U);
}

TEST(Judge, every_unreadable_message_is_a_ghost) {
  EXPECT_EQ(judge({kA1}, {of(kA1), Delivery{}, Delivery{}}).ghosts, 2U);
}

TEST(Judge, is_complete_once_everything_committed_was_seen) {
  Judge judge({kA1, kA2, attempt("a9", "a", 3, Attempt::End::unknown)});
  judge.saw(of(kA1));
  EXPECT_FALSE(judge.complete());
  judge.saw(of(kA1));
  EXPECT_FALSE(judge.complete());
  judge.saw(of(kA2));
  EXPECT_TRUE(judge.complete());
}

}  // namespace
}  // namespace outbox::test
