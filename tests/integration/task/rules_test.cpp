// Tests, on both stores, what a task says about its own runs: when, how often, how urgent, once at
// a time, and who is told of its end.
#include <filesystem>
#include <optional>

#include "integration/task/rules_fixture.hpp"

namespace outbox::test {
namespace {

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
    events.push_back(to_event(one));
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
  // A task that had begun, or was taken when no other task was known, may run before the others.
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
    const bool first = own.in_transaction([&](auto& tx) {
      const bool once = run.once(tx);
      if (once) (void)tx.enqueue(task("send", "made " + std::string(payload)));
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
  const auto find_error = [&](const std::string& arguments) {
    try {
      return enqueue(arguments);
    } catch (const PgError& error) {
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
  EXPECT_THAT(find_error(", priority => 5"), HasSubstr("priority: must be from 1 to 4"));
  EXPECT_THAT(find_error(", max_attempts => 0"), HasSubstr("max_attempts: must be from 1 to 1000"));
  EXPECT_THAT(find_error(", on_conflict => 'x'"), HasSubstr("on_conflict: 'x' is unknown"));
  EXPECT_THAT(find_error(", on_done => '{}'"), HasSubstr("on_done: is no event"));
  EXPECT_THAT(find_error(", headers => '[]', max_attempts => 2"), HasSubstr("headers"));
  enqueue(", unique_key => 'e', execute_at => now() + interval '1 hour'");
  EXPECT_THAT(find_error(", unique_key => 'e', on_conflict => 'error'"),
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
