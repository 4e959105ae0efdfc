// Tests tasks that find no thread at their own worker while another worker has a free one. They run
// on PostgreSQL only, because a file has one worker.
#include "event/task_queue.hpp"
#include "integration/task/worker_fixture.hpp"
#include "support/postgres_database.hpp"
#include "verify/verify.hpp"

namespace outbox::test {
namespace {

class TaskSharingTest : public WorkerTest {
 protected:
  /// A worker whose handler "hold" waits until `opened` is true, and what it has done.
  struct Hand {
    std::unique_ptr<Worker> worker;
    Runs done;
    std::atomic<int> running{0};
    std::atomic<bool> opened{false};
    std::atomic<int> told{0};
  };
  using WorkerTest::start;
  void start(Hand& hand, const std::string& name, std::size_t threads,
             const std::string& type = "hold") {
    Handlers handlers;
    handlers.on(type, [&hand](std::string_view payload, const TaskRun& run) {
      ++hand.running;
      while (!hand.opened && !run.stop.stop_requested())
        std::this_thread::sleep_for(milliseconds(1));
      --hand.running;
      if (!hand.opened) return ++hand.told, TaskEnd::snooze(milliseconds(0));
      hand.done.add(payload, run);
      return TaskEnd::done();
    });
    WorkerOptions options = this->options();
    options.relay.name = name;
    options.threads = threads;
    options.heartbeat = milliseconds(500);
    auto worker = Worker::create(std::move(options), std::move(handlers));
    ASSERT_TRUE(worker) << worker.error().text();
    hand.worker = std::move(*worker);
    ASSERT_TRUE(hand.worker->start());
  }
  /// Keys in the lanes of the busy worker, once both workers have their share.
  std::vector<std::string> keys_of_busy(std::size_t count) {
    Pg pg(url_);
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < count; ++i) {
      keys.push_back(
          pg.value("SELECT 'k' || n FROM generate_series(1, 300) n JOIN outbox.lane l"
                   " ON l.lane = outbox.lane_of('outbox-task:mail', 'k' || n, outbox.new_id())"
                   " JOIN outbox.relay r ON r.id = l.owner"
                   " WHERE l.lane_group = 'custom:task.mail' AND r.name = 'busy'"
                   " ORDER BY n LIMIT 1 OFFSET " +
                   std::to_string(i)));
    }
    return keys;
  }
  void start_both(std::size_t threads, const std::string& type_of_other = "hold") {
    start(busy_, "busy", threads);
    start(idle_, "idle", threads, type_of_other);
    Pg pg(url_);
    ASSERT_TRUE(eventually([&] {
      return pg.value(
                 "SELECT count(*) FROM outbox.lane l JOIN outbox.relay r ON r.id = l.owner"
                 " WHERE l.lane_group = 'custom:task.mail' AND r.name = 'idle'") == "32";
    }));
    keys_ = keys_of_busy(threads * 2);
  }
  void expect_that_all_is_over(std::size_t tasks) {
    EXPECT_TRUE(eventually(
        [&] { return busy_.done.count() + idle_.done.count() == tasks && parked().empty(); }));
    std::map<std::string, int> runs;
    for (const Hand* hand : {&busy_, &idle_}) {
      for (const auto& run : hand->done.all()) ++runs[run.payload];
    }
    EXPECT_EQ(runs.size(), tasks);
    for (const auto& [payload, count] : runs) EXPECT_EQ(count, 1) << payload;
    EXPECT_TRUE(eventually([&] { return all_is_done(); }));
    const auto rows = store_->catalog().value()->subscriptions().value();
    for (const auto& row : rows) {
      const auto reader = store_->ledger_reader().value();
      const auto found = verify::verify(*reader, row.id);
      ASSERT_TRUE(found) << found.error().text();
      EXPECT_TRUE(found->ok()) << row.spec.name;
    }
  }

  Hand busy_;
  Hand idle_;
  std::vector<std::string> keys_;
};

INSTANTIATE_TEST_SUITE_P(Store, TaskSharingTest, ::testing::Values(true),
                         [](const auto&) { return "Postgres"; });

TEST_P(TaskSharingTest, an_idle_worker_does_what_finds_no_thread_elsewhere) {
  start_both(2);
  for (const std::string& key : keys_) enqueue("hold", {key}, key);
  EXPECT_TRUE(eventually([&] { return busy_.running == 2 && idle_.running == 2; }));
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 4; }));
  RecordProperty("milliseconds_until_claimed",
                 Pg(url_).value("SELECT round(max(extract(epoch FROM begun_at - parked_at)) * 1000)"
                                " FROM outbox.parked_state WHERE token = 1 AND worker ="
                                " (SELECT id FROM outbox.worker WHERE name = 'idle')"));
  busy_.opened = idle_.opened = true;
  expect_that_all_is_over(4);
}

