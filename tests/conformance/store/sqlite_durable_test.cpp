// Tests promise P3 on SQLite: what is handed out survives a loss of power, whatever the writers'
// PRAGMA synchronous is.
#include <gtest/gtest.h>

#include "conformance/store/sqlite_database.hpp"
#include "conformance/store/sync_counter.hpp"
#include "store/store.hpp"

namespace outbox::conformance {
namespace {

class SqliteDurable : public ::testing::Test {
 protected:
  void SetUp() override {
    count_syncs();
    auto store = store::open_store({.url = database_.url()});
    ASSERT_TRUE(store);
    store_ = std::move(*store);
    ASSERT_TRUE(store_->migrate());
    app_ = std::make_unique<Application>(database_.path());
    app_->run("PRAGMA wal_autocheckpoint = 0");
    app_->run("PRAGMA synchronous = OFF");
    auto reader = store_->reader();
    ASSERT_TRUE(reader);
    reader_ = std::move(*reader);
  }
  void commit_event() const {
    app_->run(
        "INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload) VALUES"
        " ('order', '1', 'OrderPlaced', '{}')");
  }
  /// Reads one page and returns the number of its events.
  std::size_t read() {
    EXPECT_TRUE(reader_->start({.cursor = cursor_}));
    auto page = reader_->finish();
    EXPECT_TRUE(page);
    cursor_.position = page->position;
    return page->events.size();
  }
  Syncs syncs_of_waiting() {
    (void)take_syncs();
    EXPECT_TRUE(reader_->wait_durable());
    return take_syncs();
  }

  SqliteDatabase database_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Application> app_;
  std::unique_ptr<store::LogReader> reader_;
  store::Cursor cursor_{.s1 = "-", .s2 = "-", .position = 0, .bound = 0};
};

TEST_F(SqliteDurable, a_page_waits_for_one_sync_of_the_wal) {
  (void)read();
  (void)syncs_of_waiting();
  (void)take_syncs();
  commit_event();
  EXPECT_EQ(take_syncs(), (Syncs{.wal = 0, .database = 0})) << "the writer does not sync";
  EXPECT_EQ(read(), 1U);
  EXPECT_EQ(syncs_of_waiting(), (Syncs{.wal = 1, .database = 0}));
}

TEST_F(SqliteDurable, without_a_new_commit_nothing_is_synced_again) {
  commit_event();
  EXPECT_EQ(read(), 1U);
  (void)syncs_of_waiting();
  EXPECT_EQ(read(), 0U);
  EXPECT_EQ(syncs_of_waiting(), (Syncs{.wal = 0, .database = 0}));
}

TEST_F(SqliteDurable, the_first_page_syncs_what_was_there_before) {
  commit_event();
  EXPECT_EQ(read(), 1U);
  EXPECT_EQ(syncs_of_waiting(), (Syncs{.wal = 1, .database = 1}));
}

TEST_F(SqliteDurable, after_a_checkpoint_without_syncs_the_database_file_is_synced_too) {
  commit_event();
  EXPECT_EQ(read(), 1U);
  (void)syncs_of_waiting();
  commit_event();
  app_->run("PRAGMA wal_checkpoint(TRUNCATE)");
  commit_event();
  EXPECT_EQ(read(), 2U);
  const Syncs syncs = syncs_of_waiting();
  EXPECT_EQ(syncs.wal, 1);
  EXPECT_EQ(syncs.database, 1);
  commit_event();
  EXPECT_EQ(read(), 1U);
  EXPECT_EQ(syncs_of_waiting(), (Syncs{.wal = 1, .database = 0}));
}

TEST_F(SqliteDurable, an_event_that_is_only_in_the_database_file_is_synced_there) {
  (void)read();
  (void)syncs_of_waiting();
  commit_event();
  app_->run("PRAGMA wal_checkpoint(TRUNCATE)");
  EXPECT_EQ(read(), 1U);
  EXPECT_EQ(syncs_of_waiting().database, 1);
}

TEST_F(SqliteDurable, a_flushed_settlement_is_synced_and_an_eventual_one_is_not) {
  auto progress = store_->progress();
  ASSERT_TRUE(progress);
  store::Settlement row;
  row.subscription = 1;
  row.position = 1;
  (void)take_syncs();
  ASSERT_TRUE(
      (*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::eventual));
  EXPECT_EQ(take_syncs().wal, 0);
  ASSERT_TRUE((*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::flushed));
  EXPECT_EQ(take_syncs().wal, 1);
  ASSERT_TRUE(
      (*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::eventual));
  EXPECT_EQ(take_syncs().wal, 0);
}

}  // namespace
}  // namespace outbox::conformance
