// Tests workers that are killed, or suspended past their lease, while they work.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <outbox/postgres.hpp>
#include <outbox/task.hpp>
#include <set>
#include <string>
#include <vector>

#include "event/task_queue.hpp"
#include "store/store.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/ledger_check.hpp"
#include "support/own_postgres.hpp"
#include "support/postgres_database.hpp"
#include "support/servers.hpp"
#include "support/temp_dir.hpp"
#include "verify/verify.hpp"

namespace outbox::test {
namespace {

constexpr const char* kLeaseMs = "2000";
constexpr const char* kHeartbeatMs = "300";

class WorkerKilled : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    file_ = folder_.file("done");
  }
  using Environment = std::map<std::string, std::string>;
  [[nodiscard]] std::unique_ptr<ChildProcess> start(const Environment& environment = {}) const {
    return std::make_unique<ChildProcess>(ChildProcess::Options{
        .command = {OUTBOX_TEST_WORKER, database_->url(), file_, kLeaseMs, kHeartbeatMs},
        .environment = environment,
        .output = folder_.file("log")});
  }
  /// Enqueues a task that is due in so many seconds by the clock of the database.
  void enqueue_in(int seconds, const std::string& payload) const {
    (void)value("SELECT outbox.enqueue_task('default', 'note', '" + payload +
                "', content_type => 'text/plain', execute_at => clock_timestamp() + interval '" +
                std::to_string(seconds) + " s')");
  }
  void enqueue(const std::string& type, const std::string& payload, const std::string& key = {}) {
    Pg connection(database_->url());
    postgres::Transaction tx(connection.native());
    (void)tx.enqueue({.type = type, .payload = payload, .key = key, .content_type = "text/plain"});
    tx.commit();
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream in(file_);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty()) all.push_back(line);
    }
    return all;
  }
  [[nodiscard]] std::size_t count(const std::string& line) const {
    const auto all = lines();
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), line));
  }
  [[nodiscard]] std::string value(const std::string& sql) const {
    return Pg(database_->url()).value(sql);
  }
  void expect_all_done() {
    EXPECT_TRUE(eventually([&] {
      return value("SELECT outbox.pending('task.default')") == "0" &&
             value("SELECT count(*) FROM outbox.parked_state WHERE state <> 'dead'") == "0";
    }));
    Pg connection(database_->url());
    EXPECT_EQ(ledger_fault(connection, "task.default"), "");
  }
  /// Pauses a type as `outbox tasks pause` does. The first time, the type is split off.
  void pause_type(const std::string& type) const {
    const auto store = store::open_store({.url = database_->url()}).value();
    const auto catalog = store->catalog().value();
    const auto rows = catalog->subscriptions().value();
    for (const auto& row : rows) {
      if (!event::is_of_queue(row.spec) || event::is_of_type(row.spec)) continue;
      const SubscriptionSpec spec = event::spec_of_type(row.spec, type);
      ASSERT_TRUE(catalog->apply(spec));
      ASSERT_TRUE(catalog->pause(spec.name, "a test"));
    }
  }
  [[nodiscard]] bool has_begun(const std::string& type) const {
    return value(
               "SELECT count(*) FROM outbox.subscription s WHERE s.config ->> 'event_types' LIKE '%\"" +
               type +
               "\"%' AND NOT EXISTS (SELECT FROM outbox.settlement t WHERE t.subscription "
               "= s.id)") == "0";
  }
  [[nodiscard]] std::size_t count_lines(const std::string& type) const {
    const auto all = lines();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const auto& line) { return line.starts_with(type + " "); }));
  }
  void resume_types() const {
    const auto store = store::open_store({.url = database_->url()}).value();
    const auto catalog = store->catalog().value();
    const auto rows = catalog->subscriptions().value();
    for (const auto& row : rows) {
      if (!event::is_of_type(row.spec)) continue;
      ASSERT_TRUE(catalog->resume(row.spec.name));
    }
  }
  void open_gate() const { std::ofstream(file_ + ".go") << "go"; }
  void close_gate() const { (void)::unlink((file_ + ".go").c_str()); }
  [[nodiscard]] std::size_t count_rows(const std::string& state) const {
    return std::stoul(
        value("SELECT count(*) FROM outbox.parked_state WHERE state = '" + state + "'"));
  }

  const TempDir folder_;
  std::unique_ptr<PostgresDatabase> database_;
  std::string file_;
};

