#include <gtest/gtest.h>

#include "store/tasks.hpp"

namespace outbox::store {
namespace {

TEST(WorkerNote, comes_back_as_it_was) {
  const WorkerNote note{
      .heartbeat = std::chrono::seconds(10),
      .types = {{.queue = "reports", .name = "report.make", .runs = {{7, 3}, {90, 1}}},
                {.queue = "mail", .name = "a \"type\""}}};
  const WorkerNote read = parse_worker_note(to_json(note));
  EXPECT_EQ(read.heartbeat, note.heartbeat);
  ASSERT_EQ(read.types.size(), 2U);
  EXPECT_EQ(read.types[0].queue, "reports");
  EXPECT_EQ(read.types[0].runs, note.types[0].runs);
  EXPECT_EQ(read.types[1].name, note.types[1].name);
  EXPECT_TRUE(read.types[1].runs.empty());
}

TEST(WorkerNote, what_cannot_be_read_is_left_out) {
  for (const char* text : {"", "{}", "[]", "7", "{\"types\": 1}", "{\"types\": [1, null]}", "{"}) {
    const WorkerNote note = parse_worker_note(text);
    EXPECT_TRUE(note.types.empty()) << text;
    EXPECT_EQ(note.heartbeat.count(), 0) << text;
  }
  const WorkerNote note = parse_worker_note(
      R"({"heartbeat_ms": -1, "types": [{"queue": 1, "type": "a", "runs": {"x": 1, "5000": 2, "3": -1, "4": 9}}]})");
  ASSERT_EQ(note.types.size(), 1U);
  EXPECT_EQ(note.types[0].runs, (DurationCounts{{4, 9}}));
}

}  // namespace
}  // namespace outbox::store
