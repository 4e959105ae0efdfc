// Tests the parts of retention that need no store: lines of an archive, and how much of the log
// each subscription holds.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "event/time_text.hpp"
#include "store/archive.hpp"
#include "store/history.hpp"
#include "support/temp_dir.hpp"

namespace outbox::store {
namespace {

using State = LogPiece::State;

std::string make_line(const EventView& event) {
  std::string line;
  append_archive_line(line, event);
  return line;
}

EventView an_event() {
  EventView event;
  event.seq = 7;
  event.id = EventId::parse("0199a000-0000-7000-8000-000000000001").value();
  event.aggregate_type = "order";
  event.aggregate_id = "42";
  event.event_type = "OrderPlaced";
  event.payload = "{\"total\":\n12.5}";
  event.content_type = "application/json";
  event.headers = "{\"a\": \"b\"}";
  return event;
}

TEST(Archive, a_line_has_the_whole_event) {
  EXPECT_EQ(
      make_line(an_event()),
      "{\"seq\":7,\"id\":\"0199a000-0000-7000-8000-000000000001\",\"aggregate_type\":\"order\","
      "\"aggregate_id\":\"42\",\"event_type\":\"OrderPlaced\",\"payload\":{\"total\": 12.5},"
      "\"content_type\":\"application/json\",\"headers\":{\"a\": \"b\"},"
      "\"created_at\":\"1970-01-01T00:00:00.000000Z\"}\n");
}

TEST(Archive, text_and_bytes_are_kept_as_they_are) {
  EventView event = an_event();
  event.content_type = "text/plain";
  event.payload = "a \"word\"";
  event.occurred_at = event::timestamp(1'000'000);
  EXPECT_THAT(make_line(event), ::testing::HasSubstr("\"payload\":\"a \\\"word\\\"\","));
  EXPECT_THAT(make_line(event),
              ::testing::HasSubstr("\"occurred_at\":\"1970-01-01T00:00:01.000000Z\"}"));
  event.payload = "\xff";
  EXPECT_THAT(make_line(event), ::testing::HasSubstr("\"payload_base64\":\"/w==\","));
}

TEST(Archive, a_file_has_its_name_only_when_it_is_complete) {
  const test::TempDir folder;
  {
    auto file = ArchiveFile::create(folder.path(), "part");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->add(an_event()));
    EXPECT_FALSE(std::filesystem::exists(folder.file("part.jsonl")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  auto file = ArchiveFile::create(folder.path(), "part");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->add(an_event()));
  ASSERT_TRUE(file->close());
  EXPECT_EQ(file->path(), folder.file("part.jsonl"));
  EXPECT_EQ(std::filesystem::file_size(file->path()), make_line(an_event()).size());
}

TEST(Retention, what_is_held_is_summed_up_per_subscription) {
  const std::vector<LogPiece> pieces{
      {.name = "a", .state = State::held, .held_by = {2}, .bytes = 10, .newest_us = 5},
      {.name = "b", .state = State::held, .held_by = {1, 2}, .bytes = 20, .newest_us = 6},
      {.name = "c", .state = State::in_use, .bytes = 40}};
  const auto holds = find_holds(pieces);
  ASSERT_EQ(holds.size(), 2U);
  EXPECT_EQ(holds[0].subscription, 1);
  EXPECT_EQ(holds[0].bytes, 20);
  EXPECT_EQ(holds[1].pieces, 2);
  EXPECT_EQ(holds[1].bytes, 30);
  EXPECT_EQ(holds[1].oldest_us, 5);
}

}  // namespace
}  // namespace outbox::store