TEST_F(WorkerKilled, each_task_is_done_and_each_key_in_order) {
  constexpr int kKeys = 10;
  int written = 0;
  const auto write = [&](int tasks) {
    for (int i = 0; i < tasks; ++i, ++written) {
      const std::string key = "k" + std::to_string(written % kKeys);
      enqueue("note", key + " " + std::to_string(written), key);
    }
  };
  write(100);
  for (int round = 0; round < 10 * soak_factor(); ++round) {
    const std::size_t seen = lines().size();
    const auto worker = start();
    write(30);
    ASSERT_TRUE(eventually([&] { return lines().size() > seen + 5 || !worker->running(); }));
    ASSERT_TRUE(worker->running());
    worker->kill();
  }
  const auto worker = start();
  expect_all_done();
  std::map<std::string, int> last;
  std::set<int> done;
  for (const std::string& line : lines()) {
    const std::string key = line.substr(0, line.find(' '));
    const int number = std::stoi(line.substr(key.size() + 1));
    if (!done.insert(number).second) continue;
    const auto before = last.find(key);
    EXPECT_TRUE(before == last.end() || before->second < number) << line;
    last[key] = number;
  }
  EXPECT_EQ(done.size(), static_cast<std::size_t>(written));
}

TEST_F(WorkerKilled, types_are_split_off_and_nothing_is_lost_or_out_of_order) {
  constexpr int kTypes = 6;
  std::map<std::string, int> written;
  const auto write = [&](int tasks) {
    for (int i = 0; i < tasks; ++i) {
      const std::string type = "note" + std::to_string(i % kTypes);
      enqueue(type, type + " " + std::to_string(written[type]++), "k");
    }
  };
  for (int type = 0; type < kTypes; ++type) {
    write(20);
    const std::size_t seen = lines().size();
    const auto worker = start();
    write(40);
    ASSERT_TRUE(eventually([&] { return lines().size() > seen || !worker->running(); }));
    pause_type("note" + std::to_string(type));
    // The worker is killed at once, when the new subscription has its first cursors, or when its
    // first task was done.
    if (type % 3 > 0) {
      EXPECT_TRUE(eventually([&] { return has_begun("note" + std::to_string(type)); }));
    }
    if (type % 3 > 1) {
      const std::size_t done = count_lines("note" + std::to_string(type));
      write(kTypes);  // those before may all have been done before the type was paused
      resume_types();
      EXPECT_TRUE(eventually([&] { return count_lines("note" + std::to_string(type)) > done; }));
    }
    ASSERT_TRUE(worker->running());
    worker->kill();
    resume_types();
  }
  const auto worker = start();
  std::map<std::string, int> next;
  const auto all_done = [&] {
    next.clear();
    for (const std::string& line : lines()) {
      const std::string type = line.substr(0, line.find(' '));
      const int number = std::stoi(line.substr(type.size() + 1));
      EXPECT_LE(number, next[type]) << line << ": one before it was left out";
      if (number == next[type]) ++next[type];
    }
    return next == written;
  };
  EXPECT_TRUE(eventually(all_done));
  EXPECT_TRUE(eventually([&] { return count_rows("running") + count_rows("waiting") == 0; }));
  const auto store = store::open_store({.url = database_->url()}).value();
  const auto rows = store->catalog().value()->subscriptions().value();
  EXPECT_GT(rows.size(), static_cast<std::size_t>(kTypes));
  for (const auto& row : rows) {
    EXPECT_TRUE(eventually([&] {
      return value("SELECT outbox.pending('" + row.spec.name + "')") == "0";
    })) << row.spec.name;
    const auto found = verify::verify(*store->ledger_reader().value(), row.id);
    ASSERT_TRUE(found) << row.spec.name << ": " << found.error().text();
    EXPECT_TRUE(found->ok()) << row.spec.name;
  }
}

