// Tests workers on both stores. Each task is done, in the order of its key, and a task that fails
// or takes long holds nothing else up.
#include <future>

#include "integration/task/worker_fixture.hpp"

namespace outbox::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Store, WorkerTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(WorkerTest, each_task_is_done_once_in_the_order_of_its_key) {
  note("send");
  std::map<std::string, std::vector<std::string>> expected;
  for (int i = 0; i < 40; ++i) {
    for (const std::string key : {"a", "b", "c", ""}) {
      expected[key].push_back(std::to_string(i));
      enqueue("send", {expected[key].back()}, key);
    }
  }
  write("k", {"an event, which no worker sees"});
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 160; }));
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_TRUE(worker->stop(seconds(10)).drained);
  EXPECT_EQ(runs_.count(), 160U);
  for (const std::string key : {"a", "b", "c"}) EXPECT_EQ(runs_.payloads(key), expected[key]);
  expect_sound_ledger("task.mail");
}

TEST_P(WorkerTest, workers_share_a_queue) {
  note("send");
  const auto one = start();
  const auto other = start();
  for (int i = 0; i < 200; ++i) enqueue("send", {std::to_string(i)}, "k" + std::to_string(i % 20));
  EXPECT_TRUE(eventually([&] { return runs_.count() >= 200; }));
  EXPECT_TRUE(one->stop(seconds(10)).drained);
  EXPECT_TRUE(other->stop(seconds(10)).drained);
  EXPECT_EQ(runs_.count(), 200U);
}

TEST_P(WorkerTest,
       a_task_that_fails_runs_again_while_others_go_on_and_what_waits_behind_it_follows) {
  note("send");
  handlers_.on("fails", [&](std::string_view payload, const TaskRun& run) {
    runs_.add(payload, run);
    return run.attempt < 3 ? TaskEnd::failed("not yet") : TaskEnd::done();
  });
  const auto worker = start();
  enqueue("fails", {"first"}, "a");
  enqueue("send", {"second"}, "a");
  enqueue("send", {"other"}, "b");
  EXPECT_TRUE(eventually([&] { return runs_.payloads("a").size() == 4; }));
  const std::vector<std::string> expected{"first", "first", "first", "second"};
  EXPECT_EQ(runs_.payloads("a"), expected);
  EXPECT_EQ(runs_.payloads("b"), std::vector<std::string>{"other"});
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
}

TEST_P(WorkerTest, one_that_cannot_succeed_is_dead_with_its_reason) {
  note("send");
  handlers_.on("fails", [&](std::string_view payload, const TaskRun& run) {
    runs_.add(payload, run);
    return TaskEnd::failed("never " + std::to_string(run.attempt));
  });
  handlers_.on("dead", [&](std::string_view payload, const TaskRun& run) {
    runs_.add(payload, run);
    return TaskEnd::dead("cannot be read");
  });
  const auto worker = start();
  enqueue("fails", {"x"}, "a");
  enqueue("dead", {"y"}, "b");
  enqueue("send", {"z"}, "b");
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::dead).size() == 2; }));
  EXPECT_EQ(runs_.payloads("a").size(), 3U) << "two delays are two retries";
  const std::vector<std::string> of_b{"y", "z"};
  EXPECT_TRUE(eventually([&] { return runs_.payloads("b") == of_b; }));
  std::set<std::string> reasons;
  for (const auto& row : parked(store::ParkedState::dead)) reasons.insert(row.error);
  EXPECT_EQ(reasons, (std::set<std::string>{"cannot be read", "never 3"}));
}

