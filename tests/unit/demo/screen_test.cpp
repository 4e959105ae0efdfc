#include "demo/screen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace outbox::demo {
namespace {

using testing::HasSubstr;
using testing::Not;

Outcome good() {
  return {.verdict = {.committed = 25113, .delivered = 25113, .duplicates = 612},
          .rolled_back = 2790,
          .kills = 5,
          .destination = "/tmp/x/delivered.jsonl"};
}

TEST(Screen, the_json_has_the_numbers_of_the_table) {
  const auto numbers = nlohmann::json::parse(json(good()));
  EXPECT_EQ(numbers, nlohmann::json({{"committed", 25113},
                                     {"delivered", 25113},
                                     {"lost", 0},
                                     {"ghosts", 0},
                                     {"out_of_order", 0},
                                     {"duplicates", 612},
                                     {"kills", 5}}));
}

TEST(Screen, the_table_lines_up_and_fits) {
  std::istringstream lines(table({}, good()));
  std::string line;
  int rows = 0;
  while (std::getline(lines, line)) {
    if (line.rfind("  ", 0) != 0) continue;
    ++rows;
    EXPECT_LE(line.size(), 84U) << line;
    EXPECT_EQ(line.substr(25, 3), "   ") << line;
    EXPECT_NE(line[28], ' ') << line;
  }
  EXPECT_EQ(rows, 7);
}

TEST(Screen, says_whether_the_promises_held) {
  EXPECT_THAT(table({}, good()), HasSubstr("Every promise held"));
  Outcome bad = good();
  bad.verdict.lost = 1;
  EXPECT_THAT(table({}, bad), HasSubstr("A PROMISE IS BROKEN"));
  EXPECT_TRUE(bad.broken());
}

TEST(Screen, a_dual_write_is_a_lesson_not_a_fault) {
  Outcome bad = good();
  bad.verdict.lost = 1;
  bad.naive = true;
  EXPECT_FALSE(bad.broken());
  const std::string text = table({.naive = true}, bad);
  EXPECT_THAT(text, HasSubstr("exit status 0"));
  EXPECT_THAT(text, Not(HasSubstr("BROKEN")));
}

TEST(Screen, an_interrupted_run_calls_nothing_lost) {
  Outcome outcome = good();
  outcome.verdict.lost = 17;
  outcome.interrupted = true;
  const std::string text = table({}, outcome);
  EXPECT_THAT(text, HasSubstr("on their way"));
  EXPECT_THAT(text, Not(HasSubstr("lost")));
  EXPECT_FALSE(outcome.broken());
}

TEST(Screen, an_interrupted_run_may_still_have_broken_a_promise) {
  Outcome outcome = good();
  outcome.interrupted = true;
  outcome.verdict.ghosts = 1;
  EXPECT_TRUE(outcome.broken());
  EXPECT_THAT(table({}, outcome), HasSubstr("A PROMISE IS BROKEN"));
}

TEST(Screen, the_progress_line_fits_a_narrow_terminal) {
  const Progress big{.elapsed = std::chrono::milliseconds(123456),
                     .committed = 1234567,
                     .rolled_back = 123456,
                     .delivered = 1234567,
                     .kills = 10,
                     .kills_planned = 10};
  EXPECT_LE(progress_line(big).size(), kProgressWidth);
  const Progress usual{.elapsed = std::chrono::milliseconds(10000),
                       .committed = 25113,
                       .rolled_back = 2790,
                       .delivered = 25113,
                       .kills = 5,
                       .kills_planned = 5};
  EXPECT_EQ(progress_line(usual),
            " 10.0 s  committed 25,113  rolled back 2,790  arrived 25,113  kills 5/5");
}

TEST(ProgressLine, leaves_out_what_a_terminal_of_80_columns_cannot_show) {
  Progress progress{.elapsed = std::chrono::milliseconds(10000),
                    .committed = 25113,
                    .rolled_back = 2790,
                    .delivered = 25113,
                    .kills = 5,
                    .kills_planned = 5,
                    .closing = true};
  EXPECT_EQ(progress_line(progress),
            " 10.0 s  committed 25,113  arrived 25,113  kills 5/5  closing");
  progress.elapsed = std::chrono::hours(1);
  progress.committed = progress.delivered = 1'234'567'890;
  progress.kills = progress.kills_planned = 1000;
  EXPECT_EQ(progress_line(progress),
            "3600.0 s  committed 1,234,567,890  arrived 1,234,567,890  closing");
  progress.closing = false;
  EXPECT_LE(progress_line(progress).size(), kProgressWidth);
}

TEST(ProgressLine, off_a_terminal_is_one_line_a_second) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const out = open_memstream(&text, &size);
  ProgressLine line(out, false);
  for (int ms = 0; ms <= 2500; ms += 100) line.show({.elapsed = std::chrono::milliseconds(ms)});
  line.finish();
  std::fclose(out);
  const std::string written(text, size);
  std::free(text);
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 4)
      << written;  // 0, 1, 2 s, and the last
  EXPECT_THAT(written, Not(HasSubstr("\r")));
}

TEST(ProgressLine, may_be_quiet_off_a_terminal) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const out = open_memstream(&text, &size);
  ProgressLine line(out, true);
  line.show({});
  line.finish();
  std::fclose(out);
  EXPECT_EQ(size, 0U);
  std::free(text);
}

}  // namespace
}  // namespace outbox::demo
