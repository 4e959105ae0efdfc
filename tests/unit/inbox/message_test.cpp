// Tests what is read from messages of the known formats, and of others.
#include "inbox/message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "event/task.hpp"

namespace outbox::inbox {
namespace {

using source::Received;
using source::Spot;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kId = "01a1fffe-b175-7652-8989-de74aa02b3f2";

ConsumerSpec make_spec() { return {.name = "billing", .source = "kafka", .read = {"orders"}}; }

MessageReader::Read read(Received received, const ConsumerSpec& spec = make_spec()) {
  if (received.place.empty()) received.place = "orders/3/1042";
  if (received.channel.empty()) received.channel = "orders";
  auto reader = MessageReader::make(spec);
  EXPECT_TRUE(reader) << reader.error().text();
  return reader->read(std::move(received));
}

std::string header(const MessageReader::Read& read, const std::string& name) {
  for (const auto& [each, value] : read.message.task.headers) {
    if (each == name) return value;
  }
  return "(none)";
}

TEST(Message, of_our_formats_raw_and_json) {
  const auto one = read({.payload = R"({"total": 12.5})",
                         .headers = {{"outbox-id", kId},
                                     {"outbox-seq", "17"},
                                     {"outbox-time", "2026-11-21T21:24:04.085217Z"},
                                     {"outbox-type", "OrderPlaced"},
                                     {"outbox-aggregate-type", "order"},
                                     {"content-type", "application/json"},
                                     {"tenant", "a"}},
                         .key = "42"});
  EXPECT_EQ(one.unreadable, "");
  EXPECT_EQ(one.message.id, kId);
  EXPECT_EQ(one.message.place, "orders/3/1042");
  EXPECT_EQ(one.message.seq, 17);
  const Event& task = one.message.task;
  EXPECT_EQ(task.aggregate_type, "outbox-task:default");
  EXPECT_EQ(task.event_type, "OrderPlaced");
  EXPECT_EQ(task.aggregate_id, "42");
  EXPECT_EQ(task.payload, R"({"total": 12.5})");
  EXPECT_EQ(task.content_type, "application/json");
  EXPECT_TRUE(task.id);
  EXPECT_TRUE(task.occurred_at);
  EXPECT_EQ(header(one, "tenant"), "a");
  EXPECT_EQ(header(one, "message-id"), kId);
  EXPECT_EQ(header(one, "outbox-id"), "(none)") << "reserved names are ours";
}

TEST(Message, of_an_envelope_without_headers) {
  const auto one = read(
      {.payload =
           std::string(R"({"eventId":")") + kId +
           R"(","eventType":"OrderPlaced","aggregateType":"order","aggregateId":"42","seq":3,"payload":{}})"});
  EXPECT_EQ(one.message.id, kId);
  EXPECT_EQ(one.message.task.event_type, "OrderPlaced");
  EXPECT_EQ(one.message.task.aggregate_id, "42");
  EXPECT_EQ(one.message.seq, 3);
  EXPECT_EQ(one.message.task.content_type, "application/json");
}

TEST(Message, of_cloud_events_in_each_binding) {
  for (const char* prefix : {"ce_", "ce-", "cloudEvents:"}) {
    SCOPED_TRACE(prefix);
    const std::string at(prefix);
    const auto one = read({.payload = "x",
                           .headers = {{at + "id", kId},
                                       {at + "source", "/shop"},
                                       {at + "type", "OrderPlaced"},
                                       {at + "partitionkey", "42"},
                                       {at + "sequence", "9"}}});
    EXPECT_EQ(one.message.id, kId);
    EXPECT_EQ(one.message.task.event_type, "OrderPlaced");
    EXPECT_EQ(one.message.task.aggregate_id, "42");
    EXPECT_EQ(one.message.seq, 9);
    for (const auto& [name, value] : one.message.task.headers)
      EXPECT_THAT(name, Not(HasSubstr(":")));
  }
}

TEST(Message, of_a_structured_cloud_event) {
  const auto one = read(
      {.payload =
           R"({"specversion":"1.0","id":"7","source":"/shop","type":"com.shop.placed","subject":"42","data":{}})",
       .content_type = "application/cloudevents+json; charset=utf-8"});
  EXPECT_EQ(one.message.id, "/shop#7") << "an id is unique within its source only";
  EXPECT_EQ(one.message.task.event_type, "com.shop.placed");
  EXPECT_EQ(one.message.task.aggregate_id, "42");
}

TEST(Message, of_debezium_nats_and_amqp) {
  EXPECT_EQ(read({.headers = {{"id", kId}}}).message.id, kId);
  EXPECT_EQ(read({.headers = {{"Nats-Msg-Id", "n-1"}}}).message.id, "n-1");
  const auto amqp = read({.payload = "x", .id = "a-1", .type = "Paid", .correlation_id = "c-9"});
  EXPECT_EQ(amqp.message.id, "a-1");
  EXPECT_EQ(amqp.message.task.event_type, "Paid");
  EXPECT_EQ(header(amqp, "correlation_id"), "c-9");
}

TEST(Message, that_says_nothing_is_known_by_its_place) {
  const auto one = read({.payload = std::string("\0\xff", 2)});
  EXPECT_EQ(one.unreadable, "");
  EXPECT_EQ(one.message.id, "orders/3/1042");
  EXPECT_EQ(one.message.task.event_type, "orders");
  EXPECT_EQ(one.message.task.content_type, "");
  EXPECT_EQ(one.message.seq, std::nullopt);
}

/// Messages of one id count as one: what others use the same name for must not make them so.
TEST(Message, a_plain_id_counts_only_if_it_is_a_uuid) {
  EXPECT_EQ(read({.headers = {{"id", "42"}}}).message.id, "orders/3/1042");
  EXPECT_EQ(read({.payload = R"({"eventId": 42})"}).message.id, "orders/3/1042");
  ConsumerSpec spec = make_spec();
  spec.id = "header:id";
  EXPECT_EQ(read({.headers = {{"id", "42"}}}, spec).message.id, "42");
}

TEST(Message, places_of_a_topic_that_is_made_again_are_others) {
  const auto at = [](std::int64_t us) {
    return read({.payload = "x", .sent_at = Timestamp(std::chrono::microseconds(us))}).message;
  };
  EXPECT_EQ(at(1'000'000).id, "orders/3/1042@1000000");
  EXPECT_EQ(at(1'000'000).id, at(1'000'000).id);
  EXPECT_NE(at(1'000'000).id, at(2'000'000).id);
  EXPECT_EQ(at(1'000'000).place, "orders/3/1042");
  EXPECT_FALSE(at(std::int64_t{1} << 62).task.occurred_at) << "no store can hold such a time";
}

/// A message that the store refuses would come again and again, before all others.
TEST(Message, of_what_no_store_can_hold_the_beginning_is_kept) {
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  const auto one = read({.payload = std::string(kMost + 1, 'x')});
  EXPECT_THAT(one.unreadable, HasSubstr("67108865 bytes"));
  EXPECT_EQ(one.message.task.payload.size(), kMost);
  EXPECT_EQ(read({.payload = std::string(kMost, 'x')}).unreadable, "");
}

TEST(Message, the_name_of_a_consumer_is_not_one_of_a_queue) {
  ConsumerSpec spec = make_spec();
  spec.name = "task.billing";
  EXPECT_FALSE(validate(spec));
}

TEST(Message, has_its_parts_where_the_configuration_says) {
  ConsumerSpec spec = make_spec();
  spec.id = "header:X-Request-Id";
  spec.type = "json:meta.kind";
  spec.key = "json:customer.id";
  spec.seq = "header:version";
  const Received received{.payload = R"({"meta":{"kind":"Paid"},"customer":{"id":7}})",
                          .headers = {{"x-request-id", "r-1"}, {"version", "5"}}};
  const auto one = read(received, spec);
  EXPECT_EQ(one.unreadable, "");
  EXPECT_EQ(one.message.id, "r-1");
  EXPECT_EQ(one.message.task.event_type, "Paid");
  EXPECT_EQ(one.message.task.aggregate_id, "7");
  EXPECT_EQ(one.message.seq, 5);
  spec.type = "text:Everything";
  spec.id = "place";
  EXPECT_EQ(read(received, spec).message.task.event_type, "Everything");
  EXPECT_EQ(read(received, spec).message.id, "orders/3/1042");
}

/// The task keeps the bytes, is dead from the beginning, and blocks no key.
void expect_unreadable(const MessageReader::Read& one, const std::string& reason,
                       const std::string& payload) {
  EXPECT_THAT(one.unreadable, HasSubstr(reason));
  EXPECT_EQ(one.message.task.payload, payload);
  EXPECT_EQ(one.message.task.aggregate_id, "");
  EXPECT_THAT(header(one, "task-unreadable"), HasSubstr(reason));
  event::Arena arena;
  std::string json = "{\"task-unreadable\":\"" + one.unreadable + "\"}";
  EXPECT_FALSE(event::parse_task_rules(json, arena));
  EXPECT_NE(one.message.id, "");
}

TEST(Message, that_cannot_be_understood_keeps_its_bytes) {
  ConsumerSpec spec = make_spec();
  spec.id = "header:x-request-id";
  expect_unreadable(read({.payload = "{}"}, spec), "no header x-request-id", "{}");
  spec = make_spec();
  spec.type = "json:kind";
  expect_unreadable(read({.payload = "not json"}, spec), "nothing at kind", "not json");
  expect_unreadable(read({.payload = "{", .headers = {{"content-type", "application/json"}}}),
                    "its payload is not JSON", "{");
  expect_unreadable(read({.payload = "x", .key = std::string(300, 'k')}), "key", "x");
  expect_unreadable(read({.payload = "x", .key = "\xff"}), "key", "x");
  expect_unreadable(read({.payload = "x", .headers = {{"outbox-type", "a\nb"}}}), "type", "x");
  expect_unreadable(read({.payload = "x", .headers = {{"big", std::string(70'000, 'h')}}}),
                    "64 KiB", "x");
}

TEST(Message, cannot_direct_its_task) {
  const auto one = read({.payload = "x",
                         .headers = {{"task-on-done", R"({"aggregate_type":"a","event_type":"b"})"},
                                     {"Task_Unique_Key", "k"},
                                     {"task-unreadable", "no"},
                                     {"outbox-replay", "1"}}});
  EXPECT_EQ(one.unreadable, "");
  EXPECT_EQ(one.message.task.headers.size(), 1U) << "only message-id";
}

TEST(Message, headers_that_are_no_text_are_kept_as_base64) {
  const auto one =
      read({.payload = "x",
            .headers = {{"trace", "\xff\x01"}, {"a b", "1"}, {"same", "1"}, {"Same", "2"}}});
  EXPECT_EQ(header(one, "trace"), "base64:/wE=");
  EXPECT_EQ(header(one, "a_b"), "1");
  EXPECT_EQ(header(one, "Same"), "2") << "the last one of a name counts";
  EXPECT_EQ(header(one, "same"), "(none)");
}

TEST(Message, an_id_that_is_too_long_is_known_by_its_hash) {
  const auto id = [](std::size_t length) {
    return read({.headers = {{"outbox-id", std::string(length, 'x')}}}).message.id;
  };
  EXPECT_THAT(id(300), StartsWith("sha256:"));
  EXPECT_EQ(id(300), id(300));
  EXPECT_NE(id(300), id(301));
}

TEST(Message, a_place_that_is_none_is_refused) {
  for (const char* text : {"header:", "x", "json", "place "}) EXPECT_FALSE(Spot::parse("id", text));
  EXPECT_FALSE(Spot::parse("type", "place"));
  EXPECT_TRUE(Spot::parse("id", "place"));
}

}  // namespace
}  // namespace outbox::inbox
