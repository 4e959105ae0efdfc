// Tests that what archive.cpp writes can be read back.
#include "store/archive_read.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "event/time_text.hpp"
#include "store/archive.hpp"
#include "support/temp_dir.hpp"

namespace outbox::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EventView view(std::string_view payload, std::string_view content_type) {
  return {.seq = 7,
          .id = EventId::parse("0198c5b2-6d1f-7c3a-9d5e-0a1b2c3d4e5f").value(),
          .aggregate_type = "order \"x\"",
          .aggregate_id = "42",
          .event_type = "Placed",
          .payload = payload,
          .content_type = content_type,
          .headers = R"({"tenant": "acme"})",
          .created_at = event::timestamp(1'700'000'000'123'456)};
}

ArchivedEvent through(const EventView& event) {
  std::string line;
  append_archive_line(line, event);
  EXPECT_EQ(line.back(), '\n');
  line.pop_back();
  auto read = read_archive_line(line);
  EXPECT_TRUE(read) << line << ": " << (read ? "" : read.error().text());
  return read.value_or(ArchivedEvent{});
}

TEST(ArchiveRead, every_event_comes_back) {
  for (const auto& [payload, type] : std::vector<std::pair<std::string, std::string>>{
           {R"({"total": 12.50, "n": [1, "x"]})", "application/json"},
           {"\"text\"", "application/json"},
           {"plain \"text\"\n", "text/plain"},
           {"{}", "text/plain"},
           {"", "text/plain"},
           {std::string("\xff\0\x01", 3), "application/octet-stream"},
           {"plain", ""}}) {
    const EventView event = view(payload, type);
    const ArchivedEvent read = through(event);
    EXPECT_EQ(read.payload, payload);
    EXPECT_EQ(read.content_type, type);
    EXPECT_EQ(read.seq, event.seq);
    EXPECT_EQ(read.id, event.id);
    EXPECT_EQ(read.aggregate_type, event.aggregate_type);
    EXPECT_EQ(read.aggregate_id, event.aggregate_id);
    EXPECT_EQ(read.event_type, event.event_type);
    EXPECT_EQ(read.headers, event.headers);
    EXPECT_EQ(read.created_at, event.created_at);
    EXPECT_FALSE(read.occurred_at.has_value());
  }
  EventView imported = view("{}", "application/json");
  imported.occurred_at = event::timestamp(-5'000'000);
  EXPECT_EQ(through(imported).occurred_at, event::timestamp(-5'000'000));
}

TEST(ArchiveRead, a_line_that_is_not_one_is_refused) {
  std::string good;
  append_archive_line(good, view("{}", "application/json"));
  for (const std::string& line :
       {std::string(), std::string("{}"), good.substr(0, good.size() / 2), std::string("[1]"),
        std::string(R"({"seq": -1})"), std::string(R"({"seq": "7"})")})
    EXPECT_FALSE(read_archive_line(line)) << line;
}

TEST(ArchiveRead, the_files_of_a_folder_are_read_in_order_and_a_bad_line_is_named) {
  const test::TempDir folder;
  const auto write = [&](const std::string& name, std::int64_t seq) {
    EventView event = view("{}", "application/json");
    event.seq = seq;
    std::string line;
    append_archive_line(line, event);
    std::ofstream(folder.file(name), std::ios::app) << line;
  };
  write("events-2.jsonl", 3);
  write("events-1.jsonl", 1);
  write("events-1.jsonl", 2);
  write("events-3.jsonl.77.tmp", 9);
  std::vector<std::int64_t> seqs;
  const auto visit = [&](const ArchivedEvent& event) -> Status {
    seqs.push_back(event.seq);
    return {};
  };
  const std::string path = folder.file("");
  ASSERT_TRUE(read_archive(path, visit));
  EXPECT_THAT(seqs, ElementsAre(1, 2, 3));
  std::ofstream(folder.file("events-2.jsonl"), std::ios::app) << "{\"seq\": 4\n";
  EXPECT_THAT(read_archive(path, visit).error().text(), HasSubstr("events-2.jsonl, line 2: "));
  EXPECT_THAT(read_archive(folder.file("none"), visit).error().text(),
              HasSubstr("cannot read the archive"));
}

}  // namespace
}  // namespace outbox::store
