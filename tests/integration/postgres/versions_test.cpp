// Tests the core of the program on each version of PostgreSQL, and through PgBouncer in transaction
// mode: writers in every way, a relay that is killed, parked events, tasks, retention, the verbs,
// and the ledger at the end.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <outbox/postgres.hpp>
#include <outbox/worker.hpp>
#include <sstream>

#include "integration/relay/harness.hpp"
#include "integration/retention/fixture.hpp"
#include "support/own_postgres.hpp"
#include "support/relay_process.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

constexpr int kOfEach = 20;

class PostgresCore : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "PgBouncer") {
      OUTBOX_NEEDS_POSTGRES();
      OUTBOX_NEEDS("OUTBOX_TEST_PGBOUNCER", "pgbouncer in transaction mode");
      database_ = std::make_unique<PostgresDatabase>();
      url_ = url_of_database(*environment("OUTBOX_TEST_PGBOUNCER"), database_->name());
    } else {
      const std::string programs = find_programs(GetParam());
      if (programs.empty())
        GTEST_SKIP() << "needs the programs of PostgreSQL " << GetParam()
                     << ": OUTBOX_TEST_POSTGRES_VERSIONS has none (scripts/test fetches them)";
      start(programs);
      database_ =
          std::make_unique<PostgresDatabase>(server_->url(), PostgresDatabase::Schema::empty);
      url_ = database_->url();
    }
    admin_.emplace(database_->url());
    std::ofstream(config_) << "[store]\nurl = \"" << url_
                           << "\"\n[subscription.orders]\nsink = \"file\"\n"
                           << "[subscription.orders.file]\npath = \"" << lines_ << "\"\n";
  }

  /// The folder of this version's programs. The variable has "14.23=FOLDER 15.18=FOLDER ...".
  static std::string find_programs(const std::string& version) {
    std::istringstream all(environment("OUTBOX_TEST_POSTGRES_VERSIONS").value_or(""));
    for (std::string one; all >> one;) {
      if (one.starts_with(version + ".")) return one.substr(one.find('=') + 1);
    }
    return {};
  }
  /// Starts a copy of the programs. The server runs as another user, who may not be allowed to
  /// enter the cache.
  void start(const std::string& programs) {
    const std::filesystem::path copy = folder_.file("server");
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
    std::filesystem::copy(
        std::filesystem::path(programs).parent_path(), copy,
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    const std::string before = environment("OUTBOX_TEST_PGBIN").value_or("");
    ASSERT_EQ(::setenv("OUTBOX_TEST_PGBIN", (copy / "bin").c_str(), 1), 0);
    server_ = std::make_unique<OwnPostgres>(std::vector<std::string>{"wal_level = logical"});
    ASSERT_EQ(::setenv("OUTBOX_TEST_PGBIN", before.c_str(), 1), 0);
    EXPECT_TRUE(Pg(server_->url()).value("SHOW server_version").starts_with(GetParam() + "."));
  }

  /// Runs the program, keeps its output in `said_`, and returns its exit status.
  int outbox(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), outbox_program());
    arguments.insert(arguments.end(), {"-c", config_});
    ChildProcess program({.command = std::move(arguments), .output = folder_.file("said")});
    const auto status = program.wait();
    std::ifstream in(folder_.file("said"));
    std::stringstream text;
    text << in.rdbuf();
    said_ = text.str();
    return status.value_or(-1);
  }

  void write_in_every_way() {
    admin_->run(
        "SELECT outbox.enqueue('order', (n % 3)::text, 'Placed', '{}'::jsonb) FROM generate_series(1, 20) n");
    admin_->run(
        "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) "
        "SELECT 'order', (n % 3)::text, 'Paid', '{}' FROM generate_series(1, 20) n");
    Pg application(url_);
    for (int n = 0; n < kOfEach; ++n) {
      postgres::Transaction tx(application.native());
      tx.enqueue(make_event("Sent", n));
      if (n % 4 == 3) {
        tx.rollback();
      } else {
        tx.commit();
      }
    }
    ASSERT_EQ(outbox({"enqueue", "order", "1", "Typed", "{}"}), 0) << said_;
    written_ = std::stoul(admin_->value("SELECT count(*) FROM outbox.event"));
    EXPECT_EQ(written_, kOfEach * 3 - kOfEach / 4 + 1);
  }
  static Event make_event(const std::string& type, int key) {
    Event event;
    event.aggregate_type = "order";
    event.aggregate_id = std::to_string(key % 3);
    event.event_type = type;
    event.payload = "{}";
    return event;
  }

  [[nodiscard]] bool settled() const {
    const auto store = open_at(url_);
    const auto catalog = store->catalog().value();
    const auto rows = catalog->subscriptions().value();
    return std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
      return catalog->progress(row, 1).value().pending == 0;
    });
  }

  const TempDir folder_;
  const std::string config_{folder_.file("outbox.toml")};
  const std::string lines_{folder_.file("lines")};
  std::unique_ptr<OwnPostgres> server_;
  std::unique_ptr<PostgresDatabase> database_;
  std::optional<Pg> admin_;
  std::string url_;
  std::string said_;
  std::size_t written_{0};
};

