// What a task says about its own runs: when, how often, how urgent, once at a time, and who is told of its end. On both stores.
#ifdef OUTBOX_WITH_POSTGRES
#include <libpq-fe.h>

#include <outbox/postgres.hpp>
#endif
#include <sqlite3.h>

#include <filesystem>
#include <optional>
#include <outbox/sqlite.hpp>

#include "integration/task/worker_fixture.hpp"
#include "store/url.hpp"

namespace outbox::test {
namespace {

using std::chrono::hours;

/// Calls `use(box, transaction)` in a transaction of an application, and commits or not.
class Application {
 public:
  explicit Application(const std::string& url) {
    if (url.starts_with("sqlite:")) {
      EXPECT_EQ(sqlite3_open(url.substr(7).c_str(), &file_), SQLITE_OK);
      sqlite3_busy_timeout(file_, 10'000);
      return;
    }
#ifdef OUTBOX_WITH_POSTGRES
    connection_ = PQconnectdb(url.c_str());
    EXPECT_EQ(PQstatus(connection_), CONNECTION_OK);
#endif
  }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  ~Application() {
    sqlite3_close(file_);
#ifdef OUTBOX_WITH_POSTGRES
    PQfinish(connection_);
#endif
  }

  template <class Use>
  auto in_transaction(Use&& use, bool commit = true) {
#ifdef OUTBOX_WITH_POSTGRES
    if (file_ == nullptr) {
      postgres::Transaction tx(connection_);
      const auto result = use(postgres::Outbox(), tx);
      if (commit) tx.commit();
      return result;
    }
#endif
    sqlite::Transaction tx(file_);
    const auto result = use(sqlite::Outbox(), tx);
    if (commit) tx.commit();
    return result;
  }
  EventId enqueue(Task task, bool commit = true) {
    return in_transaction(
        [&](const auto& box, auto& tx) { return enqueue_task(box, tx, std::move(task)); }, commit);
  }

 private:
  sqlite3* file_{nullptr};
#ifdef OUTBOX_WITH_POSTGRES
  PGconn* connection_{nullptr};
#endif
};

class TaskRulesTest : public WorkerTest {
 protected:
  static Task task(const std::string& type, const std::string& payload = "{}") {
    Task task;
    task.queue = "mail";
    task.type = type;
    task.payload = payload;
    task.content_type = "text/plain";
    return task;
  }
  static std::chrono::sys_time<std::chrono::microseconds> in(Duration ahead) {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::microseconds>(ahead));
  }
  /// The handler "tell" of this type of queue "told": what was enqueued at the end of tasks.
  void listen() {
    handlers_.on("told",
                 [this](std::string_view payload, const TaskRun& run) { runs_.add(payload, run); });
  }
  static TaskEvent told(const std::string& key = "told") {
    return {.aggregate_type = "outbox-task:mail", .aggregate_id = key, .event_type = "told"};
  }
};

INSTANTIATE_TEST_SUITE_P(Store, TaskRulesTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(TaskRulesTest, a_scheduled_task_begins_when_its_time_has_come_and_not_before) {
  std::map<std::string, std::chrono::system_clock::time_point> begun;
  std::mutex mutex;
  handlers_.on("send", [&](std::string_view payload, const TaskRun& run) {
    const std::scoped_lock lock(mutex);
    begun[std::string(payload)] = std::chrono::system_clock::now();
    runs_.add(payload, run);
  });
  Application application(url_);
  const auto worker = start();
  Task later = task("send", "later");
  later.execute_at = in(milliseconds(700));
  application.enqueue(later);
  Task never = task("send", "tomorrow");
  never.execute_at = in(hours(24));
  application.enqueue(never);
  Task past = task("send", "past");
  past.execute_at = in(-hours(24));
  application.enqueue(past);
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2; }));
  const std::scoped_lock lock(mutex);
  EXPECT_GE(begun["later"], *later.execute_at);
  EXPECT_LT(begun["past"], begun["later"]) << "it does not wait for what is scheduled";
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 1; }));
  EXPECT_EQ(parked().front().attempts, 0U);
}