TEST_P(WorkerTest, slow_tasks_have_rows_and_hold_nothing_else_up) {
  std::atomic<bool> released{false};
  note("send");
  handlers_.on("slow", [&](std::string_view payload, const TaskRun& run) {
    while (!released) std::this_thread::sleep_for(milliseconds(1));
    runs_.add(payload, run);
  });
  const auto worker = start();
  enqueue("slow", {"1", "2", "3"});
  EXPECT_TRUE(eventually([&] {
    enqueue("send", {"quick"});
    return parked(store::ParkedState::running).size() == 3;
  }));
  EXPECT_TRUE(eventually([&] {
    const auto catalog = store_->catalog().value();
    const auto rows = catalog->subscriptions().value();
    return std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
      return catalog->progress(row, 1).value().pending == 0;
    });
  })) << "the cursor goes on";
  released = true;
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  std::multiset<std::string> slow;
  for (const auto& run : runs_.all()) {
    if (run.payload != "quick") slow.insert(run.payload + " " + std::to_string(run.attempt));
  }
  EXPECT_EQ(slow, (std::multiset<std::string>{"1 1", "2 1", "3 1"})) << "each ran once";
  EXPECT_TRUE(worker->stop(seconds(10)).drained);
  expect_sound_ledger("task.mail");
}

TEST_P(WorkerTest, only_slow_tasks_pause_nothing) {
  std::atomic<int> running{0};
  std::atomic<bool> released{false};
  handlers_.on("slow", [&](std::string_view payload, const TaskRun& run) {
    ++running;
    while (!released) std::this_thread::sleep_for(milliseconds(1));
    runs_.add(payload, run);
  });
  const auto worker = start();
  enqueue("slow", {"1", "2", "3", "4", "5", "6", "7", "8"});
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 4; }))
      << "four threads";
  EXPECT_EQ(running, 4);
  released = true;
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(runs_.count(), 8U);
}

TEST_P(WorkerTest, what_a_stop_interrupts_runs_again_with_no_attempt_counted) {
  std::atomic<int> begun{0};
  handlers_.on("long", [&](std::string_view payload, const TaskRun& run) {
    if (++begun == 1) {
      while (!run.stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
      return TaskEnd::failed("was stopped");
    }
    runs_.add(payload, run);
    return TaskEnd::done();
  });
  auto worker = start();
  enqueue("long", {"x"}, "a");
  EXPECT_TRUE(eventually([&] { return begun == 1; }));
  EXPECT_FALSE(worker->stop(milliseconds(0)).drained);
  worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1; }));
  EXPECT_EQ(runs_.all().front().attempt, 1U);
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
}

TEST_P(WorkerTest, a_run_that_has_a_row_ends_within_the_grace_of_a_stop) {
  Gate gate(*this);
  auto worker = start();
  enqueue("slow", {"x"}, "a");
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  enqueue("slow", {"y"}, "a");
  std::thread opens([&] {
    std::this_thread::sleep_for(milliseconds(300));
    gate.open();
  });
  EXPECT_TRUE(worker->stop(seconds(20)).drained);
  opens.join();
  EXPECT_GE(runs_.count(), 1U);
  worker = start();
  const std::vector<std::string> both{"x", "y"};
  EXPECT_TRUE(eventually([&] { return runs_.payloads("a") == both && all_is_done(); }));
  expect_sound_ledger("task.mail");
}

TEST_P(WorkerTest, a_run_that_has_a_row_and_does_not_end_in_time_is_given_back) {
  Gate gate(*this);
  auto worker = start();
  enqueue("slow", {"x"}, "a");
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  EXPECT_FALSE(worker->stop(milliseconds(10)).drained);
  ASSERT_EQ(parked(store::ParkedState::retrying).size(), 1U);
  EXPECT_EQ(parked().front().attempts, 0U);
  EXPECT_EQ(gate.told, 1);
  gate.open();
  worker = start();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 1 && all_is_done(); }));
  EXPECT_EQ(runs_.all().front().attempt, 1U);
}