INSTANTIATE_TEST_SUITE_P(Server, PostgresCore,
                         ::testing::Values("14", "15", "16", "17", "18", "PgBouncer"),
                         [](const auto& server) {
                           return server.param == "PgBouncer" ? "PgBouncer" : "V" + server.param;
                         });

TEST_P(PostgresCore, does_all_that_is_promised) {
  ASSERT_EQ(outbox({"migrate"}), 0) << said_;
  ASSERT_EQ(outbox({"migrate"}), 0) << said_;
  make_small_partitions(*admin_, 20, 500);
  write_in_every_way();

  // A relay is killed, and a successor goes on.
  auto relay = start_outbox_relay(config_, folder_.file("relay.log"));
  ASSERT_TRUE(eventually([&] { return lines_in(lines_) > 0; }));
  relay->kill();
  relay = start_outbox_relay(config_, folder_.file("relay.log"));
  ASSERT_TRUE(eventually([&] { return event_ids_in(lines_).size() == written_; }));

  // The relay in this program has a destination that rejects an event until it is told not to.
  RelayOptions options{.store_url = url_};
  SubscriptionSpec strict = custom("strict", {"Poison", "Paid"});
  strict.delays = {std::chrono::milliseconds(100)};
  options.subscriptions = {strict};
  const auto mended = std::make_shared<std::atomic<bool>>(false);
  auto sink = std::make_unique<testing::FailingSink>([mended](const EventView& event) {
    return event.event_type == "Poison" && !*mended ? Outcome::Kind::rejected
                                                    : Outcome::Kind::acked;
  });
  const auto strict_events = sink->recording();
  const auto inside = make_relay(options);
  ASSERT_TRUE(inside->use("strict", std::move(sink)));
  ASSERT_TRUE(inside->start());
  admin_->run("SELECT outbox.enqueue('order', '1', 'Poison', '{}'::jsonb)");
  ASSERT_TRUE(
      eventually([&] { return admin_->value("SELECT count(*) FROM outbox.parked") == "1"; }));
  *mended = true;
  ASSERT_EQ(outbox({"parked", "retry", "--subscription", "strict"}), 0) << said_;
  ASSERT_TRUE(eventually([&] { return strict_events->events().size() == kOfEach + 1; }));

  // One of these tasks fails at first.
  std::atomic<int> done{0};
  Handlers handlers;
  handlers.on("send", [&](std::string_view, const TaskRun& run) {
    if (run.key == "7" && run.attempt == 1) return TaskEnd::failed("not yet");
    ++done;
    return TaskEnd::done();
  });
  WorkerOptions worker_options;
  worker_options.relay.store_url = url_;
  worker_options.queues = {"mail"};
  worker_options.delays = {std::chrono::milliseconds(50)};
  auto worker = Worker::create(worker_options, handlers);
  ASSERT_TRUE(ok(worker));
  ASSERT_TRUE(ok((*worker)->start()));
  const auto store = open_at(url_);
  for (int n = 0; n < kOfEach; ++n) {
    admin_->run("SELECT outbox.enqueue_task('mail', 'send', '{}'::jsonb, key => '" +
                std::to_string(n) + "')");
  }
  EXPECT_TRUE(eventually([&] { return done == kOfEach; }));

  // History that all subscriptions have passed is removed.
  close_partition(*admin_);
  admin_->run("SELECT outbox.enqueue('order', '1', 'Last', '{}'::jsonb)");
  ASSERT_TRUE(eventually(
      [&] { return settled() && admin_->value("SELECT count(*) FROM outbox.parked") == "0"; }));
  for (const char* name : {"orders", "strict", "task.mail"})
    EXPECT_EQ(Verifier::verify(url_, name), "") << name;
  // Cursors that were taken while other transactions of the server ran hold these transactions,
  // until the next event moves the cursors on.
  const auto prunes = [&] {
    admin_->run("SELECT outbox.enqueue('order', '1', 'Later', '{}'::jsonb)");
    if (!eventually([&] { return settled(); })) return false;
    EXPECT_EQ(outbox({"prune", "--older-than", "0s", "--apply"}), 0) << said_;
    return admin_->value("SELECT coalesce(sum(events), 0) > 0 FROM outbox.pruned") == "t";
  };
  EXPECT_TRUE(eventually(prunes)) << said_;

  // These are the verbs that people use.
  using Words = std::vector<std::string>;
  for (const Words& verb : {Words{"status"},
                            {"status", "--json"},
                            {"subscription", "list"},
                            {"subscription", "apply"},
                            {"events"},
                            {"parked", "list"},
                            {"tasks", "list"},
                            {"replay", "--list"},
                            {"sinks"},
                            {"verify"},
                            {"prune"},
                            {"subscription", "pause", "orders"},
                            {"subscription", "resume", "orders"},
                            {"replay", "orders", "--apply"}}) {
    EXPECT_EQ(outbox(verb), 0) << verb.front() << ": " << said_;
  }
  EXPECT_TRUE((*worker)->stop(std::chrono::seconds(20)).drained);
  EXPECT_TRUE(inside->stop(std::chrono::seconds(20)).drained);
  for (const Words& verb :
       {Words{"subscription", "reset", "orders", "--to", "beginning", "--apply"},
        {"subscription", "rename", "orders", "sales"},
        {"verify"},
        {"subscription", "drop", "sales", "--apply"}}) {
    EXPECT_EQ(outbox(verb), 0) << verb[1 % verb.size()] << ": " << said_;
  }
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0);
}