TEST_P(TaskRulesTest, many_scheduled_tasks_that_are_due_at_once_are_all_done_once) {
  constexpr std::size_t kTasks = 20'000;
  std::vector<std::atomic<int>> runs(kTasks);
  std::atomic<std::size_t> all{0};
  handlers_.on("send", [&](std::string_view payload, const TaskRun&) {
    ++runs[std::stoul(std::string(payload))];
    ++all;
  });
  const auto first = start();
  const auto second = start();
  std::vector<Event> events;
  const auto due = in(seconds(3));
  for (std::size_t i = 0; i < kTasks; ++i) {
    Task one = task("send", std::to_string(i));
    one.execute_at = due;
    if (i % 10 == 0) one.key = "k" + std::to_string(i % 500);
    events.push_back(event_of(one));
  }
  ASSERT_TRUE(store_->writer().value()->write(events));
  EXPECT_TRUE(eventually([&] { return all == kTasks && all_is_done(); }));
  EXPECT_EQ(all, kTasks);
  EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), static_cast<std::ptrdiff_t>(kTasks));
  expect_sound_ledger("task.mail");
}

TEST_P(TaskRulesTest, a_task_may_have_attempts_of_its_own) {
  handlers_.on("fails", [&](std::string_view payload, const TaskRun& run) {
    runs_.add(payload, run);
    return TaskEnd::failed("never");
  });
  Application application(url_);
  Task one = task("fails", "one");
  one.max_attempts = 1;
  Task five = task("fails", "five");
  five.max_attempts = 5;
  application.enqueue(one);
  application.enqueue(five);
  application.enqueue(task("fails", "usual"));
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::dead).size() == 3; }));
  std::map<std::string, int> count;
  for (const auto& run : runs_.all()) ++count[run.payload];
  EXPECT_EQ(count, (std::map<std::string, int>{{"one", 1}, {"five", 5}, {"usual", 3}}));
}

TEST_P(TaskRulesTest, what_is_urgent_does_not_wait_behind_a_backlog) {
  std::atomic<bool> opened{false};
  handlers_.on("send", [&](std::string_view payload, const TaskRun& run) {
    while (!opened) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(30));
    runs_.add(payload, run);
  });
  Application application(url_);
  for (std::size_t priority : {4, 3, 2, 1}) {
    for (int i = 0; i < 20; ++i) {
      Task one = task("send", std::to_string(priority));
      one.priority = priority;
      application.enqueue(one);
    }
  }
  WorkerOptions one = options();
  one.threads = 1;
  const auto worker = start(one);
  EXPECT_TRUE(eventually([&] {
    const auto all = worker->report().subscriptions;
    return all.size() == 4 && std::all_of(all.begin(), all.end(),
                                          [](const auto& loop) { return loop.in_window >= 19; });
  })) << "each priority has read its tasks";
  opened = true;
  EXPECT_TRUE(eventually([&] { return runs_.count() == 80 && all_is_done(); }));
  // One that had begun, or was taken when nothing else was known, may be before the others.
  int out_of_order = 0;
  std::string last = "1";
  for (const auto& run : runs_.all()) {
    if (run.payload < last) ++out_of_order;
    last = run.payload;
  }
  EXPECT_LE(out_of_order, 4);
  for (const char* const name : {"task.mail", "task1.mail", "task3.mail", "task4.mail"})
    expect_sound_ledger(name);
}