TEST_P(TaskSharingTest, the_order_of_a_key_holds) {
  start_both(1);
  enqueue("hold", {"first"}, keys_[0]);
  EXPECT_TRUE(eventually([&] { return busy_.running == 1; }));
  enqueue("hold", {"a", "b", "c"}, keys_[1]);
  EXPECT_TRUE(eventually([&] { return idle_.running == 1; }));
  idle_.opened = true;
  // The tasks run one after the other, wherever each of them runs.
  EXPECT_TRUE(eventually([&] { return idle_.done.count() == 3; }));
  EXPECT_EQ(idle_.done.payloads(keys_[1]), (std::vector<std::string>{"a", "b", "c"}));
  busy_.opened = true;
  expect_that_all_is_over(4);
}

TEST_P(TaskSharingTest, what_no_other_worker_can_do_is_done_by_its_own) {
  start_both(1, "another type");
  enqueue("hold", {"first"}, keys_[0]);
  enqueue("hold", {"second"}, keys_[1]);
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::ready).size() == 1; }));
  EXPECT_EQ(busy_.running, 1);
  busy_.opened = true;
  expect_that_all_is_over(2);
  EXPECT_EQ(idle_.done.count(), 0U);
}

TEST_P(TaskSharingTest, a_worker_that_stops_gives_back_what_it_took) {
  start_both(1);
  enqueue("hold", {"first"}, keys_[0]);
  EXPECT_TRUE(eventually([&] { return busy_.running == 1; }));
  enqueue("hold", {"second"}, keys_[1]);
  EXPECT_TRUE(eventually([&] { return idle_.running == 1; }));
  (void)idle_.worker->stop(milliseconds(0));
  EXPECT_EQ(idle_.told, 1);
  busy_.opened = true;
  expect_that_all_is_over(2);
  EXPECT_EQ(busy_.done.all().back().attempt, 1U);
}

/// The type had no limit when its tasks were given away, and has one now.
TEST_P(TaskSharingTest, what_was_given_away_keeps_to_the_limit_that_its_type_has_by_now) {
  enqueue("send", {"a", "b", "c", "d"});
  note("another type");
  auto before = start();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 4; }));
  (void)before->stop(seconds(5));
  Pg(url_).run(
      "UPDATE outbox.parked_key k SET run_seq = p.seq FROM outbox.parked p WHERE p.key = k.key");
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  handlers_.on("send", {.max_running = 1}, [&](std::string_view payload, const TaskRun& run) {
    most = std::max(most.load(), ++now);
    std::this_thread::sleep_for(milliseconds(5));
    --now;
    runs_.add(payload, run);
  });
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 4 && parked().empty(); }));
  EXPECT_EQ(most, 1);
  for (const auto& run : runs_.all()) EXPECT_EQ(run.attempt, 1U);
}

TEST_P(TaskSharingTest, what_was_given_away_waits_while_its_type_is_paused) {
  enqueue("send", {"a"});
  note("another type");
  auto before = start();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 1; }));
  (void)before->stop(seconds(5));
  Pg(url_).run(
      "UPDATE outbox.parked_key k SET run_seq = p.seq FROM outbox.parked p WHERE p.key = k.key");
  const auto catalog = store_->catalog().value();
  const auto rows = catalog->subscriptions().value();
  const auto base = std::find_if(rows.begin(), rows.end(),
                                 [](const auto& row) { return row.spec.name == "task.mail"; });
  ASSERT_NE(base, rows.end());
  const SubscriptionSpec type = event::spec_of_type(base->spec, "send");
  ASSERT_TRUE(catalog->apply(type));
  ASSERT_TRUE(catalog->pause(type.name, "a test"));
  note("send");
  WorkerOptions options = this->options();
  options.heartbeat = milliseconds(100);
  const auto worker = start(options);
  // A worker that is alone claims with each heartbeat.
  Pg pg(url_);
  EXPECT_TRUE(eventually([&] { return pg.value("SELECT count(*) FROM outbox.worker") == "1"; }));
  const std::string first = pg.value("SELECT max(beat) FROM outbox.worker");
  EXPECT_TRUE(eventually(
      [&] { return pg.value("SELECT max(beat) >= 3 + " + first + " FROM outbox.worker") == "t"; }));
  EXPECT_EQ(parked(store::ParkedState::ready).size(), 1U);
  ASSERT_TRUE(catalog->resume(type.name));
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1 && parked().empty(); }));
}

}  // namespace
}  // namespace outbox::test
