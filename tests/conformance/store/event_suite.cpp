// Tests that events come out as they were written, byte for byte, and that invalid ones are
// refused.
#include <chrono>

#include "conformance/store/fixture.hpp"
#include "event/time_text.hpp"

namespace outbox::conformance {

class EventSuite : public StoreTest {
 protected:
  void expect_unchanged(const Event& event) {
    const auto row = subscribe(make_spec("mails"));
    const auto ids = write({event});
    ASSERT_EQ(ids.size(), 1U);
    LogDrive drive(*store_, load(row.id).cursor);
    const auto events = drive.rest();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].id, ids[0]);
    EXPECT_EQ(events[0].aggregate_type, event.aggregate_type);
    EXPECT_EQ(events[0].aggregate_id, event.aggregate_id);
    EXPECT_EQ(events[0].event_type, event.event_type);
    EXPECT_TRUE(events[0].payload == event.payload)
        << "payload of " << event.payload.size() << " bytes";
    EXPECT_EQ(events[0].content_type, event.content_type);
  }
  void expect_refused(const Event& event, const std::string& field) {
    auto writer = store_->writer();
    ASSERT_TRUE(ok(writer));
    const std::vector<Event> events{make_event("good"), event};
    auto written = (*writer)->write(events);
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().message, ::testing::HasSubstr(field));
    const auto row = subscribe(make_spec("mails"));
    LogDrive drive(*store_, load(row.id).cursor);
    EXPECT_TRUE(drive.rest().empty()) << "half of it was written";
  }
};
INSTANTIATE_TEST_SUITE_P(Store, EventSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(EventSuite, json) { expect_unchanged(make_event("1", "{ \"b\" : 1,\n \"a\":[1.0, 1e3]}")); }

TEST_P(EventSuite, bytes_of_every_value) {
  Event event = make_event("1", {});
  for (int round = 0; round < 3; ++round) {
    for (int byte = 0; byte < 256; ++byte) event.payload.push_back(static_cast<char>(byte));
  }
  event.content_type = "application/octet-stream";
  expect_unchanged(event);
}

TEST_P(EventSuite, empty_payload_and_nothing_said_about_it) {
  Event event = make_event("1", "");
  event.content_type = "";
  expect_unchanged(event);
}

TEST_P(EventSuite, no_key) { expect_unchanged(make_event("")); }

TEST_P(EventSuite, unicode_everywhere) {
  Event event =
      make_event("\xC3\xBC\xE2\x82\xAC\xF0\x9F\x9A\x80", "\"\xF0\x9F\x9A\x80 \\ud83d\\ude80\"");
  event.aggregate_type =
      "Gr\xC3\xB6\xC3\x9F"
      "e";
  event.event_type = "\xE6\xB3\xA8\xE6\x96\x87'\"\\ %s";
  expect_unchanged(event);
}

TEST_P(EventSuite, one_mebibyte) {
  Event event = make_event("1", json_string(std::size_t{1} << 20U));
  expect_unchanged(event);
}

TEST_P(EventSuite, names_of_255_bytes) {
  Event event = make_event(std::string(255, 'i'));
  event.aggregate_type = std::string(255, 'a');
  event.event_type = std::string(255, 'e');
  expect_unchanged(event);
}

TEST_P(EventSuite, headers) {
  const auto row = subscribe(make_spec("mails"));
  Event event = make_event("1");
  event.headers = {{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
                   {"tenant", "\xC3\xBC \"quoted\" \\ and, a comma"}};
  write({event});
  LogDrive drive(*store_, load(row.id).cursor);
  const auto events = drive.rest();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(
      std::string(events[0].headers),
      ::testing::AllOf(::testing::HasSubstr("traceparent"), ::testing::HasSubstr("\\\"quoted\\\""),
                       ::testing::HasSubstr("tenant")));
}

TEST_P(EventSuite, an_id_of_the_caller) {
  const auto row = subscribe(make_spec("mails"));
  Event event = make_event("1");
  event.id = EventId::parse("0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1").value();
  EXPECT_THAT(write({event}), ::testing::ElementsAre(*event.id));
  LogDrive drive(*store_, load(row.id).cursor);
  EXPECT_THAT(list_ids(drive.rest()), ::testing::ElementsAre(*event.id));
}

TEST_P(EventSuite, created_at_is_now) {
  const auto row = subscribe(make_spec("mails"));
  write({make_event("1")});
  LogDrive drive(*store_, load(row.id).cursor);
  const auto events = drive.rest();
  ASSERT_EQ(events.size(), 1U);
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  EXPECT_NEAR(static_cast<double>(event::to_us(events[0].created_at)), static_cast<double>(now),
              60e6);
}

TEST_P(EventSuite, it_may_have_happened_before_it_was_written) {
  const auto row = subscribe(make_spec("mails"));
  Event before = make_event("1");
  before.occurred_at.emplace(std::chrono::microseconds(981'173'106'789'012));
  Event long_ago = make_event("1");
  // This is the year 1.
  long_ago.occurred_at.emplace(std::chrono::microseconds(-62'135'596'800'000'000));
  write({before});                             // A single event has a statement of its own.
  write({long_ago, make_event("1"), before});  // Several events are written by another statement.
  LogDrive drive(*store_, load(row.id).cursor);
  const auto events = drive.rest();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].occurred_at, event::timestamp(981'173'106'789'012));
  EXPECT_EQ(events[1].occurred_at, event::timestamp(-62'135'596'800'000'000));
  EXPECT_EQ(events[2].occurred_at, std::nullopt);
  EXPECT_EQ(events[3].occurred_at, event::timestamp(981'173'106'789'012));
  EXPECT_GT(events[3].created_at, event::timestamp(1'700'000'000'000'000));
}

TEST_P(EventSuite, refuses_a_time_that_nobody_can_write) {
  Event event = make_event("1");
  event.occurred_at.emplace(std::chrono::microseconds(-62'135'596'800'000'001));
  expect_refused(event, "occurred_at");
}

TEST_P(EventSuite, refuses_a_blank_type) {
  Event event = make_event("1");
  event.event_type = "  ";
  expect_refused(event, "event_type");
}

TEST_P(EventSuite, refuses_what_is_not_json_but_says_so) {
  expect_refused(make_event("1", "{"), "payload");
}

TEST_P(EventSuite, refuses_a_payload_over_the_limit) {
  expect_refused(make_event("1", json_string((std::size_t{1} << 20U) + 1)), "payload");
}

}  // namespace outbox::conformance