TEST_P(TaskRulesTest, one_task_with_a_unique_key_is_there_at_a_time) {
  Gate gate(*this);
  Application application(url_);
  Task unique = task("slow", "first");
  unique.unique_key = "month";
  const EventId first = application.enqueue(unique);
  unique.payload = "second";
  EXPECT_EQ(application.enqueue(unique), first) << "skip";
  unique.on_conflict = OnConflict::error;
  EXPECT_THROW(application.enqueue(unique), Exception);
  Task other = unique;
  other.queue = "other";
  EXPECT_NE(application.enqueue(other), first) << "another queue";
  other = unique;
  other.unique_key = "year";
  other.payload = "undone";
  application.enqueue(other, false);
  other.payload = "year";
  application.enqueue(other);

  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 2; }));
  unique.on_conflict = OnConflict::skip;
  EXPECT_EQ(application.enqueue(unique), first) << "it runs";
  gate.open();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2 && all_is_done(); }));
  unique.payload = "third";
  EXPECT_NE(application.enqueue(unique), first) << "it has ended";
  EXPECT_TRUE(eventually([&] { return runs_.count() == 3 && all_is_done(); }));
  std::multiset<std::string> done;
  for (const auto& run : runs_.all()) done.insert(run.payload);
  EXPECT_EQ(done, (std::multiset<std::string>{"first", "third", "year"}));
}

TEST_P(TaskRulesTest, a_newer_task_replaces_one_that_has_not_begun) {
  Gate gate(*this);
  note("send");
  Application application(url_);
  Task unique = task("send", "old");
  unique.unique_key = "search-index";
  unique.on_conflict = OnConflict::replace;
  application.enqueue(unique);
  unique.payload = "new";
  application.enqueue(unique);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1 && all_is_done(); }));
  EXPECT_EQ(runs_.all().front().payload, "new");

  unique.type = "slow";
  unique.payload = "runs";
  application.enqueue(unique);
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  unique.payload = "after";
  application.enqueue(unique);
  const auto waits = [&] {
    const auto rows = parked(store::ParkedState::retrying);
    return rows.size() == 1 && rows.front().error.find("still runs") != std::string::npos;
  };
  EXPECT_TRUE(eventually(waits)) << "not two at a time";
  EXPECT_EQ(gate.begun, 1);
  EXPECT_EQ(parked(store::ParkedState::retrying).front().attempts, 0U);
  gate.open();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 3 && all_is_done(); }))
      << "what runs is not cancelled, and what came later is done, too";
  unique.payload = "next";
  application.enqueue(unique);
  EXPECT_TRUE(eventually([&] { return runs_.count() == 4 && all_is_done(); })) << "the key is free";
}

TEST_P(TaskRulesTest, what_replaces_a_task_that_failed_does_not_wait_for_its_retry) {
  std::atomic<bool> waits{true};
  handlers_.on("fails", [&](std::string_view payload, const TaskRun& run) {
    while (waits && !run.stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    runs_.add(payload, run);
    return payload == "old" ? TaskEnd::retry_after(hours(1), "no") : TaskEnd::done();
  });
  Application application(url_);
  Task unique = task("fails", "old");
  unique.unique_key = "k";
  unique.on_conflict = OnConflict::replace;
  const EventId old = application.enqueue(unique);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  unique.payload = "new";
  application.enqueue(unique);
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 1; }));
  waits = false;
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2; })) << "it waits for the run only";
  ASSERT_TRUE(eventually([&] { return parked().size() == 1; }));
  const auto row = parked().front();
  EXPECT_EQ(row.id, old);
  EXPECT_TRUE(
      store_->parked_events().value()->retry(row.subscription, std::vector{row.seq}, false));
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(runs_.count(), 2U) << "what is newer is done: it does not run again";
}

TEST_P(TaskRulesTest, a_replacement_that_is_cancelled_leaves_the_key_to_the_one_that_runs) {
  Gate gate(*this);
  Application application(url_);
  Task unique = task("slow", "runs");
  unique.unique_key = "k";
  unique.on_conflict = OnConflict::replace;
  const EventId running = application.enqueue(unique);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  application.enqueue(unique);
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 1; }));
  const auto waiting = parked(store::ParkedState::retrying).front();
  EXPECT_TRUE(store_->parked_events().value()->discard(waiting.subscription,
                                                       std::vector{waiting.seq}, "ann", ""));
  unique.on_conflict = OnConflict::skip;
  EXPECT_EQ(application.enqueue(unique), running);
  gate.open();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1 && all_is_done(); }));
  EXPECT_NE(application.enqueue(unique), running);
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2 && all_is_done(); }));
}

