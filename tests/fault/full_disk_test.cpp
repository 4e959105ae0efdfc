// Tests that the disk may be full under the SQLite file that has the outbox, or under the file that
// events are delivered to, and then have room again.
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "integration/relay/harness.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/sqlite_shop.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

/// Mounts a small disk.
class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount a small file system";
    std::filesystem::create_directory(disk_);
    mounted_ = ::mount("none", disk_.c_str(), "tmpfs", 0, "size=6m") == 0;
    if (!mounted_) GTEST_SKIP() << "needs the right to mount a tmpfs";
  }
  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(::umount2(disk_.c_str(), MNT_DETACH), 0);
    }
  }
  void make_room() const {
    ASSERT_EQ(::mount("none", disk_.c_str(), "tmpfs", MS_REMOUNT, "size=256m"), 0);
  }
  [[nodiscard]] static ShopOptions load() {
    return {.writers = 4,
            .transactions = 0,
            .longest_pause = std::chrono::milliseconds(2),
            .padding = 1000,
            .reconnect = true};
  }

  const TempDir folder_;
  const std::string disk_{folder_.file("disk")};
  bool mounted_{false};
};

TEST_F(FullDisk, of_the_outbox_refuses_writers_and_loses_nothing) {
  const std::string path = disk_ + "/shop.db";
  const std::string file = folder_.file("lines");
  const std::string log = folder_.file("log");
  migrate_sqlite(path);
  SqliteShop shop(path, load());
  const auto relay =
      start_relay({.store_url = "sqlite:" + path, .file = file, .page_rows = 20, .log = log});
  shop.start();
  ASSERT_TRUE(eventually([&] { return lines_in(file) > 20; }));
  ASSERT_TRUE(eventually([&] { return shop.refused() > 50; }));
  const auto said = [&] {
    std::ifstream in(log);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_TRUE(eventually([&] { return said().find("full") != std::string::npos; })) << said();
  EXPECT_TRUE(relay->running());
  make_room();
  const std::size_t seen = lines_in(file);
  EXPECT_TRUE(eventually([&] { return lines_in(file) > seen + 200; })) << said();
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file)).lost == 0; }));
  EXPECT_TRUE(eventually_settled("sqlite:" + path, "lines"));
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0);
  const Verdict verdict = judge(attempts, deliveries_in(file));
  EXPECT_TRUE(verdict.kept()) << verdict;
  EXPECT_EQ(verdict.duplicates, 0U) << verdict;
}

TEST_F(FullDisk, of_the_destination_pauses_the_subscription_until_there_is_room) {
  OUTBOX_NEEDS_POSTGRES();
  const PostgresDatabase database;
  const std::string file = disk_ + "/orders.jsonl";
  SubscriptionSpec spec;
  spec.name = "orders";
  spec.sink = "file";
  spec.sink_settings["path"] = file;
  const auto relay = make_relay({.store_url = database.url(), .subscriptions = {spec}});
  ASSERT_TRUE(relay->start());
  Shop shop(database.url(), load());
  shop.start();
  ASSERT_TRUE(eventually([&] {
    return read_report(*relay, "orders").reason.find("No space left") != std::string::npos;
  })) << read_report(*relay, "orders").reason;
  make_room();
  const std::size_t seen = lines_in(file);
  EXPECT_TRUE(eventually([&] { return lines_in(file) > seen + 200; }));
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file)).lost == 0; }));
  EXPECT_TRUE(eventually_settled(database.url(), "orders"));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  const Verdict verdict = judge(attempts, deliveries_in(file));
  EXPECT_TRUE(verdict.kept()) << verdict;
  EXPECT_EQ(verdict.duplicates, 0U) << verdict;
  EXPECT_EQ(database.connect().value("SELECT count(*) FROM outbox.parked"), "0")
      << "no event is at fault";
}

}  // namespace
}  // namespace outbox::test