TEST_F(WorkerKilled, an_end_is_noted_once_and_who_asked_is_told_once_however_often_a_task_runs) {
  int written = 0;
  const auto write = [&](int tasks) {
    Pg connection(database_->url());
    postgres::Transaction tx(connection.native());
    for (int i = 0; i < tasks; ++i, ++written) {
      Task task{.type = "made", .payload = std::to_string(written)};
      task.on_done = TaskEvent{.aggregate_type = "told", .event_type = "Made"};
      task.unique_key = "u" + std::to_string(written);
      (void)tx.enqueue(task);
    }
    tx.commit();
  };
  write(50);
  for (int round = 0; round < 10 * soak_factor(); ++round) {
    const std::size_t seen = lines().size();
    const auto worker = start();
    write(30);
    ASSERT_TRUE(eventually([&] { return lines().size() > seen + 5 || !worker->running(); }));
    ASSERT_TRUE(worker->running());
    worker->kill();
  }
  const auto worker = start();
  expect_all_done();
  const std::string all = std::to_string(written);
  EXPECT_EQ(value("SELECT count(*) FROM outbox.task_end WHERE outcome = 'done'"), all);
  EXPECT_EQ(
      value("SELECT count(DISTINCT convert_from(result, 'UTF8')::integer) FROM outbox.task_end"),
      all);
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event WHERE aggregate_type = 'told'"), all);
  EXPECT_EQ(
      value(
          "SELECT count(DISTINCT convert_from(payload, 'UTF8')::jsonb ->> 'task') FROM outbox.event "
          "WHERE aggregate_type = 'told'"),
      all);
  EXPECT_EQ(value("SELECT count(*) FROM outbox.task_unique"), "0");
}

TEST_F(WorkerKilled, tasks_in_every_state_are_done_by_the_next_worker) {
  auto worker = start();
  enqueue("slow", "running", "a");
  EXPECT_TRUE(eventually([&] { return count_rows("running") == 1; }));
  enqueue("note", "waiting", "a");
  enqueue("second", "retrying", "b");
  enqueue_in(3, "scheduled");
  EXPECT_TRUE(
      eventually([&] { return count_rows("waiting") == 1 && count_rows("retrying") == 2; }));
  worker->kill();
  enqueue("note", "pending");
  open_gate();
  worker = start();
  expect_all_done();
  for (const char* const once : {"end running", "waiting", "retrying", "scheduled", "pending"})
    EXPECT_EQ(count(once), 1U) << once;
}

TEST_F(WorkerKilled, only_the_clock_of_the_database_says_when_a_task_is_due) {
  const std::string clock = folder_.file("clock");
  for (const std::int64_t hours : {1, -1}) {
    const std::int64_t ahead = hours * 3600;
    std::ofstream(clock, std::ios::trunc)
        .write(reinterpret_cast<const char*>(&ahead), sizeof ahead);
    const std::string soon = "soon " + std::to_string(hours);
    const std::string later = "later " + std::to_string(hours);
    enqueue_in(2, soon);
    enqueue_in(600, later);
    const auto worker =
        start({{"LD_PRELOAD", OUTBOX_TEST_CLOCK}, {"OUTBOX_TEST_CLOCK_FILE", clock}});
    EXPECT_TRUE(eventually([&] { return count(soon) == 1; }));
    EXPECT_EQ(count(later), 0U);
    worker->signal(SIGTERM);
    (void)worker->wait(std::chrono::seconds(30));
  }
}

TEST_F(WorkerKilled, what_ran_for_long_runs_again_elsewhere_with_an_attempt_counted) {
  const auto worker = start();
  enqueue("slow", "x", "a");
  EXPECT_TRUE(eventually([&] { return count_rows("running") == 1; }));
  enqueue("slow", "z", "a");
  enqueue("note", "y", "b");
  EXPECT_TRUE(eventually([&] { return count("y") == 1; })) << "nothing else is held up";
  const auto other = start();
  worker->kill();
  EXPECT_TRUE(eventually([&] { return count("begin x") == 2; }));
  EXPECT_TRUE(eventually([&] { return count_rows("running") == 1; }));
  EXPECT_EQ(value("SELECT attempts FROM outbox.parked_state WHERE state = 'running'"), "1");
  EXPECT_EQ(count("begin z"), 0U) << "it waits for the one before it of its key";
  open_gate();
  EXPECT_TRUE(eventually([&] { return count("end x") == 1 && count("end z") == 1; }));
  expect_all_done();
  EXPECT_EQ(value("SELECT count(*) FROM outbox.worker"), "1") << "the dead one is forgotten";
}