#ifdef OUTBOX_WITH_POSTGRES
/// An application that has locked a unique key, in a transaction that stays open.
class UniqueKeyIsLocked : public TaskRulesTest {
 protected:
  /// enqueue_task(): a task of this type, with the unique key.
  static std::string sql(const std::string& type, const std::string& on_conflict) {
    return "SELECT outbox.enqueue_task('mail', '" + type +
           "', '{}', unique_key => 'k', on_conflict => '" + on_conflict + "')";
  }
};

INSTANTIATE_TEST_SUITE_P(Store, UniqueKeyIsLocked, ::testing::Values(true),
                         [](const auto&) { return "Postgres"; });

TEST_P(UniqueKeyIsLocked, the_ends_of_tasks_do_not_wait_for_it) {
  Gate gate(*this);
  for (const bool commits : {false, true}) {
    Pg application(url_);
    const std::string first = application.value(sql("slow", "skip"));
    enqueue("slow", {"ordinary"});
    const auto worker = start();
    EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 2; }));
    application.run("BEGIN");
    const std::string second = application.value(sql("slow", "replace"));
    gate.open();
    EXPECT_TRUE(eventually([&] { return parked().empty(); })) << "both ends are written";
    application.run(commits ? "COMMIT" : "ROLLBACK");
    const std::string next = application.value(sql("slow", "skip"));
    EXPECT_NE(next, first) << "the key is free";
    if (!commits) {
      EXPECT_NE(next, second);
    }
    EXPECT_TRUE(eventually([&] { return all_is_done(); }));
    EXPECT_TRUE(eventually([&] {
      return application.value("SELECT count(*) FROM outbox.task_unique") == "0" &&
             application.value("SELECT count(*) FROM outbox.task_released") == "0";
    }));
    gate.opened = false;
  }
}

TEST_P(UniqueKeyIsLocked, a_task_that_dies_stops_no_others) {
  std::atomic<bool> waits{true};
  std::atomic<bool> begun{false};
  handlers_.on("fails", [&](std::string_view, const TaskRun& run) {
    begun = true;
    while (waits && !run.stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    return TaskEnd::dead("no");
  });
  note("send");
  Pg application(url_);
  WorkerOptions options = this->options();
  options.row_after = minutes(1);  // The relay writes its end.
  const auto worker = start(options);
  (void)application.value(sql("fails", "skip"));
  EXPECT_TRUE(eventually([&] { return begun.load(); }));
  application.run("BEGIN");
  (void)application.value(sql("send", "replace"));
  waits = false;
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::dead).size() == 1; }));
  enqueue("send", {"other"});
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1; }));
  application.run("COMMIT");
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2; })) << "it begins";
}

TEST_P(UniqueKeyIsLocked, a_worker_that_would_begin_one_stays_alive) {
  Gate gate(*this);
  std::atomic<bool> fails{true};
  handlers_.on("fails", [&](std::string_view payload, const TaskRun& run) {
    if (fails) return TaskEnd::dead("no");
    runs_.add(payload, run);
    return TaskEnd::done();
  });
  Pg application(url_);
  WorkerOptions options = this->options();
  options.heartbeat = milliseconds(100);
  const auto worker = start(options);
  (void)application.value(sql("fails", "skip"));
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::dead).size() == 1; }));
  fails = false;
  application.run("BEGIN");
  (void)application.value(sql("fails", "skip"));
  const auto dead = parked().front();
  EXPECT_TRUE(
      store_->parked_events().value()->retry(dead.subscription, std::vector{dead.seq}, false));
  enqueue("slow", {"ordinary"});
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  gate.open();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1; }));
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).empty(); }));
  Pg sql(url_);
  const auto beat = [&] { return std::stoll(sql.value("SELECT beat FROM outbox.worker")); };
  const auto before = beat();
  EXPECT_TRUE(eventually([&] { return beat() > before + 3; }));
  application.run("ROLLBACK");
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2 && all_is_done(); }));
}
#endif

