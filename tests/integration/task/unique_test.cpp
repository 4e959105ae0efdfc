// Tests tasks with a unique key on both stores. One of them runs at a time, whoever enqueues, dies,
// or holds a lock. Also tests ends that are noted.
#include "integration/task/rules_fixture.hpp"

namespace outbox::test {
namespace {

class UniqueTaskTest : public TaskRulesTest {};

INSTANTIATE_TEST_SUITE_P(Store, UniqueTaskTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });
TEST_P(UniqueTaskTest, one_task_with_a_unique_key_is_there_at_a_time) {
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

TEST_P(UniqueTaskTest, a_newer_task_replaces_one_that_has_not_begun) {
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

TEST_P(UniqueTaskTest, what_replaces_a_task_that_failed_does_not_wait_for_its_retry) {
  Gate gate(*this);
  handlers_.on("fails", [&](std::string_view payload, const TaskRun& run) {
    (void)gate.wait(run);
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
  gate.open();
  EXPECT_TRUE(eventually([&] { return runs_.count() == 2; })) << "it waits for the run only";
  ASSERT_TRUE(eventually([&] { return parked().size() == 1; }));
  const auto row = parked().front();
  EXPECT_EQ(row.id, old);
  EXPECT_TRUE(
      store_->parked_events().value()->retry(row.subscription, std::vector{row.seq}, false));
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(runs_.count(), 2U) << "what is newer is done: it does not run again";
}

TEST_P(UniqueTaskTest, a_replacement_that_is_cancelled_leaves_the_key_to_the_one_that_runs) {
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
  /// The call of enqueue_task() for a task of this type with the unique key.
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
    gate.close();
  }
}

TEST_P(UniqueKeyIsLocked, a_task_that_dies_stops_no_others) {
  Gate gate(*this);
  std::atomic<bool> begun{false};
  handlers_.on("fails", [&](std::string_view, const TaskRun& run) {
    begun = true;
    (void)gate.wait(run);
    return TaskEnd::dead("no");
  });
  note("send");
  Pg application(url_);
  WorkerOptions options = this->options();
  options.row_after = minutes(1);  // so that the relay writes the task's end
  const auto worker = start(options);
  (void)application.value(sql("fails", "skip"));
  EXPECT_TRUE(eventually([&] { return begun.load(); }));
  application.run("BEGIN");
  (void)application.value(sql("send", "replace"));
  gate.open();
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

TEST_P(UniqueTaskTest, a_dead_task_gives_up_its_unique_key_and_may_run_again) {
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

/// The task's worker died before the relay knew of the task's end.
TEST_P(UniqueTaskTest, a_unique_task_that_was_done_stays_so_when_another_one_has_its_key) {
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
    const auto status = application.status(id);
    ASSERT_TRUE(status);
    EXPECT_EQ(status->state, TaskState::completed) << status->error;
  }
}

/// A worker that could not write for a while has two ends of a task, because the relay had the task
/// run again meanwhile.
TEST_P(UniqueTaskTest, of_two_ends_at_once_the_first_counts_and_tells) {
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

TEST_P(UniqueTaskTest, the_end_of_a_former_run_does_not_count_beside_that_of_the_new_one) {
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

TEST_P(UniqueTaskTest, a_corrected_copy_of_a_unique_task_is_done) {
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

}  // namespace
}  // namespace outbox::test