TEST_P(WorkerTest, a_retry_that_takes_long_has_a_row_too) {
  Gate gate(*this);
  handlers_.on("second_is_slow", [&](std::string_view payload, const TaskRun& run) {
    if (run.attempt == 1) return TaskEnd::failed("the first");
    gate.wait(run);
    runs_.add(payload, run);
    return run.attempt == 2 ? TaskEnd::failed("the second") : TaskEnd::done();
  });
  const auto worker = start();
  enqueue("second_is_slow", {"x"}, "a");
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  EXPECT_EQ(parked().front().attempts, 1U);
  gate.open();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2 && all_is_done(); }));
  EXPECT_EQ(runs_.all().back().attempt, 3U);
  expect_sound_ledger("task.mail");
}

TEST_P(WorkerTest, a_run_past_its_deadline_is_told_and_fails_also_when_it_has_a_row) {
  std::atomic<int> told{0};
  handlers_.on("slow", {.deadline = seconds(4)}, [&](std::string_view payload, const TaskRun& run) {
    while (!run.stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    ++told;
    runs_.add(payload, run);
    return TaskEnd::failed("too late");
  });
  const auto worker = start();
  enqueue("slow", {"x"}, "a");
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  EXPECT_TRUE(eventually([&] { return told >= 1; }));
  EXPECT_TRUE(eventually([&] {
    const auto rows = parked();
    return !rows.empty() && rows.front().attempts >= 1;
  }));
}

/// The base of tests with a run that a person cancels.
class CancelledRunTest : public WorkerTest {
 protected:
  void start_quick() {
    WorkerOptions quick = options();
    quick.heartbeat = milliseconds(100);
    worker_ = start(quick);
  }
  /// Cancels the task that runs, and returns its id.
  EventId cancel_what_runs() {
    EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
    const auto row = parked(store::ParkedState::running).front();
    const auto people = store_->parked_events().value();
    EXPECT_EQ(people->discard(row.subscription, std::vector{row.seq}, "me", "no need").value(), 1U);
    return row.id;
  }
  [[nodiscard]] std::string look(const EventId& id) const {
    const auto status = store_->task_queues().value()->task(id).value();
    return status ? std::string(to_string(status->state)) + " " + status->error : "none";
  }

  std::unique_ptr<Worker> worker_;
};

INSTANTIATE_TEST_SUITE_P(Store, CancelledRunTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Postgres" : "Sqlite"; });

TEST_P(CancelledRunTest, its_handler_is_told_and_until_it_returns_the_next_of_its_key_waits) {
  std::atomic<bool> told{false};
  std::atomic<bool> returns{false};
  handlers_.on("stubborn", [&](std::string_view, const TaskRun& run) {
    EXPECT_TRUE(runs_.begin(run.key));
    while (!returns) {
      told = told || run.stop.stop_requested();
      std::this_thread::sleep_for(milliseconds(1));
    }
    runs_.end(run.key);
    return TaskEnd::failed("was told to stop");
  });
  note("send");
  start_quick();
  enqueue("stubborn", {"x"}, "a");
  const EventId id = cancel_what_runs();
  enqueue("send", {"y"}, "a");
  enqueue("send", {"z"}, "b");
  EXPECT_TRUE(eventually([&] { return told.load(); }));
  EXPECT_TRUE(eventually([&] { return runs_.payloads("b").size() == 1; }));
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::waiting).size() == 1; }))
      << "the worker knows what comes next";
  EXPECT_EQ(look(id), "running cancelled by me: no need");
  EXPECT_THAT(runs_.payloads("a"), ::testing::IsEmpty());
  returns = true;
  EXPECT_TRUE(eventually([&] { return runs_.payloads("a") == std::vector<std::string>{"y"}; }));
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(look(id), "cancelled no need");
  expect_sound_ledger("task.mail");
}

TEST_P(CancelledRunTest, one_that_is_done_all_the_same_is_completed) {
  Gate gate(*this);
  auto slow = options();
  slow.heartbeat = minutes(1);  // it is not told in time
  worker_ = start(slow);
  enqueue("slow", {"x"}, "a");
  const EventId id = cancel_what_runs();
  gate.open();
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(look(id), "completed ");
  expect_sound_ledger("task.mail");
}