TEST_P(PostgresCore, tells_a_relay_of_commits_by_the_write_ahead_log) {
  ASSERT_EQ(outbox({"migrate", "--with-wal"}), 0) << said_;
  RelayOptions options{.store_url = url_, .subscriptions = {custom("all")}, .feed = Feed::wal};
  options.wake_up = false;
  const auto relay = make_relay(options);
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  const auto comes_to = [&](const std::string& feed) {
    return eventually([&] { return relay->report().feed == feed; });
  };
  if (GetParam() == "PgBouncer") {
    EXPECT_TRUE(eventually([&] { return relay->report().feed_trouble == "behind a pooler"; }))
        << relay->report().feed_trouble;
    write_in_every_way();
    EXPECT_TRUE(recording->wait_for(written_, std::chrono::seconds(60)));
    EXPECT_EQ(relay->report().feed, "poll");
    return;
  }
  ASSERT_TRUE(comes_to("wal")) << relay->report().feed_trouble;
  write_in_every_way();
  ASSERT_TRUE(recording->wait_for(written_, std::chrono::seconds(60)));
  // Without the log a relay that may not be notified is woken by no commit.
  const std::uint64_t before = relay->report().wakeups_by_commit;
  EXPECT_TRUE(eventually([&] {
    admin_->run("SELECT outbox.enqueue('order', '1', 'Later', '{}'::jsonb)");
    return relay->report().wakeups_by_commit > before;
  }));
  admin_->run("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
  EXPECT_TRUE(comes_to("poll"));
  EXPECT_TRUE(comes_to("wal")) << relay->report().feed_trouble;
  written_ = std::stoul(admin_->value("SELECT count(*) FROM outbox.event"));
  EXPECT_TRUE(recording->wait_for(written_, std::chrono::seconds(60)));
}

}  // namespace
}  // namespace outbox::test
