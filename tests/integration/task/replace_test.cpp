// Tests on_conflict = replace on both stores. Whatever the replaced task waits for, it never runs
// once the new one is there. A replaced task that runs at that moment ends, and does not run again.
#include <functional>
#include <optional>

#include "event/task_queue.hpp"
#include "integration/task/rules_fixture.hpp"
#include "store/delivery.hpp"
#include "store/tasks.hpp"

namespace outbox::test {
namespace {

class ReplacedTaskTest : public TaskRulesTest {
 protected:
  void SetUp() override {
    TaskRulesTest::SetUp();
    if (IsSkipped()) return;
    note("new");
    handlers_.on("old", [this](std::string_view payload, const TaskRun& run) {
      if (gate_ != nullptr) (void)gate_->wait(run);
      runs_.add(payload, run);
      return end_of_old_ ? *end_of_old_ : TaskEnd::done();
    });
  }

  static Task old_task() {
    Task unique = task("old", "old");
    unique.unique_key = "k";
    unique.on_conflict = OnConflict::replace;
    return unique;
  }
  static Task new_task() {
    Task unique = old_task();
    unique.type = "new";
    unique.payload = "new";
    return unique;
  }
  [[nodiscard]] std::ptrdiff_t count_runs(const std::string& payload) const {
    const auto all = runs_.all();
    return std::count_if(all.begin(), all.end(),
                         [&](const auto& run) { return run.payload == payload; });
  }
  [[nodiscard]] TaskState read_state(const EventId& id) const {
    return store_->task_queues().value()->task(id).value().value().state;
  }
  /// Expects that the old task is cancelled as soon as the transaction is over, and stays so, also
  /// when a person sends what is set aside again.
  void replace_and_expect_that_it_is_cancelled(Application& application, const EventId& old,
                                               const std::function<void()>& let_go = {}) {
    const EventId fresh = application.enqueue(new_task());
    EXPECT_EQ(read_state(old), TaskState::cancelled);
    EXPECT_TRUE(eventually([&] { return count_runs("new") == 1; }));
    EXPECT_TRUE(eventually([&] { return read_state(fresh) == TaskState::completed; }));
    if (let_go) let_go();
    for (const auto& row : parked())
      (void)store_->parked_events().value()->retry(row.subscription, std::vector{row.seq}, false);
    EXPECT_TRUE(eventually([&] { return all_is_done(); }));
    EXPECT_EQ(count_runs("new"), 1);
    EXPECT_EQ(read_state(old), TaskState::cancelled);
  }
  void set_paused(bool paused) const {
    const auto catalog = store_->catalog().value();
    const auto rows = catalog->subscriptions().value();
    for (const auto& row : rows) {
      if (!event::is_of_queue(row.spec) || event::is_of_type(row.spec)) continue;
      const SubscriptionSpec spec = event::spec_of_type(row.spec, "old");
      ASSERT_TRUE(catalog->apply(spec));
      ASSERT_TRUE(paused ? catalog->pause(spec.name, "a test") : catalog->resume(spec.name));
    }
  }
  [[nodiscard]] bool is_apart() const {
    const auto rows = store_->catalog().value()->subscriptions().value();
    return std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
      return !event::is_of_type(row.spec) ||
             store_->progress().value()->load(row.id, store::kAllLanes).has_value();
    });
  }

  Gate* gate_{nullptr};  ///< The old task waits here before it ends.
  std::optional<TaskEnd> end_of_old_;
};

INSTANTIATE_TEST_SUITE_P(Store, ReplacedTaskTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(ReplacedTaskTest, in_the_log_before_there_is_a_worker) {
  Application application(url_);
  const EventId old = application.enqueue(old_task());
  application.enqueue(new_task());
  EXPECT_EQ(read_state(old), TaskState::cancelled);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return count_runs("new") == 1 && all_is_done(); }));
  EXPECT_EQ(count_runs("old"), 0);
  EXPECT_EQ(read_state(old), TaskState::cancelled);
}