TEST_P(CancelledRunTest, one_that_a_stop_interrupts_does_not_run_again) {
  Gate gate(*this);
  auto slow = options();
  slow.heartbeat = minutes(1);
  worker_ = start(slow);
  enqueue("slow", {"x"}, "a");
  const EventId id = cancel_what_runs();
  (void)worker_->stop(milliseconds(0));
  EXPECT_EQ(look(id), "cancelled no need");
  gate.open();
  worker_ = start(slow);
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(runs_.count(), 0U);
  expect_sound_ledger("task.mail");
}

TEST_P(WorkerTest, a_run_goes_on_when_its_worker_gets_other_lanes) {
  if (!GetParam()) GTEST_SKIP() << "SQLite: one worker at a time";
  Gate gate(*this);
  const auto one = start();
  std::vector<std::string> keys;
  for (int i = 0; i < 4; ++i) {
    keys.push_back("k" + std::to_string(i));
    enqueue("slow", {"first"}, keys.back());
  }
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 4; }));
  for (const std::string& key : keys) enqueue("slow", {"second"}, key);
  const auto other = start();
  EXPECT_TRUE(eventually([&] { return owners() == 2; }));
  EXPECT_EQ(parked(store::ParkedState::running).size(), 4U);
  gate.open();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 8 && all_is_done(); }));
  const std::vector<std::string> expected{"first", "second"};
  for (const std::string& key : keys) EXPECT_EQ(runs_.payloads(key), expected) << key;
  for (const auto& run : runs_.all()) EXPECT_EQ(run.attempt, 1U);
  EXPECT_EQ(gate.told, 0);
  EXPECT_TRUE(one->stop(seconds(10)).drained);
  EXPECT_TRUE(other->stop(seconds(10)).drained);
  expect_sound_ledger("task.mail");
}

#ifdef OUTBOX_WITH_POSTGRES
TEST_P(WorkerTest, workers_that_write_many_rows_do_not_wait_for_each_other_in_a_circle) {
  if (!GetParam()) GTEST_SKIP() << "SQLite: one writer at a time";
  handlers_.on("lasts", [&](std::string_view payload, const TaskRun& run) {
    std::this_thread::sleep_for(milliseconds(30));
    if (run.attempt == 1 && payload.back() == '7') return TaskEnd::failed("the first time");
    runs_.add(payload, run);
    return TaskEnd::done();
  });
  WorkerOptions many = options();
  many.queues = {"mail", "more"};
  many.threads = 50;
  many.row_after = milliseconds(10);
  Pg sql(url_);
  const auto deadlocks = [&] {
    return sql.value("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
  };
  const std::string before = deadlocks();
  const auto one = start(many);
  const auto other = start(many);
  constexpr std::size_t kTasks = 2000;
  for (std::size_t i = 0; i < kTasks; i += 5) {
    std::vector<std::string> payloads;
    for (std::size_t n = i; n < i + 5; ++n) payloads.push_back(std::to_string(n));
    // The subscriptions of a queue share its lanes.
    enqueue("lasts", payloads, i % 3 == 0 ? "k" + std::to_string(i) : "",
            i % 40 == 0 ? "mail" : "more", 1 + i / 5 % 4);
  }
  EXPECT_TRUE(eventually([&] { return runs_.count() >= kTasks && parked().empty(); }));
  EXPECT_EQ(runs_.count(), kTasks);
  EXPECT_TRUE(one->stop(seconds(10)).drained);
  EXPECT_TRUE(other->stop(seconds(10)).drained);
  EXPECT_EQ(deadlocks(), before);
  expect_sound_ledger("task.mail");
  expect_sound_ledger("task.more");
}
#endif

TEST_P(WorkerTest, a_task_of_an_unknown_type_waits_and_says_so) {
  note("send");
  auto worker = start();
  enqueue("new", {"x"}, "a");
  enqueue("send", {"y"}, "a");
  enqueue("send", {"z"}, "b");
  EXPECT_TRUE(eventually([&] { return parked().size() == 2; }));
  EXPECT_TRUE(eventually([&] { return runs_.payloads("b").size() == 1; }));
  const auto rows = parked(store::ParkedState::retrying);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].error, "no worker here has a handler for type new");
  EXPECT_EQ(rows[0].attempts, 0U);
  EXPECT_TRUE(worker->stop(seconds(10)).drained);
  note("new");
  worker = start();
  const std::vector<std::string> expected{"x", "y"};
  EXPECT_TRUE(eventually([&] { return runs_.payloads("a") == expected; }));
}

