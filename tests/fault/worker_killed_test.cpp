// Workers that are killed, and suspended past their lease, while they work.
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

#include "support/ledger_check.hpp"
#include "support/own_postgres.hpp"
#include "support/postgres_database.hpp"
#include "support/servers.hpp"
#include "support/testkit.hpp"

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
  /// Not before so many seconds from now, by the clock of the database.
  void enqueue_in(int seconds, const std::string& payload) const {
    (void)value("SELECT outbox.enqueue_task('default', 'note', '" + payload +
                "', content_type => 'text/plain', execute_at => clock_timestamp() + interval '" +
                std::to_string(seconds) + " s')");
  }
  void enqueue(const std::string& type, const std::string& payload, const std::string& key = {}) {
    Pg connection(database_->url());
    postgres::Transaction tx(connection.native());
    (void)enqueue_task(
        box_, tx, {.type = type, .payload = payload, .key = key, .content_type = "text/plain"});
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
             value("SELECT count(*) FROM outbox.parked WHERE state <> 'dead'") == "0";
    }));
    Pg connection(database_->url());
    EXPECT_EQ(ledger_fault(connection, "task.default"), "");
  }
  void open_gate() const { std::ofstream(file_ + ".go") << "go"; }
  void close_gate() const { (void)::unlink((file_ + ".go").c_str()); }
  [[nodiscard]] std::size_t count_rows(const std::string& state) const {
    return std::stoul(value("SELECT count(*) FROM outbox.parked WHERE state = '" + state + "'"));
  }

  const TempDir folder_;
  const postgres::Outbox box_;
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

TEST_F(WorkerKilled, an_end_is_noted_once_and_who_asked_is_told_once_however_often_a_task_runs) {
  int written = 0;
  const auto write = [&](int tasks) {
    Pg connection(database_->url());
    postgres::Transaction tx(connection.native());
    for (int i = 0; i < tasks; ++i, ++written) {
      Task task{.type = "made", .payload = std::to_string(written)};
      task.on_done = TaskEvent{.aggregate_type = "told", .event_type = "Made"};
      task.unique_key = "u" + std::to_string(written);
      (void)enqueue_task(box_, tx, task);
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
  EXPECT_EQ(value("SELECT attempts FROM outbox.parked WHERE state = 'running'"), "1");
  EXPECT_EQ(count("begin z"), 0U) << "it waits for the one before it of its key";
  open_gate();
  EXPECT_TRUE(eventually([&] { return count("end x") == 1 && count("end z") == 1; }));
  expect_all_done();
  EXPECT_EQ(value("SELECT count(*) FROM outbox.worker"), "1") << "the dead one is forgotten";
}

TEST_F(WorkerKilled, a_task_that_kills_its_worker_after_a_while_ends_dead) {
  auto worker = start();
  enqueue("later", "x", "a");
  std::set<std::string> opened{""};  // tokens
  const auto is_dead = [&] {
    if (!worker->running()) {
      close_gate();
      worker = start();
    }
    const std::string token =
        value("SELECT coalesce(max(token::text), '') FROM outbox.parked WHERE state = 'running'");
    if (opened.insert(token).second) open_gate();
    return count_rows("dead") == 1;
  };
  EXPECT_TRUE(eventually(is_dead, std::chrono::minutes(2)));
  EXPECT_EQ(count("begin x"), 4U) << "three delays are three retries";
  EXPECT_EQ(value("SELECT attempts FROM outbox.parked"), "4");
}

TEST_F(WorkerKilled, one_that_was_suspended_past_its_heartbeats_is_told_and_cannot_note_its_end) {
  const auto suspended = start();
  enqueue("slow", "x", "a");
  EXPECT_TRUE(eventually([&] { return count_rows("running") == 1; }));
  const std::string token = value("SELECT token FROM outbox.parked");
  suspended->signal(SIGSTOP);
  const auto other = start();
  EXPECT_TRUE(eventually([&] { return count("begin x") == 2; }));
  EXPECT_TRUE(eventually([&] { return count_rows("running") == 1; }));
  EXPECT_NE(value("SELECT token FROM outbox.parked"), token);
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
    return value("SELECT count(*) FROM outbox.parked WHERE state = 'dead'") == "1";
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