TEST_P(TaskRulesTest, a_dead_task_gives_up_its_unique_key_and_may_run_again) {
  std::atomic<bool> fails{true};
  handlers_.on("fails", [&](std::string_view payload, const TaskRun& run) {
    runs_.add(payload, run);
    return fails ? TaskEnd::dead("no") : TaskEnd::done();
  });
  Application application(url_);
  Task unique = task("fails", "first");
  unique.unique_key = "k";
  const EventId first = application.enqueue(unique);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::dead).size() == 1; }));
  fails = false;
  unique.payload = "second";
  EXPECT_NE(application.enqueue(unique), first);
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2; }));
  const auto row = parked().front();
  EXPECT_TRUE(
      store_->parked_events().value()->retry(row.subscription, std::vector{row.seq}, false));
  EXPECT_TRUE(eventually([&] { return runs_.count() == 3 && all_is_done(); }));
}

/// As if its worker had died before the relay knew of its end.
TEST_P(TaskRulesTest, a_unique_task_that_was_done_stays_so_when_another_one_has_its_key) {
  note("send");
  Application application(url_);
  Task unique = task("send", "first");
  unique.unique_key = "k";
  const EventId first = application.enqueue(unique);
  ASSERT_TRUE(store_->task_runs().value()->end(
      {}, std::vector{store::TaskFinish{.id = first, .unique_key = "k"}}));
  unique.payload = "second";
  const EventId second = application.enqueue(unique);
  EXPECT_NE(second, first);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1 && all_is_done(); }));
  EXPECT_EQ(runs_.all().front().payload, "second");
  for (const EventId& id : {first, second}) {
    const auto status = application.in_transaction(
        [&](const auto& box, auto& tx) { return task_status(box, tx, id); });
    ASSERT_TRUE(status);
    EXPECT_EQ(status->state, TaskState::completed) << status->error;
  }
}

/// A worker that could not write for a while has two: the relay had the task run again meanwhile.
TEST_P(TaskRulesTest, of_two_ends_at_once_the_first_counts_and_tells) {
  listen();
  store::TaskFinish first{.id = EventId::generate(),
                          .result = "1",
                          .event = Event{.aggregate_type = "outbox-task:mail",
                                         .aggregate_id = "told",
                                         .event_type = "told",
                                         .payload = "first"}};
  store::TaskFinish second = first;
  second.result = "2";
  second.event->payload = "second";
  ASSERT_TRUE(store_->task_runs().value()->end({}, std::vector{first, second}));
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1 && all_is_done(); }));
  EXPECT_EQ(runs_.all().front().payload, "first");
}

TEST_P(TaskRulesTest, the_end_of_a_former_run_does_not_count_beside_that_of_the_new_one) {
  Gate gate(*this);
  Application application(url_);
  Task unique = task("slow");
  unique.unique_key = "k";
  const EventId id = application.enqueue(unique);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  const auto runs = store_->task_runs().value();
  const std::vector<std::string> subscriptions{"task.mail"};
  const auto owner = runs->others(EventId{}, subscriptions).value().at(0).id;
  const auto run = runs->runs_of(owner, subscriptions, 10).value().at(0);
  store::TaskRunEnd former;
  former.token = run.token - 1;
  former.result.subscription = run.subscription;
  former.result.seq = run.seq;
  former.result.id = id;
  former.result.worker = owner;
  former.finish = store::TaskFinish{.id = id, .result = "made", .unique_key = "k"};
  store::TaskRunEnd now = former;
  now.token = run.token;
  now.finish.reset();
  now.result.state = store::ParkedState::retrying;
  now.result.due_in = hours(1);
  ASSERT_TRUE(runs->end(std::vector{former, now}, {}));
  EXPECT_EQ(parked(store::ParkedState::retrying).size(), 1U);
  EXPECT_EQ(application.enqueue(unique), id) << "it still has its key";
  gate.open();
}

