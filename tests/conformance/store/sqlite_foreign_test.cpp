// Tests that the relay's reader finds exactly what a program in another language writes through the
// view.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "conformance/store/fixture.hpp"
#include "conformance/store/sqlite_database.hpp"
#include "event/time_text.hpp"

namespace outbox::conformance {
namespace {

struct Ran {
  int status{-1};
  std::string output;
};

Ran run(const std::string& command) {
  Ran ran;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr)
    ran.output += buffer.data();
  ran.status = ::pclose(pipe);
  return ran;
}

TEST(SqliteForeign, python_writes_through_the_view) {
  if (run("python3 -c 'import sqlite3'").status != 0)
    GTEST_SKIP() << "needs python3 with its module sqlite3";
  const SqliteDatabase database;
  auto store = store::open_store({.url = database.url()});
  ASSERT_TRUE(ok(store));
  ASSERT_TRUE(ok((*store)->migrate()));
  const Ran ran = run("python3 " + std::string(OUTBOX_FOREIGN_SCRIPT) + " " + database.path());
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, ::testing::EndsWith("done\n"));

  LogDrive drive(**store, {.s1 = "-", .s2 = "-", .position = 0, .bound = 0}, 3);
  const auto events = drive.rest();
  EXPECT_THAT(list_keys(events), ::testing::ElementsAre("42", "1", "2", "3", "4", "5", "42", "42"));
  for (const EventView& event : events) {
    EXPECT_EQ(event.content_type, "application/json");
    EXPECT_EQ(event.headers, "{}");
    EXPECT_GT(event.created_at, event::timestamp(1'700'000'000'000'000));
  }
}

}  // namespace
}  // namespace outbox::conformance
