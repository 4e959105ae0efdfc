// Tests, on both stores, that relays and workers write what they did, that the rows sum to it over
// restarts and failures, and that old rows are removed.
#include <algorithm>
#include <atomic>

#include "history/pruning.hpp"
#include "integration/task/worker_fixture.hpp"
#include "support/sqlite.hpp"

namespace outbox::test {
namespace {

constexpr std::int64_t kDayUs = std::int64_t{24} * 3600 * 1'000'000;

class HistoryTest : public WorkerTest {
 protected:
  [[nodiscard]] RelayOptions relay_options() const {
    return {.store_url = url_,
            .subscriptions = {custom("orders")},
            .history_interval = milliseconds(100)};
  }
  [[nodiscard]] std::vector<store::HistoryPoint> points() const {
    return store_->work_history().value()->list(0, kDayUs).value();
  }
  /// The sum of all rows of a subscription and type.
  [[nodiscard]] store::HistoryRow sum(const std::string& subscription = "orders",
                                      const std::string& type = {}) const {
    store::HistoryRow all;
    for (const store::HistoryPoint& one : points()) {
      if (one.subscription != subscription || one.row.type != type) continue;
      all.delivered += one.row.delivered;
      all.failed += one.row.failed;
      all.parked += one.row.parked;
      all.dead += one.row.dead;
      all.pending = std::max(all.pending, one.row.pending);
      all.oldest_us = std::max(all.oldest_us, one.row.oldest_us);
      for (const std::int64_t count : one.row.latency) all.latency.push_back(count);
    }
    return all;
  }
  [[nodiscard]] static std::int64_t measured(const store::HistoryRow& row) {
    std::int64_t all = 0;
    for (const std::int64_t count : row.latency) all += count;
    return all;
  }
  /// Delivers what is pending, and stops in order.
  void deliver_and_stop(Relay& relay) const {
    ASSERT_TRUE(relay.start());
    EXPECT_TRUE(eventually_settled(url_, "orders"));
    EXPECT_TRUE(relay.stop(seconds(30)).drained);
  }
  /// Gives the table this name instead of that one.
  void rename_table(const std::string& from, const std::string& to) const {
    if (GetParam()) {
#ifdef OUTBOX_WITH_POSTGRES
      Pg(database_->url()).run("ALTER TABLE outbox." + from + " RENAME TO " + to);
#endif
      return;
    }
    SqliteFile application(folder_.file("shop.db"));
    application.run("ALTER TABLE outbox_" + from + " RENAME TO outbox_" + to);
  }
};

INSTANTIATE_TEST_SUITE_P(Store, HistoryTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(HistoryTest, the_rows_sum_to_what_was_delivered_over_restarts) {
  write("a", {"Placed", "Placed", "Placed"});
  const auto first = make_relay(relay_options());
  const auto recording = record(*first, "orders");
  ASSERT_TRUE(first->start());
  EXPECT_TRUE(eventually([&] { return sum().delivered == 3; })) << "while it runs";
  write("b", {"Placed", "Placed"});
  EXPECT_TRUE(eventually_settled(url_, "orders"));
  EXPECT_TRUE(first->stop(seconds(30)).drained);
  EXPECT_EQ(sum().delivered, 5) << "a stop writes the rest";
  write("c", {"Placed"});
  deliver_and_stop(*first);
  EXPECT_EQ(sum().delivered, 6) << "the same relay again";

  write("d", {"Placed", "Placed"});
  const auto second = make_relay(relay_options());
  const auto others = record(*second, "orders");
  deliver_and_stop(*second);
  EXPECT_EQ(sum().delivered, 8) << "another relay";
  EXPECT_EQ(measured(sum()), 8) << "each has its latency";
  EXPECT_EQ(sum().failed, 0);
  EXPECT_EQ(recording->events().size() + others->events().size(), 8U);
}

TEST_P(HistoryTest, a_relay_that_does_nothing_writes_nothing) {
  const auto relay = make_relay(relay_options());
  const auto recording = record(*relay, "orders");
  ASSERT_TRUE(relay->start());
  EXPECT_TRUE(eventually([&] { return relay->report().owner; }));
  EXPECT_TRUE(relay->stop(seconds(30)).drained);
  const auto before = points().size();
  deliver_and_stop(*relay);
  EXPECT_EQ(points().size(), before);
  EXPECT_EQ(sum().delivered, 0);
}

TEST_P(HistoryTest, what_fails_and_what_waits_is_written) {
  write("a", {"Placed"});
  write("b", {"Placed"});
  const auto well = std::make_shared<std::atomic<bool>>(false);
  const auto relay = make_relay(relay_options());
  ASSERT_TRUE(relay->use("orders", std::make_unique<testing::FailingSink>([well](const EventView&) {
                           return *well ? Outcome::Kind::acked : Outcome::Kind::retry;
                         })));
  ASSERT_TRUE(relay->start());
  EXPECT_TRUE(eventually([&] {
    const auto row = sum();
    return row.pending == 2 && row.failed > 0 && row.oldest_us > 0;
  }));
  EXPECT_EQ(sum().delivered, 0);
  *well = true;
  EXPECT_TRUE(eventually([&] { return sum().delivered == 2; }));
  EXPECT_TRUE(relay->stop(seconds(30)).drained);
}

TEST_P(HistoryTest, a_relay_that_cannot_write_its_rows_delivers_on_and_writes_them_later) {
  const auto relay = make_relay(relay_options());
  const auto recording = record(*relay, "orders");
  ASSERT_TRUE(relay->start());
  rename_table("history", "hidden");
  write("a", {"Placed", "Placed"});
  EXPECT_TRUE(eventually([&] { return recording->events().size() == 2; }));
  write("b", {"Placed"});
  EXPECT_TRUE(eventually([&] { return recording->events().size() == 3; }));
  rename_table("hidden", "history");
  EXPECT_TRUE(eventually([&] { return sum().delivered == 3; }));
  EXPECT_TRUE(relay->stop(seconds(30)).drained);
  EXPECT_EQ(sum().delivered, 3);
}

TEST_P(HistoryTest, rows_that_are_written_again_count_once) {
  const auto history = store_->work_history().value();
  ASSERT_TRUE(store_->catalog().value()->apply(custom("orders")));
  const EventId who = EventId::generate();
  const std::vector<store::HistoryRow> rows{
      {.subscription = row().id, .delivered = 3, .latency = {1, 2}}};
  ASSERT_TRUE(history->append(who, 60'000'000, rows));
  ASSERT_TRUE(history->append(who, 60'000'000, rows));
  EXPECT_EQ(sum().delivered, 3);
  ASSERT_TRUE(history->append(EventId::generate(), 60'000'000, rows));
  EXPECT_EQ(sum().delivered, 6) << "another relay";
  ASSERT_TRUE(history->append(who, 120'000'000, rows));
  const auto steps = history->list(60'000'000, 60'000'000).value();
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].at_us, 60'000'000);
  EXPECT_THAT(steps[0].row.latency, ::testing::ElementsAre(2, 4));
  EXPECT_EQ(history->list(60'000'001, 60'000'000).value().size(), 1U);
  EXPECT_EQ(history->remove(120'000'000, 100).value(), 2U);
  EXPECT_EQ(sum().delivered, 3);
}

TEST_P(HistoryTest, batches_remove_what_is_old_and_nothing_else) {
  const auto history = store_->work_history().value();
  ASSERT_TRUE(store_->catalog().value()->apply(custom("orders")));
  const std::vector<store::HistoryRow> rows{{.subscription = row().id, .delivered = 1}};
  for (std::int64_t minute = 1; minute <= 10; ++minute)
    ASSERT_TRUE(history->append(EventId::generate(), minute * 60'000'000, rows));
  EXPECT_EQ(history->remove(8 * std::int64_t{60'000'000}, 2).value(), 3U);
  EXPECT_EQ(history->remove(8 * std::int64_t{60'000'000}, 100).value(), 4U);
  EXPECT_EQ(history->remove(8 * std::int64_t{60'000'000}, 100).value(), 0U);
  EXPECT_EQ(sum().delivered, 3);
  const std::int64_t now_us = history->now().value();
  ASSERT_TRUE(history->append(EventId::generate(), now_us, rows));
  EXPECT_EQ(history::prune(*store_, milliseconds(0), {}).value(), 0) << "0 removes nothing";
  EXPECT_EQ(history::prune(*store_, std::chrono::hours(1), {}).value(), 3);
  EXPECT_EQ(sum().delivered, 1);
}

TEST_P(HistoryTest, a_relay_removes_old_rows) {
  ASSERT_TRUE(store_->catalog().value()->apply(custom("orders")));
  ASSERT_TRUE(store_->work_history().value()->append(
      EventId::generate(), 60'000'000,
      std::vector<store::HistoryRow>{{.subscription = row().id, .delivered = 1}}));
  RelayOptions options = relay_options();
  options.retention = milliseconds(0);  // so that passes follow each other quickly
  const auto relay = make_relay(options);
  const auto recording = record(*relay, "orders");
  ASSERT_TRUE(relay->start());
  EXPECT_TRUE(eventually([&] { return points().empty(); }));
  EXPECT_TRUE(relay->stop(seconds(30)).drained);
}

TEST_P(HistoryTest, without_keep_nothing_is_written) {
  write("a", {"Placed"});
  RelayOptions options = relay_options();
  options.history = milliseconds(0);
  const auto relay = make_relay(options);
  const auto recording = record(*relay, "orders");
  deliver_and_stop(*relay);
  EXPECT_EQ(recording->events().size(), 1U);
  EXPECT_TRUE(points().empty());
}

TEST_P(HistoryTest, a_worker_writes_rows_for_its_queue_and_each_type) {
  note("note");
  handlers_.on("bad", [](std::string_view, const TaskRun&) { return TaskEnd::dead("unreadable"); });
  WorkerOptions mine = options();
  mine.relay.history_interval = milliseconds(100);
  const auto worker = start(mine);
  enqueue("note", {"1", "2", "3"});
  enqueue("bad", {"4"});
  EXPECT_TRUE(eventually([&] {
    return sum("task.mail", "note").delivered == 3 && sum("task.mail", "bad").dead == 1;
  }));
  EXPECT_EQ(measured(sum("task.mail", "note")), 3) << "how long each took";
  (void)worker->stop(seconds(30));
  EXPECT_EQ(sum("task.mail", "note").delivered, 3);
  EXPECT_GE(sum("task.mail").delivered, 3) << "all types together";
}

}  // namespace
}  // namespace outbox::test