TEST_P(WorkerTest, a_snoozed_task_counts_no_attempt) {
  std::atomic<int> snoozes{0};
  handlers_.on("later", [&](std::string_view payload, const TaskRun& run) {
    runs_.add(payload, run);
    return ++snoozes <= 5 ? TaskEnd::snooze(milliseconds(5)) : TaskEnd::done();
  });
  const auto worker = start();
  enqueue("later", {"x"}, "a");
  EXPECT_TRUE(eventually([&] { return runs_.count() == 6 && all_is_done(); }));
  for (const auto& run : runs_.all()) EXPECT_EQ(run.attempt, 1U);
}

#ifdef OUTBOX_WITH_POSTGRES
TEST_P(WorkerTest, a_task_that_is_claimed_while_it_is_cancelled_keeps_its_row) {
  if (!GetParam()) GTEST_SKIP() << "needs PostgreSQL: on SQLite workers share no tasks";
  enqueue("unknown", {"x"});
  note("send");
  WorkerOptions options = this->options();
  options.unknown_type_pause = std::chrono::hours(1);
  const auto worker = start(options);
  ASSERT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 1; }));
  EXPECT_TRUE(worker->stop(seconds(10)).drained);
  Pg claim(url_);
  claim.run(
      "UPDATE outbox.parked_key k SET run_seq = p.seq FROM outbox.parked p WHERE p.key = k.key");
  const auto row = parked().front();
  claim.run("BEGIN; UPDATE outbox.parked_key SET worker = gen_random_uuid(), token = token + 1");
  auto cancelled = std::async(std::launch::async, [&] {
    return store_->parked_events().value()->discard(row.subscription, std::vector{row.seq}, "ann",
                                                    "");
  });
  Pg other(url_);
  EXPECT_TRUE(eventually([&] {
    return other.value(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
               "AND datname = current_database()") == "1";
  }));
  claim.run("COMMIT");
  EXPECT_EQ(cancelled.get().value(), 1U);
  EXPECT_EQ(
      other.value(
          "SELECT count(*) FROM outbox.parked_state WHERE state = 'running' AND cancelled_by = 'ann'"),
      "1");
}

/// A relay may leave such a row behind when it stops and has given the run up.
TEST_P(WorkerTest, a_row_without_a_run_goes_back_at_a_stop_with_no_attempt) {
  if (!GetParam()) GTEST_SKIP() << "SQLite: one writer at a time";
  enqueue("unknown", {"x"});
  note("send");
  WorkerOptions options = this->options();
  options.unknown_type_pause = std::chrono::hours(1);
  options.heartbeat = minutes(1);  // nothing else gives it back
  const auto worker = start(options);
  Pg pg(url_);
  EXPECT_TRUE(eventually([&] {
    return parked(store::ParkedState::retrying).size() == 1 &&
           pg.value("SELECT count(*) FROM outbox.worker") == "1";
  }));
  pg.run(
      "UPDATE outbox.parked_key k "
      "SET run_seq = p.seq, worker = w.id, token = k.token + 1, begun_at = clock_timestamp() "
      "FROM outbox.worker w, outbox.parked p WHERE p.key = k.key");
  (void)worker->stop(seconds(5));
  const auto rows = parked();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front().state, store::ParkedState::retrying);
  EXPECT_EQ(rows.front().attempts, 0U);
  EXPECT_EQ(pg.value("SELECT count(*) FROM outbox.worker"), "0");
}

