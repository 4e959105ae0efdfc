// Tests, on both stores, types of tasks that have a subscription of their own because they have a
// limit or were paused.
#include <outbox/task.hpp>

#include "event/task_queue.hpp"
#include "integration/task/worker_fixture.hpp"
#include "store/tasks.hpp"
#include "verify/verify.hpp"

namespace outbox::test {
namespace {

class TaskLimitTest : public WorkerTest {
 protected:
  void pause(const std::string& type) const {
    const auto catalog = store_->catalog().value();
    const auto rows = catalog->subscriptions().value();
    for (const auto& row : rows) {
      if (!event::is_of_queue(row.spec) || event::is_of_type(row.spec)) continue;
      const SubscriptionSpec spec = event::spec_of_type(row.spec, type);
      ASSERT_TRUE(catalog->apply(spec));
      ASSERT_TRUE(catalog->pause(spec.name, "a test"));
    }
  }
  void resume(const std::string& type) const {
    const auto catalog = store_->catalog().value();
    const auto rows = catalog->subscriptions().value();
    for (const auto& row : rows) {
      if (!event::is_of_type(row.spec) || row.spec.event_types.front() != type) continue;
      ASSERT_TRUE(catalog->resume(row.spec.name));
    }
  }
  /// Whether each subscription of the type has its first cursors.
  [[nodiscard]] bool has_begun(const std::string& type) const {
    const auto catalog = store_->catalog().value();
    const auto rows = catalog->subscriptions().value();
    return std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
      return !event::is_of_type(row.spec) || row.spec.event_types.front() != type ||
             store_->progress().value()->load(row.id, store::kAllLanes).has_value();
    });
  }
  [[nodiscard]] std::map<std::string, std::size_t> runs_of_payloads() const {
    std::map<std::string, std::size_t> counted;
    for (const auto& run : runs_.all()) ++counted[run.payload];
    return counted;
  }
  void expect_that_the_ledgers_hold() const {
    const auto rows = store_->catalog().value()->subscriptions().value();
    for (const auto& row : rows) {
      const auto reader = store_->ledger_reader().value();
      const auto found = verify::verify(*reader, row.id);
      ASSERT_TRUE(found) << row.spec.name << ": " << found.error().text();
      EXPECT_TRUE(found->ok()) << row.spec.name << ": " << found->ledger.fault_count;
    }
  }
  [[nodiscard]] TaskState read_state(const EventId& id) const {
    return store_->task_queues().value()->task(id).value().value().state;
  }
  EventId enqueue_one(const std::string& type, const std::string& payload) const {
    const Event event =
        to_event({.queue = "mail", .type = type, .payload = payload, .content_type = "text/plain"});
    return store_->writer().value()->write({&event, 1}).value().front();
  }
  static std::vector<std::string> numbered(const std::string& word, int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back(word + std::to_string(i));
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Store, TaskLimitTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(TaskLimitTest, a_type_at_its_limit_holds_up_no_other) {
  std::atomic<bool> open{false};
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  handlers_.on("slow", {.max_running = 2}, [&](std::string_view payload, const TaskRun& run) {
    most = std::max(most.load(), ++now);
    while (!open && !run.stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    --now;
    runs_.add(payload, run);
  });
  note("quick");
  enqueue("slow", numbered("s", 100));
  enqueue("quick", numbered("q", 1000));
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1000; }));
  EXPECT_TRUE(eventually([&] { return now == 2; }));
  EXPECT_LE(parked().size(), 2U) << "what cannot begin waits in the log";
  open = true;
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1100 && all_is_done(); }));
  EXPECT_EQ(most, 2);
  for (const auto& [payload, runs] : runs_of_payloads()) EXPECT_EQ(runs, 1U) << payload;
  expect_that_the_ledgers_hold();
}

TEST_P(TaskLimitTest, a_limit_holds_for_all_priorities_of_a_type) {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  handlers_.on("one", {.max_running = 1}, [&](std::string_view payload, const TaskRun& run) {
    most = std::max(most.load(), ++now);
    std::this_thread::sleep_for(milliseconds(1));
    --now;
    runs_.add(payload, run);
  });
  std::vector<Event> events;
  for (std::size_t i = 0; i < 80; ++i) {
    Task task;
    task.queue = "mail";
    task.type = "one";
    task.payload = std::to_string(i);
    task.content_type = "text/plain";
    task.priority = i % 4 + 1;
    events.push_back(to_event(std::move(task)));
  }
  ASSERT_TRUE(store_->writer().value()->write(events));
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 80 && all_is_done(); }));
  EXPECT_EQ(most, 1);
}