TEST_F(WorkerKilled, what_a_person_cancelled_while_it_ran_does_not_run_again_elsewhere) {
  const auto worker = start();
  enqueue("slow", "x", "a");
  EXPECT_TRUE(eventually([&] { return count_rows("running") == 1; }));
  worker->signal(SIGSTOP);  // so that it cannot be told
  EXPECT_EQ(
      value(
          "SELECT outbox.discard_parked(subscription, ARRAY[seq], 'me', 'no need') FROM outbox.parked_state"),
      "1");
  enqueue("note", "y", "a");
  worker->kill();
  const auto other = start();
  EXPECT_TRUE(eventually([&] { return count("y") == 1; }));
  expect_all_done();
  EXPECT_EQ(count("begin x"), 1U);
  EXPECT_EQ(
      value(
          "SELECT string_agg(outcome || ' ' || actor || ' ' || reason, ', ' ORDER BY seq) FROM outbox.parked_end"),
      "discarded me no need, delivered  ");
}

/// One of two workers has more long tasks than threads, and the other one has claimed the rest.
class ClaimerKilled : public WorkerKilled {
 protected:
  static constexpr int kThreads = 4;

  void SetUp() override {
    WorkerKilled::SetUp();
    if (IsSkipped()) return;
    owner_ = start();
    claimer_ = start();
    ASSERT_TRUE(
        eventually([&] { return list_lanes(*owner_) == "32" && list_lanes(*claimer_) == "32"; }));
    for (int i = 0; i < 2 * kThreads; ++i) {
      const std::string number = std::to_string(i);
      const std::string key = key_of_owner(number);
      enqueue("slow", number, key);
      enqueue("note", "after " + number, key);
    }
    ASSERT_TRUE(eventually([&] {
      return count_runs(*owner_) == kThreads && count_runs(*claimer_) == kThreads &&
             count_rows("waiting") == 2 * kThreads;
    }));
  }
  [[nodiscard]] static std::string find_name(const ChildProcess& worker) {
    return "'worker-" + std::to_string(worker.pid()) + "'";
  }
  [[nodiscard]] std::string list_lanes(const ChildProcess& worker) const {
    return value(
        "SELECT count(*) FROM outbox.lane l JOIN outbox.relay r ON r.id = l.owner WHERE r.name = " +
        find_name(worker) + " AND l.lane_group = 'custom:task.default'");
  }
  [[nodiscard]] std::string key_of_owner(const std::string& number) const {
    return value(
        "SELECT 'k' || n FROM generate_series(1, 1000) n JOIN outbox.lane l"
        " ON l.lane = outbox.lane_of('outbox-task:default', 'k' || n, outbox.new_id())"
        " JOIN outbox.relay r ON r.id = l.owner WHERE l.lane_group = 'custom:task.default' AND r.name = " +
        find_name(*owner_) + " ORDER BY n LIMIT 1 OFFSET " + number);
  }
  [[nodiscard]] int count_runs(const ChildProcess& worker) const {
    return std::stoi(
        value("SELECT count(*) FROM outbox.parked_state p JOIN outbox.worker w ON w.id = p.worker"
              " WHERE p.state = 'running' AND w.name = " +
              find_name(worker)));
  }
  /// Expects that so many tasks began twice and all others once, and that what is behind each task
  /// ran once, after it.
  void expect_that_all_ended(int twice) {
    open_gate();
    expect_all_done();
    const auto all = lines();
    int begun_twice = 0;
    for (int i = 0; i < 2 * kThreads; ++i) {
      const std::string number = std::to_string(i);
      begun_twice += static_cast<int>(count("begin " + number)) - 1;
      EXPECT_EQ(count("end " + number), 1U) << number;
      EXPECT_EQ(count("after " + number), 1U) << number;
      EXPECT_LT(std::find(all.begin(), all.end(), "end " + number),
                std::find(all.begin(), all.end(), "after " + number));
    }
    EXPECT_EQ(begun_twice, twice);
  }

  std::unique_ptr<ChildProcess> owner_;
  std::unique_ptr<ChildProcess> claimer_;
};

TEST_F(ClaimerKilled, what_it_ran_runs_again_with_an_attempt_counted) {
  claimer_->kill();
  EXPECT_TRUE(eventually([&] {
    return value("SELECT count(*) FROM outbox.parked_state WHERE attempts = 1") ==
           std::to_string(kThreads);
  }));
  expect_that_all_ended(kThreads);
}

TEST_F(ClaimerKilled, what_it_runs_goes_on_when_the_owner_of_the_lanes_is_killed) {
  owner_->kill();
  EXPECT_TRUE(eventually([&] { return list_lanes(*claimer_) == "64"; }));
  EXPECT_EQ(count_runs(*claimer_), kThreads);
  expect_that_all_ended(kThreads);
}

