// Tests that each message becomes one task, whatever is repeated, and in the order of its source.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <thread>

#include "conformance/store/fixture.hpp"

namespace outbox::conformance {
namespace {

using store::Arrival;
using store::InboxMessage;
using store::InboxRow;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class InboxSuite : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    inbox_ = std::move(*store_->inbox());
  }

  static InboxMessage message(const std::string& id, const std::string& key = "k",
                              std::optional<std::int64_t> seq = {}) {
    InboxMessage one{.id = id, .place = "orders/0/" + id, .seq = seq};
    one.task = {.aggregate_type = "outbox-task:billing",
                .aggregate_id = key,
                .event_type = "OrderPlaced",
                .payload = "{\"id\": \"" + id + "\"}",
                .id = EventId::generate()};
    return one;
  }
  std::vector<Arrival> receive(const std::vector<InboxMessage>& messages, bool skip_older = false,
                               const std::string& consumer = "billing") {
    auto arrivals = inbox_->receive(consumer, messages, skip_older);
    EXPECT_TRUE(ok(arrivals));
    return arrivals ? *arrivals : std::vector<Arrival>{};
  }
  /// The ids of the messages whose tasks are in the log, in its order.
  std::vector<std::string> tasks() {
    std::vector<std::string> ids;
    auto page =
        std::move(*store_->events())->list({.aggregate_type = "outbox-task:billing"}, 1000, true);
    EXPECT_TRUE(ok(page));
    for (const auto& event : page->events)
      ids.insert(ids.begin(), event.payload.substr(8, event.payload.size() - 10));
    return ids;
  }
  std::vector<InboxRow> list(const store::InboxFilter& filter) {
    auto rows = inbox_->list(filter, 1000);
    EXPECT_TRUE(ok(rows));
    return rows ? *rows : std::vector<InboxRow>{};
  }

  std::unique_ptr<store::Inbox> inbox_;
};

INSTANTIATE_TEST_SUITE_P(Store, InboxSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(InboxSuite, a_message_becomes_one_task_however_often_it_arrives) {
  EXPECT_THAT(receive({}), IsEmpty());
  EXPECT_THAT(receive({message("b"), message("a")}), Each(Arrival::first));
  EXPECT_THAT(receive({message("a"), message("c"), message("b"), message("c")}),
              ElementsAre(Arrival::again, Arrival::first, Arrival::again, Arrival::again));
  EXPECT_THAT(receive({message("a"), message("a")}), Each(Arrival::again));
  EXPECT_THAT(tasks(), ElementsAre("b", "a", "c")) << "in the order of the source, not of the ids";
  const auto rows = list({.message_id = "a"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].consumer, "billing");
  EXPECT_EQ(rows[0].event_type, "OrderPlaced");
  EXPECT_EQ(rows[0].place, "orders/0/a");
  EXPECT_TRUE(rows[0].task);
  EXPECT_EQ(rows[0].arrivals, 4);
  EXPECT_GT(rows[0].received_us, 0);
}

TEST_P(InboxSuite, consumers_do_not_know_each_others_messages) {
  EXPECT_THAT(receive({message("a")}), Each(Arrival::first));
  EXPECT_THAT(receive({message("a")}, false, "mails"), Each(Arrival::first));
  EXPECT_EQ(list({.message_id = "a"}).size(), 2U);
  EXPECT_EQ(list({.consumer = "mails"}).size(), 1U);
  EXPECT_THAT(list({.consumer = "nobody"}), IsEmpty());
}

TEST_P(InboxSuite, it_says_how_much_it_has_of_each_consumer) {
  (void)receive({message("a"), message("b")});
  (void)receive({message("c")});
  (void)receive({message("a")}, false, "mails");
  const auto consumers = inbox_->consumers(2);
  ASSERT_TRUE(ok(consumers));
  ASSERT_EQ(consumers->size(), 2U);
  const store::InboxConsumer& billing = consumers->at(0);
  EXPECT_EQ(billing.name, "billing");
  EXPECT_EQ(billing.messages, 2);
  EXPECT_TRUE(billing.more);
  EXPECT_EQ(billing.oldest_us, list({.consumer = "billing"}).back().received_us);
  EXPECT_EQ(billing.newest_us, list({.message_id = "c"}).front().received_us);
  const store::InboxConsumer& mails = consumers->at(1);
  EXPECT_EQ(mails.name, "mails");
  EXPECT_EQ(mails.messages, 1);
  EXPECT_FALSE(mails.more);
}

TEST_P(InboxSuite, pages_have_each_row_once_and_the_newest_first) {
  // Messages of one transaction may have one time.
  for (const char* const consumer : {"b", "a", "c"}) {
    (void)receive({message("3"), message("1"), message("2")}, false, consumer);
    (void)receive({message("0"), message("4")}, false, consumer);
  }
  const auto names = [](const std::vector<InboxRow>& rows) {
    std::vector<std::string> all;
    for (const InboxRow& row : rows) all.push_back(row.consumer + row.message_id);
    return all;
  };
  for (const std::string consumer : {"", "b"}) {
    const auto whole = list({.consumer = consumer});
    ASSERT_EQ(whole.size(), consumer.empty() ? 15U : 5U);
    EXPECT_TRUE(std::is_sorted(whole.begin(), whole.end(), [](const auto& one, const auto& other) {
      return one.received_us > other.received_us;
    }));
    std::vector<InboxRow> seen;
    store::InboxFilter filter{.consumer = consumer};
    while (true) {
      const auto page = inbox_->list(filter, 2);
      ASSERT_TRUE(ok(page));
      if (page->empty()) break;
      seen.insert(seen.end(), page->begin(), page->end());
      filter.before =
          store::InboxPlace{seen.back().received_us, seen.back().consumer, seen.back().message_id};
    }
    EXPECT_EQ(names(seen), names(whole));
  }
}

TEST_P(InboxSuite, filters_count_together) {
  (void)receive({message("a")});
  auto other = message("b");
  other.task.event_type = "OrderPaid";
  (void)receive({other, message("c")});
  (void)receive({message("a")}, false, "mails");
  EXPECT_EQ(list({.event_type = "OrderPaid"}).size(), 1U);
  EXPECT_EQ(list({.message_id = "b", .event_type = "OrderPlaced"}).size(), 0U);
  EXPECT_EQ(list({.consumer = "mails", .message_id = "a"}).size(), 1U);
  const auto at = list({.consumer = "billing", .message_id = "a"}).at(0).received_us;
  EXPECT_EQ(list({.message_id = "a", .since_us = at}).size(), 2U);
  EXPECT_EQ(list({.message_id = "a", .since_us = at + 1}).size(), 1U);
  EXPECT_EQ(list({.message_id = "a", .until_us = at + 1}).size(), 1U);
  EXPECT_EQ(list({.until_us = at}).size(), 0U);
}

TEST_P(InboxSuite, old_messages_are_removed_of_every_consumer) {
  for (const char* const consumer : {"billing", "mails"})
    (void)receive({message("a"), message("b")}, false, consumer);
  const auto retention = std::move(*store_->retention());
  ASSERT_TRUE(ok(retention->tidy_inbox(std::chrono::hours(1), {})));
  EXPECT_EQ(list({}).size(), 4U);
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(ok(retention->tidy_inbox({}, {})));
    return list({}).empty();
  }));
}

