// Tests a relay whose outbox is replaced while it runs: the tables are dropped, or the file is
// removed, and created again.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "integration/relay/harness.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/sqlite_shop.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using std::chrono::seconds;

/// An outbox that can be recreated.
class Place {
 public:
  Place() = default;
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  Place(Place&&) = delete;
  Place& operator=(Place&&) = delete;
  virtual ~Place() = default;

  [[nodiscard]] virtual std::string url() const = 0;
  virtual void write(int events) = 0;
  virtual void make_anew() = 0;
};

class OnPostgres final : public Place {
 public:
  [[nodiscard]] std::string url() const override { return database_.url(); }
  void write(int events) override {
    database_.connect().exec(
        "SELECT outbox.enqueue('Order', n::text, 'OrderPlaced', '{}'::jsonb) FROM generate_series(1, $1::int) n",
        {std::to_string(events)});
  }
  void make_anew() override {
    // The statement may deadlock with the running relay.
    ASSERT_TRUE(eventually([&] {
      try {
        database_.connect().exec("DROP SCHEMA IF EXISTS outbox CASCADE");
        return true;
      } catch (const PgError&) {
        return false;
      }
    }));
    ASSERT_TRUE(store::open_store({.url = url()}).value()->migrate());
  }

 private:
  PostgresDatabase database_;
};

class OnSqlite final : public Place {
 public:
  OnSqlite() { migrate_sqlite(path_); }
  [[nodiscard]] std::string url() const override { return "sqlite:" + path_; }
  void write(int events) override {
    SqliteFile file(path_);
    for (int i = 0; i < events; ++i) {
      (void)file.exec(
          "INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload) "
          "VALUES ('Order', '1', 'OrderPlaced', '{}')");
    }
  }
  void make_anew() override {
    for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + part);
    migrate_sqlite(path_);
  }

 private:
  TempDir folder_;
  std::string path_{folder_.file("shop.db")};
};

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::size_t count_in(const std::string& path, const std::string& words) {
  const std::string text = read_text(path);
  std::size_t count = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

class ReplacedStore : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "sqlite") {
      place_ = std::make_unique<OnSqlite>();
      return;
    }
    OUTBOX_NEEDS_POSTGRES();
    place_ = std::make_unique<OnPostgres>();
  }

  std::unique_ptr<Place> place_;
};
INSTANTIATE_TEST_SUITE_P(Stores, ReplacedStore, ::testing::Values("postgres", "sqlite"),
                         [](const auto& one) { return one.param; });

TEST_P(ReplacedStore, what_is_enqueued_into_the_new_one_is_delivered) {
  RelayOptions options;
  options.store_url = place_->url();
  options.subscriptions = {custom("all")};
  const auto relay = make_relay(options);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  std::size_t written = 0;
  for (int round = 0; round < 3; ++round) {
    // The last write of a round has fewer events than the outbox had, so that the numbers in the
    // new one are old ones.
    for (const int events : {50, 5}) {
      place_->write(events);
      written += static_cast<std::size_t>(events);
      ASSERT_TRUE(all->wait_for(written, seconds(60))) << relay->report().last_error;
    }
    ASSERT_NO_FATAL_FAILURE(place_->make_anew());
    place_->write(5);
    written += 5;
    ASSERT_TRUE(all->wait_for(written, seconds(60))) << relay->report().last_error;
  }
  ASSERT_TRUE(eventually_settled(place_->url(), "all"));
  EXPECT_TRUE(relay->stop(seconds(60)).drained);
  EXPECT_EQ(all->events().size(), written);
}

TEST_P(ReplacedStore, a_relay_with_nothing_subscribed_says_so_again_and_again) {
  const TempDir folder;
  const std::string config = folder.file("outbox.toml");
  std::ofstream(config) << "[store]\nurl = \"" << place_->url() << "\"\n";
  const std::string log = folder.file("log");
  const auto relay = start_outbox_relay(config, log);
  EXPECT_TRUE(eventually([&] { return count_in(log, "nothing is delivered") > 1; }))
      << read_text(log);
  ASSERT_NO_FATAL_FAILURE(place_->make_anew());
  EXPECT_TRUE(eventually([&] { return count_in(log, "another outbox") > 0; })) << read_text(log);
  EXPECT_EQ(count_in(log, "delivers"), 0U) << read_text(log);
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0);
}

}  // namespace
}  // namespace outbox::test