TEST_P(TaskRulesTest, a_corrected_copy_of_a_unique_task_is_done) {
  handlers_.on("send", [&](std::string_view payload, const TaskRun& run) {
    runs_.add(payload, run);
    return payload == "wrong" ? TaskEnd::retry_after(hours(1), "no such month") : TaskEnd::done();
  });
  Application application(url_);
  Task unique = task("send", "wrong");
  unique.unique_key = "k";
  application.enqueue(unique);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 1; }));
  const auto people = store_->parked_events().value();
  const auto row = people->list({}, 1, true).value().front();
  ASSERT_TRUE(people->edit({.subscription = row.subscription,
                            .seq = row.seq,
                            .id = row.id,
                            .new_id = EventId::generate(),
                            .event_type = row.event_type,
                            .payload = "right",
                            .content_type = row.content_type,
                            .headers = row.headers,
                            .actor = "test",
                            .reason = "a typing error"}));
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2 && all_is_done(); }, seconds(20)));
  EXPECT_EQ(runs_.all().back().payload, "right");
}

TEST_P(TaskRulesTest, who_asked_is_told_of_the_end_in_its_transaction) {
  listen();
  handlers_.on("done",
               [](std::string_view, const TaskRun&) { return TaskEnd::done("{\"n\": 1}"); });
  handlers_.on("plain", [](std::string_view, const TaskRun&) { return TaskEnd::done("a \"b\""); });
  handlers_.on("dead", [](std::string_view, const TaskRun&) { return TaskEnd::dead("no paper"); });
  Gate gate(*this);
  Application application(url_);
  std::map<std::string, EventId> ids;
  for (const char* const type : {"done", "plain", "dead", "slow"}) {
    Task one = task(type);
    one.key = "k";
    one.on_done = told();
    one.on_dead = told();
    ids[type] = application.enqueue(one);
  }
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.payloads("told").size() == 3; }));
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  gate.open();
  EXPECT_TRUE(eventually([&] { return runs_.payloads("told").size() == 4; }));
  const std::vector<std::string> payloads = runs_.payloads("told");
  const auto expect = [&](const std::string& type, const std::string& rest) {
    const std::string whole = R"({"task":")" + ids[type].str() + R"(","queue":"mail","type":")" +
                              type + R"(","key":"k","attempts":1)" + rest + "}";
    const auto plain = [](std::string text) {
      std::erase(text, ' ');
      return text;
    };
    EXPECT_TRUE(std::any_of(payloads.begin(), payloads.end(),
                            [&](const auto& one) { return plain(one) == plain(whole); }))
        << whole << " is not in " << ::testing::PrintToString(payloads);
  };
  expect("done", R"(,"result":{"n": 1})");
  expect("plain", R"(,"result":"a \"b\"")");
  expect("dead", R"(,"error":"no paper")");
  expect("slow", "");
}

TEST_P(TaskRulesTest, an_effect_in_the_transaction_of_the_inbox_happens_once) {
  std::atomic<int> effects{0};
  handlers_.on("make", [&](std::string_view payload, const TaskRun& run) {
    Application own(url_);
    const bool first = own.in_transaction([&](const auto& box, auto& tx) {
      const bool once = run.once(box, tx);
      if (once) (void)enqueue_task(box, tx, task("send", "made " + std::string(payload)));
      return once;
    });
    if (first) ++effects;
    runs_.add(payload, run);
    return run.attempt < 3 ? TaskEnd::failed("after its commit") : TaskEnd::done();
  });
  note("send");
  const auto worker = start();
  Application application(url_);
  application.enqueue(task("make", "x"));
  EXPECT_TRUE(eventually([&] { return runs_.count() == 4 && all_is_done(); }));
  EXPECT_EQ(effects, 1);
}

TEST_P(TaskRulesTest, a_handler_cancels_its_task) {
  handlers_.on("send", [&](std::string_view payload, const TaskRun& run) {
    runs_.add(payload, run);
    return TaskEnd::cancelled("the customer has left");
  });
  Application application(url_);
  const EventId id = application.enqueue(task("send"));
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1 && all_is_done(); }));
#ifdef OUTBOX_WITH_POSTGRES
  if (!GetParam()) return;
  Pg sql(url_);
  EXPECT_EQ(sql.value("SELECT state || ' ' || error FROM outbox.task_status('" + id.str() + "')"),
            "cancelled the customer has left");
#endif
}

