// Tests the floor. It is never above what all marks together allow, and is exactly that as long as
// the book is not thinned out.
#include "store/postgres/marks.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace outbox::store::postgres {
namespace {

using Mark = std::pair<std::uint64_t, std::int64_t>;

/// The floor by its definition: the greatest l of the marks with w < xmax.
std::int64_t find_floor(const std::vector<Mark>& marks, std::uint64_t xmax) {
  std::int64_t floor = 0;
  for (const auto& [w, l] : marks) {
    if (w < xmax) floor = std::max(floor, l);
  }
  return floor;
}

TEST(MarkBook, without_a_usable_mark_the_floor_is_zero) {
  MarkBook book;
  EXPECT_EQ(book.floor(1000), 0);
  book.note(10, 5);
  EXPECT_EQ(book.floor(9), 0);
  EXPECT_EQ(book.floor(10), 0) << "the mark's own transaction is not above itself";
  EXPECT_EQ(book.floor(11), 5);
}

TEST(MarkBook, the_greatest_of_the_usable_marks_counts_in_whatever_order_they_came) {
  MarkBook book;
  book.note(30, 20);
  book.note(10, 50);
  book.note(20, 10);
  EXPECT_EQ(book.floor(11), 50);
  EXPECT_EQ(book.floor(100), 50);
  book.note(40, 60);
  EXPECT_EQ(book.floor(40), 50);
  EXPECT_EQ(book.floor(41), 60);
}

TEST(MarkBook, forgets_everything_when_told) {
  MarkBook book;
  book.note(10, 5);
  book.clear();
  EXPECT_EQ(book.floor(100), 0);
  book.note(20, 3);
  EXPECT_EQ(book.floor(100), 3);
}

RC_GTEST_PROP(MarkBookProperty, the_floor_is_the_definition, ()) {
  const auto small = rc::gen::inRange<std::uint64_t>(0, 60);
  const auto marks = *rc::gen::container<std::vector<Mark>>(
      rc::gen::pair(small, rc::gen::inRange<std::int64_t>(0, 60)));
  MarkBook book;
  std::vector<Mark> noted;
  for (const Mark& mark : marks) {
    book.note(mark.first, mark.second);
    noted.push_back(mark);
    for (std::uint64_t xmax = 0; xmax <= 61; ++xmax)
      RC_ASSERT(book.floor(xmax) == find_floor(noted, xmax));
  }
}

RC_GTEST_PROP(MarkBookProperty, the_floor_never_falls_as_xmax_grows, ()) {
  const auto marks = *rc::gen::arbitrary<std::vector<std::pair<std::uint64_t, std::uint32_t>>>();
  MarkBook book;
  for (const auto& [w, l] : marks) book.note(w, l);
  auto points = *rc::gen::arbitrary<std::vector<std::uint64_t>>();
  std::sort(points.begin(), points.end());
  std::int64_t last = 0;
  for (const std::uint64_t xmax : points) {
    RC_ASSERT(book.floor(xmax) >= last);
    last = book.floor(xmax);
  }
}

TEST(MarkBook, thinned_out_it_may_answer_lower_but_never_higher) {
  MarkBook book;
  std::vector<Mark> marks;
  for (std::uint64_t w = 1; w <= 20000; ++w) {
    marks.emplace_back(w, static_cast<std::int64_t>(3 * w));
    book.note(w, static_cast<std::int64_t>(3 * w));
  }
  for (std::uint64_t xmax = 1; xmax <= 20001; xmax += 7) {
    EXPECT_LE(book.floor(xmax), static_cast<std::int64_t>(3 * (xmax - 1)));
  }
  EXPECT_EQ(book.floor(20001), 60000) << "the newest marks, which the head needs, stay";
  EXPECT_EQ(book.floor(19900), 3 * 19899);
  EXPECT_GT(book.floor(10000), 0) << "an older cursor still has some floor";
}

}  // namespace
}  // namespace outbox::store::postgres