TEST_F(ClaimerKilled, both_are_killed) {
  claimer_->kill();
  owner_->kill();
  owner_ = start();
  expect_that_all_ended(2 * kThreads);
}

TEST_F(WorkerKilled, a_task_that_kills_its_worker_after_a_while_ends_dead) {
  auto worker = start();
  enqueue("later", "x", "a");
  std::set<std::string> opened{""};  // the tokens of the runs that were let go
  const auto is_dead = [&] {
    if (!worker->running()) {
      close_gate();
      worker = start();
    }
    const std::string token = value(
        "SELECT coalesce(max(token::text), '') FROM outbox.parked_state WHERE state = 'running'");
    if (opened.insert(token).second) open_gate();
    return count_rows("dead") == 1;
  };
  EXPECT_TRUE(eventually(is_dead, std::chrono::minutes(2)));
  EXPECT_EQ(count("begin x"), 4U) << "three delays are three retries";
  EXPECT_EQ(value("SELECT attempts FROM outbox.parked_state"), "4");
}

TEST_F(WorkerKilled, one_that_was_suspended_past_its_heartbeats_is_told_and_cannot_note_its_end) {
  const auto suspended = start();
  enqueue("slow", "x", "a");
  EXPECT_TRUE(eventually([&] { return count_rows("running") == 1; }));
  const std::string token = value("SELECT token FROM outbox.parked_state");
  suspended->signal(SIGSTOP);
  const auto other = start();
  EXPECT_TRUE(eventually([&] { return count("begin x") == 2; }));
  EXPECT_TRUE(eventually([&] { return count_rows("running") == 1; }));
  EXPECT_NE(value("SELECT token FROM outbox.parked_state"), token);
  suspended->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return count("told x") == 1; }));
  EXPECT_EQ(count_rows("running"), 1U) << "the other one's run is untouched";
  open_gate();
  EXPECT_TRUE(eventually([&] { return count("end x") == 1; }));
  expect_all_done();
}

TEST_F(WorkerKilled, a_run_outlasts_a_restart_of_the_database) {
  OUTBOX_NEEDS_PGBIN();
  OwnPostgres server;
  database_ = std::make_unique<PostgresDatabase>(server.url(), PostgresDatabase::Schema::migrated);
  const auto worker = start();
  enqueue("slow", "x", "a");
  EXPECT_TRUE(eventually([&] { return count_rows("running") == 1; }));
  server.stop_immediate();
  open_gate();
  EXPECT_TRUE(eventually([&] { return count("end x") == 1; }))
      << "it does not wait for the database";
  server.start();
  expect_all_done();
  EXPECT_EQ(count("begin x"), 1U);
  EXPECT_EQ(worker->running(), true);
  database_.reset();
}

TEST_F(WorkerKilled, a_task_that_kills_its_worker_each_time_ends_dead_and_the_others_are_done) {
  for (int i = 0; i < 20; ++i) enqueue("note", std::to_string(i));
  enqueue("crash", "x", "a");
  for (int i = 20; i < 40; ++i) enqueue("note", std::to_string(i));
  auto worker = start();
  const auto is_dead = [&] {
    if (!worker->running()) worker = start();
    return value("SELECT count(*) FROM outbox.parked_state WHERE state = 'dead'") == "1";
  };
  EXPECT_TRUE(eventually(is_dead, std::chrono::minutes(2)));
  if (!worker->running()) worker = start();
  expect_all_done();
  for (int i = 0; i < 40; ++i) EXPECT_GE(count(std::to_string(i)), 1U) << i;
}

TEST_F(WorkerKilled, one_that_was_suspended_past_its_lease_is_told_and_writes_no_end) {
  const auto suspended = start();
  enqueue("slow", "x", "a");
  EXPECT_TRUE(eventually([&] { return count("begin x") == 1; }));
  suspended->signal(SIGSTOP);
  const auto other = start();
  EXPECT_TRUE(eventually([&] { return count("begin x") == 2; })) << "it took over";
  suspended->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return count("told x") == 1; }));
  EXPECT_NE(value("SELECT outbox.pending('task.default') + (SELECT count(*) FROM outbox.parked)"),
            "0");
  open_gate();
  EXPECT_TRUE(eventually([&] { return count("end x") == 1; }));
  expect_all_done();
}

}  // namespace
}  // namespace outbox::test