#ifdef OUTBOX_WITH_POSTGRES
TEST_P(TaskRulesTest, sql_says_and_shows_all_of_it) {
  if (!GetParam()) GTEST_SKIP() << "SQLite has no functions of ours: needs PostgreSQL";
  Pg sql(url_);
  handlers_.on("report", [](std::string_view, const TaskRun&) { return TaskEnd::done("7 pages"); });
  listen();
  const auto enqueue = [&](const std::string& arguments) {
    return sql.value("SELECT outbox.enqueue_task('mail', 'report', '{}'::jsonb" + arguments + ")");
  };
  const auto error_of = [&](const std::string& arguments) {
    try {
      return enqueue(arguments);
    } catch (const testkit::PgError& error) {
      return std::string(error.what());
    }
  };
  const auto status = [&](const std::string& id, const std::string& columns) {
    return sql.value("SELECT concat_ws(' ', " + columns + ") FROM outbox.task_status('" + id +
                     "')");
  };
  const std::string later = enqueue(", execute_at => now() + interval '1 hour', priority => 3");
  EXPECT_EQ(status(later, "state, priority, next_attempt_at > now()"), "scheduled 3 t");
  const std::string unique = enqueue(", unique_key => 'u'");
  EXPECT_EQ(enqueue(", unique_key => 'u'"), unique);
  EXPECT_NE(enqueue(", unique_key => 'u', on_conflict => 'replace'"), unique);
  const std::string told =
      enqueue(R"(, on_done => '{"aggregate_type": "outbox-task:mail", "event_type": "told"}')");
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1; }));
  EXPECT_TRUE(eventually([&] {
    return status(told, "state, convert_from(result, 'UTF8')") == "completed 7 pages";
  })) << status(told, "state, result");
  EXPECT_TRUE(eventually([&] { return status(later, "state, attempts") == "scheduled 0"; }));
  EXPECT_TRUE(eventually([&] {
    return status(unique, "state, error") ==
           "cancelled a newer task with its unique key took its place";
  })) << status(unique, "state, error");

  using ::testing::HasSubstr;
  EXPECT_THAT(error_of(", priority => 5"), HasSubstr("priority: must be from 1 to 4"));
  EXPECT_THAT(error_of(", max_attempts => 0"), HasSubstr("max_attempts: must be from 1 to 1000"));
  EXPECT_THAT(error_of(", on_conflict => 'x'"), HasSubstr("on_conflict: 'x' is unknown"));
  EXPECT_THAT(error_of(", on_done => '{}'"), HasSubstr("on_done: is no event"));
  EXPECT_THAT(error_of(", headers => '[]', max_attempts => 2"), HasSubstr("headers"));
  enqueue(", unique_key => 'e', execute_at => now() + interval '1 hour'");
  EXPECT_THAT(error_of(", unique_key => 'e', on_conflict => 'error'"),
              HasSubstr("unique_key: task "));
  EXPECT_EQ(
      sql.value(
          "SELECT outbox.receive('billing', 'm1')::text || outbox.receive('billing', 'm1')::text"),
      "truefalse");
}
#endif

TEST_P(TaskRulesTest, wrong_rules_are_refused_with_the_field) {
  Application application(url_);
  const auto complaint = [&](Task wrong) {
    try {
      application.enqueue(std::move(wrong));
    } catch (const Exception& refused) {
      return refused.error().message;
    }
    return std::string();
  };
  Task wrong = task("send");
  wrong.priority = 5;
  EXPECT_EQ(complaint(wrong), "priority: must be from 1 to 4");
  wrong = task("send");
  wrong.max_attempts = 0;
  EXPECT_EQ(complaint(wrong), "max_attempts: must be from 1 to 1000");
  wrong = task("send");
  wrong.on_done = TaskEvent{.aggregate_type = "", .event_type = "x"};
  EXPECT_THAT(complaint(wrong), ::testing::HasSubstr("on_done"));
  wrong = task("send");
  wrong.unique_key = std::string(300, 'x');
  EXPECT_THAT(complaint(wrong), ::testing::HasSubstr("unique_key"));
}

}  // namespace
}  // namespace outbox::test