TEST_P(WorkerTest, any_language_enqueues_and_looks_at_a_task_by_sql) {
  if (!GetParam()) GTEST_SKIP() << "functions of PostgreSQL";
  Pg sql(url_);
  Gate gate(*this);
  handlers_.on("dead",
               [](std::string_view, const TaskRun&) { return TaskEnd::dead("no such month"); });
  handlers_.on("reports", [&](std::string_view payload, const TaskRun& run) {
    run.progress(40, "page 2 of 5");
    if (gate.wait(run)) runs_.add(payload, run);
  });
  const auto enqueue = [&](const std::string& arguments) {
    return sql.value("SELECT outbox.enqueue_task(" + arguments + ")");
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
  const std::string id = enqueue("'mail', 'reports', '{\"n\": 1}'::jsonb, key => 'k'");
  EXPECT_EQ(status(id, "queue, type, key, state, attempts"), "mail reports k pending 0");
  sql.run("BEGIN");
  const std::string undone = enqueue("'mail', 'reports', '{\"n\": 2}'");
  sql.run("ROLLBACK");

  const auto worker = start();
  EXPECT_TRUE(eventually([&] {
    return status(id, "state, percent, progress") == "running 40 page 2 of 5";
  })) << status(id, "state, percent, progress");
  EXPECT_NE(status(id, "worker"), "");
  const std::string behind = enqueue("'mail', 'reports', '{}', 'k'");
  EXPECT_TRUE(eventually([&] { return status(behind, "state") == "waiting"; }));
  const std::string dead = enqueue("'mail', 'dead', 'x', content_type => 'text/plain'");
  EXPECT_TRUE(
      eventually([&] { return status(dead, "state, attempts, error") == "dead 1 no such month"; }));
  gate.open();
  EXPECT_TRUE(eventually([&] { return status(behind, "state") == "completed"; }));
  EXPECT_EQ(status(id, "state, ended_at IS NOT NULL, worker, percent"), "completed t");
  EXPECT_EQ(sql.value("SELECT count(*) FROM outbox.task_status('" + undone + "')"), "0");
  EXPECT_EQ(runs_.count(), 2U);

  EXPECT_THAT(find_error("'a b', 'x', '{}'"),
              ::testing::HasSubstr("queue: 'a b' is no name of a queue"));
  EXPECT_THAT(find_error("NULL, 'x', '{}'"), ::testing::HasSubstr("queue: NULL"));
  EXPECT_THAT(find_error("'mail', NULL, '{}'"), ::testing::HasSubstr("type: is null"));
  EXPECT_THAT(find_error("'mail', 'x', '{'"), ::testing::HasSubstr("payload"));
}
#endif

TEST_P(WorkerTest, wrong_options_are_refused_with_the_field) {
  const auto complaint = [&](WorkerOptions options) {
    const auto worker = Worker::create(std::move(options), handlers_);
    return worker ? std::string() : worker.error().message;
  };
  EXPECT_EQ(complaint(options()), "handlers: there is none");
  note("send");
  EXPECT_EQ(complaint(options()), "");
  WorkerOptions wrong = options();
  wrong.queues = {"a b"};
  EXPECT_EQ(complaint(wrong), "queue: 'a b' is no name of a queue");
  wrong = options();
  wrong.threads = 0;
  EXPECT_EQ(complaint(wrong), "threads: must be from 1 to 1024");
  wrong = options();
  wrong.delays = {std::chrono::hours(24 * 31)};
  EXPECT_NE(complaint(wrong).find("delays"), std::string::npos) << complaint(wrong);
}

}  // namespace
}  // namespace outbox::test