TEST_P(ReplacedTaskTest, in_the_log_while_its_type_is_paused) {
  Application application(url_);
  const auto worker = start();
  set_paused(true);
  ASSERT_TRUE(eventually([&] { return is_apart(); }));
  const EventId old = application.enqueue(old_task());
  replace_and_expect_that_it_is_cancelled(application, old, [&] { set_paused(false); });
  EXPECT_EQ(count_runs("old"), 0);
}

TEST_P(ReplacedTaskTest, scheduled) {
  Application application(url_);
  const auto worker = start();
  Task later = old_task();
  later.execute_at = in(hours(1));
  const EventId old = application.enqueue(later);
  ASSERT_TRUE(eventually([&] { return parked().size() == 1; }));
  replace_and_expect_that_it_is_cancelled(application, old);
  EXPECT_EQ(count_runs("old"), 0);
}

TEST_P(ReplacedTaskTest, waiting_for_a_retry) {
  end_of_old_ = TaskEnd::retry_after(hours(1), "no");
  Application application(url_);
  const auto worker = start();
  const EventId old = application.enqueue(old_task());
  ASSERT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 1; }));
  replace_and_expect_that_it_is_cancelled(application, old);
  EXPECT_EQ(count_runs("old"), 1);
}

TEST_P(ReplacedTaskTest, waiting_behind_its_key) {
  Gate gate(*this);
  Application application(url_);
  WorkerOptions options = this->options();
  options.row_after = milliseconds(50);
  const auto worker = start(options);
  enqueue("slow", {"first"}, "account");
  ASSERT_TRUE(eventually([&] { return parked().size() == 1; }));
  Task behind = old_task();
  behind.key = "account";
  const EventId old = application.enqueue(behind);
  ASSERT_TRUE(eventually([&] { return parked().size() == 2; }));
  replace_and_expect_that_it_is_cancelled(application, old, [&] { gate.open(); });
  EXPECT_EQ(count_runs("old"), 0);
  EXPECT_EQ(count_runs("first"), 1);
}

TEST_P(ReplacedTaskTest, running_and_then_waiting_for_a_retry) {
  Gate gate(*this);
  gate_ = &gate;
  end_of_old_ = TaskEnd::retry_after(hours(1), "no");
  Application application(url_);
  const auto worker = start();
  const EventId old = application.enqueue(old_task());
  ASSERT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  application.enqueue(new_task());
  EXPECT_EQ(read_state(old), TaskState::running) << "what runs goes on";
  gate.open();
  EXPECT_TRUE(eventually([&] { return count_runs("new") == 1; }));
  for (const auto& row : parked())
    (void)store_->parked_events().value()->retry(row.subscription, std::vector{row.seq}, false);
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(count_runs("old"), 1);
  EXPECT_EQ(read_state(old), TaskState::cancelled);
}

TEST_P(ReplacedTaskTest, dead_it_stays_for_a_person) {
  end_of_old_ = TaskEnd::dead("no");
  Application application(url_);
  const auto worker = start();
  const EventId old = application.enqueue(old_task());
  ASSERT_TRUE(eventually([&] { return parked(store::ParkedState::dead).size() == 1; }));
  application.enqueue(new_task());
  EXPECT_TRUE(eventually([&] { return count_runs("new") == 1; }));
  EXPECT_EQ(read_state(old), TaskState::dead) << "it had given up its key";
}

TEST_P(ReplacedTaskTest, by_a_transaction_that_is_rolled_back_it_runs) {
  Application application(url_);
  const EventId old = application.enqueue(old_task());
  application.enqueue(new_task(), false);
  EXPECT_EQ(read_state(old), TaskState::pending);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return count_runs("old") == 1 && all_is_done(); }));
  EXPECT_EQ(count_runs("new"), 0);
}