TEST_P(TaskLimitTest, a_limit_that_comes_later_neither_loses_nor_repeats_a_task) {
  note("send");
  note("print");
  enqueue("send", numbered("s", 50));
  enqueue("print", numbered("p", 50));
  auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 100; }));
  EXPECT_TRUE(worker->stop(seconds(10)).drained);
  const EventId late = enqueue_one("print", "late");
  enqueue("send", numbered("s2-", 50));
  enqueue("print", numbered("p2-", 50));
  EXPECT_EQ(read_state(late), TaskState::pending);
  handlers_.on("print", {.max_running = 1},
               [this](std::string_view payload, const TaskRun& run) { runs_.add(payload, run); });
  worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 201 && all_is_done(); }));
  EXPECT_EQ(read_state(late), TaskState::completed);
  EXPECT_TRUE(worker->stop(seconds(10)).drained);
  // A worker that knows no limit leaves the type where it is.
  note("print");
  enqueue("print", numbered("p3-", 50));
  worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 251 && all_is_done(); }));
  for (const auto& [payload, runs] : runs_of_payloads()) EXPECT_EQ(runs, 1U) << payload;
  expect_that_the_ledgers_hold();
}

TEST_P(TaskLimitTest, a_type_is_paused_and_resumed_while_workers_run) {
  for (const char* type : {"a", "b"}) note(type);
  std::vector<std::unique_ptr<Worker>> workers;
  workers.push_back(start());
  if (GetParam()) workers.push_back(start());
  std::atomic<bool> paused{false};
  std::atomic<int> written{0};
  std::jthread writer([&] {
    for (int i = 0; i < 200 || !paused; ++i) {
      enqueue("a", numbered("a" + std::to_string(i) + "-", 5), "k" + std::to_string(i % 7));
      enqueue("b", numbered("b" + std::to_string(i) + "-", 5), "l" + std::to_string(i % 7));
      written += 10;
      std::this_thread::sleep_for(milliseconds(2));
    }
  });
  EXPECT_TRUE(eventually([&] { return runs_.count() > 50; }));
  pause("a");
  EXPECT_TRUE(eventually([&] { return has_begun("a"); }));
  const EventId waits = enqueue_one("a", "waits");
  ++written;
  paused = true;
  writer.join();
  const auto of_type = [&](char type) {
    const auto all = runs_.all();
    return std::count_if(all.begin(), all.end(),
                         [&](const auto& run) { return run.payload.front() == type; });
  };
  EXPECT_TRUE(eventually([&] { return of_type('b') == (written - 1) / 2; }));
  EXPECT_LT(of_type('a'), (written - 1) / 2) << "it was paused before the last ones were written";
  EXPECT_EQ(read_state(waits), TaskState::pending);
  const auto before = of_type('a');
  enqueue("a", {"a-last"});
  enqueue("b", {"b-last"});
  written += 2;
  EXPECT_TRUE(eventually([&] { return !runs_.payloads("").empty(); }));
  EXPECT_EQ(of_type('a'), before);
  resume("a");
  EXPECT_TRUE(eventually([&] { return runs_.count() == static_cast<std::size_t>(written); }));
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(read_state(waits), TaskState::completed);
  for (const auto& [payload, runs] : runs_of_payloads()) EXPECT_EQ(runs, 1U) << payload;
  expect_that_the_ledgers_hold();
}

TEST_P(TaskLimitTest, what_had_a_row_before_its_type_was_paused_waits_too) {
  std::atomic<bool> fails{true};
  std::atomic<int> runs{0};
  handlers_.on("fail",
               {.delays = {std::chrono::milliseconds(100), std::chrono::milliseconds(100),
                           std::chrono::milliseconds(100), std::chrono::milliseconds(100),
                           std::chrono::hours(1)}},
               [&](std::string_view, const TaskRun&) {
                 ++runs;
                 return fails ? TaskEnd::retry_after(milliseconds(300), "not yet")
                              : TaskEnd::done();
               });
  enqueue("fail", {"x"});
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return parked().size() == 1; }));
  pause("fail");
  EXPECT_TRUE(eventually([&] {
    const auto rows = parked();
    return rows.size() == 1 && rows.front().error.find("its type is paused") != std::string::npos;
  }));
  const int before = runs;
  fails = false;
  resume("fail");
  const auto row = parked().front();
  ASSERT_TRUE(store_->parked_events().value()->retry(row.subscription, {&row.seq, 1}, false));
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(runs, before + 1);
}

TEST_P(TaskLimitTest, a_wrong_limit_is_refused) {
  handlers_.on("send", {.rate = {1, std::chrono::seconds(2)}},
               [](std::string_view, const TaskRun&) {});
  auto worker = Worker::create(options(), handlers_);
  ASSERT_FALSE(worker);
  EXPECT_NE(worker.error().text().find("send: the rate has another period"), std::string::npos)
      << worker.error().text();
  Handlers others;
  others.on("send*", {.max_running = 1}, [](std::string_view, const TaskRun&) {});
  worker = Worker::create(options(), others);
  ASSERT_FALSE(worker);
  EXPECT_NE(worker.error().text().find("send*"), std::string::npos) << worker.error().text();
}

}  // namespace
}  // namespace outbox::test