TEST_P(InboxSuite, older_messages_of_a_key_are_left_out) {
  EXPECT_THAT(receive({message("a2", "a", 2), message("a1", "a", 1), message("b1", "b", 1)}, true),
              ElementsAre(Arrival::first, Arrival::older, Arrival::first));
  EXPECT_THAT(receive({message("a2'", "a", 2), message("a3", "a", 3), message("x", "", 1),
                       message("y", "a")},
                      true),
              ElementsAre(Arrival::first, Arrival::first, Arrival::first, Arrival::first))
      << "the same number is not older, and without a key or a number nothing is";
  EXPECT_THAT(receive({message("a1", "a", 1)}, true), ElementsAre(Arrival::again));
  EXPECT_THAT(tasks(), ElementsAre("a2", "b1", "a2'", "a3", "x", "y"));
  EXPECT_FALSE(list({.message_id = "a1"}).at(0).task);
}

TEST_P(InboxSuite, numbers_may_be_negative) {
  EXPECT_THAT(receive({message("a", "a", -5), message("b", "a", -4)}, true), Each(Arrival::first));
  EXPECT_THAT(receive({message("c", "a", -6)}, true), Each(Arrival::older));
}

/// Whichever of them commits first, the message with the higher number is the last one of its key.
TEST_P(InboxSuite, two_consumers_leave_out_older_messages_of_a_new_key) {
  const auto other = std::move(*store_->inbox());
  for (int round = 0; round < 60; ++round) {
    const std::string key = std::to_string(round);
    {
      const std::jthread beside([&] {
        EXPECT_TRUE(ok(other->receive("billing", std::vector{message(key + "-1", key, 1)}, true)));
      });
      (void)receive({message(key + "-2", key, 2)}, true);
    }
    auto page =
        std::move(*store_->events())
            ->list({.aggregate_type = "outbox-task:billing", .aggregate_id = key}, 10, true);
    ASSERT_TRUE(ok(page));
    EXPECT_NE(page->events.front().payload.find(key + "-2"), std::string::npos);
  }
}

TEST_P(InboxSuite, the_inbox_is_read_page_by_page) {
  std::vector<InboxMessage> messages;
  for (int i = 0; i < 12'000; ++i) messages.push_back(message(std::to_string(i), ""));
  EXPECT_THAT(receive(messages), Each(Arrival::first));
  std::set<std::string> seen;
  ASSERT_TRUE(
      ok(inbox_->read("billing", [&](const InboxRow& row) { seen.insert(row.message_id); })));
  EXPECT_EQ(seen.size(), messages.size());
}

TEST_P(InboxSuite, two_consumers_with_the_same_messages_make_one_task_of_each) {
  const auto other = std::move(*store_->inbox());
  for (int round = 0; round < 50; ++round) {
    std::vector<InboxMessage> up;
    std::vector<InboxMessage> down;
    for (int i = 0; i < 40; ++i) {
      const std::string id = std::to_string(round) + "-" + std::to_string(i);
      up.push_back(message(id));
      down.insert(down.begin(), message(id));
    }
    std::size_t first = 0;
    const auto run = [&](store::Inbox& inbox, const std::vector<InboxMessage>& messages,
                         std::size_t& count) {
      const auto arrivals = inbox.receive("billing", messages, false);
      ASSERT_TRUE(ok(arrivals));
      count =
          static_cast<std::size_t>(std::count(arrivals->begin(), arrivals->end(), Arrival::first));
    };
    std::size_t second = 0;
    {
      const std::jthread beside([&] { run(*other, down, second); });
      run(*inbox_, up, first);
    }
    EXPECT_EQ(first + second, 40U);
  }
}

}  // namespace
}  // namespace outbox::conformance
