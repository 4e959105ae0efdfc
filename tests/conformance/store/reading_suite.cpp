// Tests that pages hold exactly the committed events, in order and within their bounds.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <set>

#include "conformance/store/fixture.hpp"
#include "support/eventually.hpp"

namespace outbox::conformance {

using ReadingSuite = StoreTest;
INSTANTIATE_TEST_SUITE_P(Store, ReadingSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(ReadingSuite, an_empty_log_is_an_empty_page) {
  const auto row = subscribe(make_spec("mails"));
  LogDrive drive(*store_, load(row.id).cursor);
  const auto page = drive.next();
  EXPECT_TRUE(page.events.empty());
  EXPECT_TRUE(page.caught_up || page.drained);
}

TEST_P(ReadingSuite, pages_hold_exactly_what_was_written_in_order) {
  const auto row = subscribe(make_spec("mails"));
  std::vector<EventId> written;
  for (int i = 0; i < 5; ++i) {
    const auto ids = write(make_events(7, fmt::format("t{}-", i)));
    written.insert(written.end(), ids.begin(), ids.end());
  }
  for (const std::size_t rows :
       {std::size_t{1}, std::size_t{4}, std::size_t{35}, std::size_t{1000}}) {
    LogDrive drive(*store_, load(row.id).cursor, rows);
    const auto events = drive.rest();
    EXPECT_EQ(list_ids(events), written) << "pages of " << rows;
    for (std::size_t i = 1; i < events.size(); ++i) EXPECT_LT(events[i - 1].seq, events[i].seq);
  }
}

/// The events of some lanes; nullopt if the store cannot read them.
std::optional<std::vector<std::int64_t>> read_lanes(store::LogReader& reader, store::Cursor cursor,
                                                    store::LaneMask lanes, std::size_t rows) {
  std::vector<std::int64_t> seqs;
  while (true) {
    const Status sent = reader.start({.lanes = lanes, .cursor = cursor, .rows = rows});
    if (!sent && sent.error().code == Errc::unsupported) return std::nullopt;
    EXPECT_TRUE(ok(sent));
    const auto page = reader.finish();
    EXPECT_TRUE(ok(page));
    EXPECT_TRUE(ok(reader.wait_durable()));
    if (!page || page->events.empty()) return seqs;
    for (const EventView& event : page->events) seqs.push_back(event.seq);
    cursor = page->end();
  }
}

// A store must not return all events when it is asked for some lanes.
TEST_P(ReadingSuite, a_page_of_some_lanes_has_their_events_or_is_refused) {
  const auto row = subscribe(make_spec("mails"));
  const auto reader = store_->reader().value();
  const store::Cursor cursor = load(row.id).cursor;
  ASSERT_TRUE(ok(reader->begin(std::span(&cursor, 1))));
  write(make_events(200));
  constexpr store::LaneMask kSome = 0xF0F0'0F0F'FF00'00FF;
  for (const std::size_t rows : {std::size_t{7}, std::size_t{1000}}) {
    const auto some = read_lanes(*reader, cursor, kSome, rows);
    if (!some) break;
    const auto others = read_lanes(*reader, cursor, ~kSome, rows);
    ASSERT_TRUE(others.has_value());
    EXPECT_GT(some->size(), 50U);
    EXPECT_GT(others->size(), 50U);
    auto all = *some;
    all.insert(all.end(), others->begin(), others->end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
    EXPECT_EQ(all.size(), 200U);
    EXPECT_TRUE(std::is_sorted(some->begin(), some->end()));
  }
  ASSERT_TRUE(ok(reader->start({.cursor = cursor})));
  EXPECT_TRUE(ok(reader->finish()));
}

TEST_P(ReadingSuite, a_page_is_bounded_by_rows) {
  const auto row = subscribe(make_spec("mails"));
  write(make_events(10));
  LogDrive drive(*store_, load(row.id).cursor, 4);
  std::int64_t position = drive.cursor().position;
  for (const std::size_t expected : {4U, 4U, 2U}) {
    const auto page = drive.next();
    ASSERT_EQ(page.events.size(), expected);
    EXPECT_EQ(page.from, position);
    EXPECT_TRUE(page.drained || page.position == page.events.back().seq);
    position = page.position;
  }
}

TEST_P(ReadingSuite, a_page_is_bounded_by_bytes_and_a_larger_event_comes_alone) {
  const auto row = subscribe(make_spec("mails"));
  const std::string large = json_string(100'000);
  std::vector<Event> events = make_events(6, "small");
  for (Event& event : events) event.payload = json_string(3'000);
  events.insert(events.begin() + 3, make_event("large", large));
  const auto written = write(events);
  LogDrive drive(*store_, load(row.id).cursor, 1000, 10'000);
  std::vector<EventId> read;
  while (read.size() < written.size()) {
    const auto page = drive.next();
    ASSERT_FALSE(page.events.empty());
    std::size_t payloads = 0;
    for (const EventView& event : page.events) payloads += event.payload.size();
    EXPECT_GE(page.bytes, payloads);
    EXPECT_TRUE(payloads <= 10'000 || page.events.size() == 1U);
    EXPECT_TRUE(page.events.front().aggregate_id != "large" ||
                page.events.front().payload == large);
    const auto ids = list_ids(page.events);
    read.insert(read.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(read, written);
}

TEST_P(ReadingSuite, headers_and_keys_count_as_payloads_do) {
  const auto row = subscribe(make_spec("mails"));
  std::vector<Event> events;
  // The store compresses repeated text, which takes its full size in memory.
  for (const std::size_t size : {4'000U, 4'000U, 30'000U, 60'000U, 10U, 10U}) {
    Event event = make_event(std::string(200, 'k'));
    event.headers = {{"trace", std::string(size, 'h')}};
    events.push_back(event);
  }
  const auto written = write(events);
  LogDrive drive(*store_, load(row.id).cursor, 1000, 10'000);
  std::vector<EventId> read;
  while (read.size() < written.size()) {
    const auto page = drive.next();
    ASSERT_FALSE(page.events.empty());
    std::size_t texts = 0;
    for (const EventView& event : page.events) {
      texts += event.aggregate_id.size() + event.headers.size();
      const std::string& sent = events[read.size()].headers.front().second;
      EXPECT_THAT(std::string(event.headers), ::testing::HasSubstr("\"" + sent + "\""));
      read.push_back(event.id);
    }
    EXPECT_GT(page.bytes, texts);
    EXPECT_TRUE(page.bytes <= 10'000 || page.events.size() == 1U) << page.bytes;
  }
  EXPECT_EQ(read, written);
}

TEST_P(ReadingSuite, goes_on_from_a_cursor_in_the_middle_of_a_page) {
  const auto row = subscribe(make_spec("mails"));
  const auto before = write(make_events(5, "a"));
  store::Cursor middle;
  {
    LogDrive drive(*store_, load(row.id).cursor, 2);
    const auto page = drive.next();
    ASSERT_EQ(page.events.size(), 2U);
    middle = drive.cursor();
    auto progress = store_->progress();
    ASSERT_TRUE(ok(progress));
    const auto settlement = make_settlement(row, page, 0);
    ASSERT_TRUE(ok((*progress)->append({.settlements = std::span(&settlement, 1)},
                                       store::Durability::flushed)));
  }
  write(make_events(2, "b"));
  EXPECT_EQ(load(row.id).cursor, middle);
  LogDrive drive(*store_, load(row.id).cursor, 2);
  EXPECT_THAT(list_keys(drive.rest()), ::testing::ElementsAre("a2", "a3", "a4", "b0", "b1"));
}

TEST_P(ReadingSuite, sees_what_is_written_while_it_reads) {
  const auto row = subscribe(make_spec("mails"));
  write(make_events(4, "a"));
  LogDrive drive(*store_, load(row.id).cursor, 2);
  std::vector<std::string> keys = list_keys(drive.next().events);
  write(make_events(2, "b"));
  for (const std::string& key : list_keys(drive.rest())) keys.push_back(key);
  write(make_events(1, "c"));
  for (const std::string& key : list_keys(drive.rest())) keys.push_back(key);
  EXPECT_THAT(keys, ::testing::ElementsAre("a0", "a1", "a2", "a3", "b0", "b1", "c0"));
}

TEST_P(ReadingSuite, a_rolled_back_event_never_appears) {
  const auto row = subscribe(make_spec("mails"));
  LogDrive drive(*store_, load(row.id).cursor);
  for (int i = 0; i < 3; ++i) {
    database_->enqueue_and_roll_back(make_event("ghost"));
    write({make_event(fmt::format("real{}", i))});
  }
  EXPECT_THAT(list_keys(drive.rest()), ::testing::ElementsAre("real0", "real1", "real2"));
}

TEST_P(ReadingSuite, every_event_of_concurrent_writers_comes_once_and_in_order_per_writer) {
  constexpr int kWriters = 4;
  constexpr int kTransactions = 40;
  const auto row = subscribe(make_spec("mails"));
  std::vector<std::future<void>> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.push_back(std::async(std::launch::async, [this, w] {
      auto writer = store_->writer();
      ASSERT_TRUE(ok(writer));
      for (int i = 0; i < kTransactions; ++i) {
        auto event = make_event(fmt::format("w{}", w), std::to_string(i));
        // SQLite has one write lock and no queue for it. A writer that does not get it tries again.
        ASSERT_TRUE(eventually([&] {
          const auto written = (*writer)->write(std::span(&event, 1));
          EXPECT_TRUE(written || written.error().remedy == Remedy::retry_call);
          return written.has_value();
        }));
      }
    }));
  }
  LogDrive drive(*store_, load(row.id).cursor, 7);
  std::map<std::string, std::vector<std::string>> by_writer;
  std::size_t total = 0;
  std::set<EventId> ids;
  const bool all = eventually([&] {
    for (const EventView& event : drive.rest()) {
      by_writer[std::string(event.aggregate_id)].emplace_back(event.payload);
      ids.insert(event.id);
      ++total;
    }
    return total >= kWriters * kTransactions;
  });
  for (auto& writer : writers) writer.get();
  EXPECT_TRUE(all);
  EXPECT_TRUE(drive.rest().empty());
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kWriters * kTransactions));
  for (const auto& [writer, payloads] : by_writer) {
    ASSERT_EQ(payloads.size(), static_cast<std::size_t>(kTransactions)) << writer;
    for (int i = 0; i < kTransactions; ++i)
      EXPECT_EQ(payloads[static_cast<std::size_t>(i)], std::to_string(i)) << writer;
  }
}

TEST_P(ReadingSuite, counts_its_statements) {
  const auto row = subscribe(make_spec("mails"));
  write(make_events(1));
  LogDrive drive(*store_, load(row.id).cursor);
  const auto before = drive.reader().statements();
  (void)drive.next();
  EXPECT_GT(drive.reader().statements(), before);
}

}  // namespace outbox::conformance