/// If its row stayed, the replaced task would hold the key of its successor until its own time has
/// come.
TEST_P(ReplacedTaskTest, its_row_goes_and_leaves_its_key_to_others) {
  Application application(url_);
  WorkerOptions options = this->options();
  options.heartbeat = milliseconds(100);
  const auto worker = start(options);
  Task later = old_task();
  later.key = "account";
  later.execute_at = in(hours(1));
  const EventId old = application.enqueue(later);
  ASSERT_TRUE(eventually([&] { return parked().size() == 1; }));
  Task now = new_task();
  now.key = "account";
  application.enqueue(now);
  EXPECT_TRUE(eventually([&] { return count_runs("new") == 1 && all_is_done(); }));
  EXPECT_EQ(count_runs("old"), 0);
  EXPECT_EQ(read_state(old), TaskState::cancelled);
}

/// Each task is replaced by the next one.
TEST_P(ReplacedTaskTest, of_many_the_last_one_runs) {
  Application application(url_);
  WorkerOptions options = this->options();
  options.heartbeat = milliseconds(100);
  const auto worker = start(options);
  for (int i = 0; i < 20; ++i) {
    Task later = old_task();
    later.execute_at = in(hours(1));
    application.enqueue(later);
  }
  application.enqueue(new_task());
  EXPECT_TRUE(eventually([&] { return count_runs("new") == 1 && all_is_done(); }));
  EXPECT_EQ(count_runs("old"), 0);
}

#ifdef OUTBOX_WITH_POSTGRES
class ReplacedInAnOpenTransaction : public ReplacedTaskTest {};

INSTANTIATE_TEST_SUITE_P(Store, ReplacedInAnOpenTransaction, ::testing::Values(true),
                         [](const auto&) { return "Postgres"; });

TEST_P(ReplacedInAnOpenTransaction,
       it_does_not_run_again_although_its_run_ended_before_the_commit) {
  Gate gate(*this);
  gate_ = &gate;
  end_of_old_ = TaskEnd::retry_after(hours(1), "no");
  Application application(url_);
  const auto worker = start();
  const EventId old = application.enqueue(old_task());
  ASSERT_TRUE(eventually([&] { return parked(store::ParkedState::running).size() == 1; }));
  Pg other(url_);
  other.run("BEGIN");
  (void)other.value(
      "SELECT outbox.enqueue_task('mail', 'new', 'new', unique_key => 'k', on_conflict => 'replace', content_type => 'text/plain')");
  gate.open();
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 1; }))
      << "nobody waits for the transaction";
  other.run("COMMIT");
  EXPECT_TRUE(eventually([&] { return count_runs("new") == 1; }));
  for (const auto& row : parked())
    (void)store_->parked_events().value()->retry(row.subscription, std::vector{row.seq}, false);
  EXPECT_TRUE(eventually([&] { return all_is_done(); }));
  EXPECT_EQ(count_runs("old"), 1);
  EXPECT_EQ(read_state(old), TaskState::cancelled);
}

/// Neither transaction sees what the other one writes.
TEST_P(ReplacedInAnOpenTransaction, its_row_goes_although_it_was_set_aside_before_the_commit) {
  Application application(url_);
  Task later = old_task();
  later.execute_at = in(hours(1));
  const EventId old = application.enqueue(later);
  Pg other(url_);
  other.run("BEGIN");
  (void)other.value(
      "SELECT outbox.enqueue_task('mail', 'new', 'new', unique_key => 'k', on_conflict => 'replace', content_type => 'text/plain')");
  WorkerOptions options = this->options();
  options.heartbeat = milliseconds(100);
  const auto worker = start(options);
  EXPECT_TRUE(eventually([&] { return parked(store::ParkedState::retrying).size() == 1; }));
  other.run("COMMIT");
  EXPECT_TRUE(eventually([&] { return count_runs("new") == 1 && all_is_done(); }));
  EXPECT_EQ(count_runs("old"), 0);
  EXPECT_EQ(read_state(old), TaskState::cancelled);
}
#endif

}  // namespace
}  // namespace outbox::test
