// Which consumer gets which pages, over a log in memory.
#include "feed/pump.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <optional>

#include "unit/feed/memory_log.hpp"

namespace outbox::feed {
namespace {

using std::chrono::seconds;
using store::Cursor;
using store::Page;
using ::testing::ElementsAre;

class Consumer final : public PageConsumer {
 public:
  explicit Consumer(MemoryLog& log) : log_(log) {}
  [[nodiscard]] bool has_room(std::size_t pages) const override {
    const MutexLock lock(mutex_);
    return pages <= room_;
  }
  void take_page(const std::shared_ptr<const Page>& page) override {
    EXPECT_TRUE(log_.is_flushed()) << "a crash could undo what was read";
    {
      const MutexLock lock(mutex_);
      for (const EventView& event : page->events) seqs_.push_back(event.seq);
      if (!page->events.empty()) pages_.push_back(page);
    }
    changed_.notify_all();
  }
  void set_room(std::size_t pages) {
    const MutexLock lock(mutex_);
    room_ = pages;
  }
  /// False: it did not get there in time.
  bool wait_for(std::int64_t seq) const {
    const MutexLock lock(mutex_);
    return changed_.wait_for(mutex_, seconds(30), [this, seq]() OUTBOX_REQUIRES(mutex_) {
      return !seqs_.empty() && seqs_.back() >= seq;
    });
  }
  std::vector<std::int64_t> seqs() const {
    const MutexLock lock(mutex_);
    return seqs_;
  }
  std::vector<std::shared_ptr<const Page>> pages() const {
    const MutexLock lock(mutex_);
    return pages_;
  }

 private:
  MemoryLog& log_;
  mutable Mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::size_t room_ OUTBOX_GUARDED_BY(mutex_){100};
  std::vector<std::int64_t> seqs_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const Page>> pages_ OUTBOX_GUARDED_BY(mutex_);
};

class PumpTest : public ::testing::Test {
 protected:
  PumpTest() { EXPECT_TRUE(pump_.start()); }
  void add(Consumer& consumer, std::int64_t delivered = 0,
           store::LaneMask lanes = store::kAllLanes) {
    pump_.add(consumer, lanes, Cursor{.s1 = std::to_string(delivered)});
  }
  std::optional<Error> failure() {
    const MutexLock lock(mutex_);
    failed_.wait_for(mutex_, seconds(30),
                     [this]() OUTBOX_REQUIRES(mutex_) { return failure_.has_value(); });
    return failure_;
  }

  MemoryLog log_;
  Mutex mutex_;
  std::condition_variable_any failed_;
  std::optional<Error> failure_ OUTBOX_GUARDED_BY(mutex_);
  Consumer one_{log_};
  Consumer other_{log_};
  Pump pump_{std::make_unique<MemoryReader>(log_), std::make_unique<NoWakeup>(),
             PumpOptions{.page_rows = 3}, [this](const Error& error) {
               {
                 const MutexLock lock(mutex_);
                 EXPECT_FALSE(failure_) << "once";
                 failure_ = error;
               }
               failed_.notify_all();
             }};
};

TEST_F(PumpTest, one_that_is_behind_reads_in_pages_until_it_has_joined_the_others) {
  add(one_);
  log_.commit(8);
  ASSERT_TRUE(one_.wait_for(8));
  EXPECT_THAT(one_.seqs(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(one_.pages().size(), 3U);
  EXPECT_GT(log_.reads_ahead(), 0);
  add(other_, 2);
  ASSERT_TRUE(other_.wait_for(8));
  EXPECT_THAT(other_.seqs(), ElementsAre(3, 4, 5, 6, 7, 8));
  // After some turns they share a fetch.
  for (std::int64_t seq = 9; one_.pages().back() != other_.pages().back(); ++seq) {
    ASSERT_LT(seq, 1000) << "they never share a page";
    log_.commit(1);
    ASSERT_TRUE(one_.wait_for(seq));
    ASSERT_TRUE(other_.wait_for(seq));
  }
}

TEST_F(PumpTest, one_without_room_holds_up_nobody_and_misses_nothing) {
  other_.set_room(0);
  add(one_);
  add(other_);
  log_.commit(7);
  ASSERT_TRUE(one_.wait_for(7));
  EXPECT_THAT(other_.seqs(), ElementsAre());
  other_.set_room(1);
  pump_.room();
  ASSERT_TRUE(other_.wait_for(7));
  EXPECT_THAT(other_.seqs(), ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST_F(PumpTest, other_lanes_are_read_apart) {
  add(one_, 0, 0x0F);
  add(other_, 0, 0xF0);
  log_.commit(2);
  ASSERT_TRUE(one_.wait_for(2));
  ASSERT_TRUE(other_.wait_for(2));
  EXPECT_NE(one_.pages().back(), other_.pages().back());
  EXPECT_THAT(log_.lanes(), ElementsAre(0x0F, 0xF0));
}

TEST_F(PumpTest, one_that_was_removed_gets_nothing_more) {
  add(one_);
  add(other_);
  log_.commit(1);
  ASSERT_TRUE(one_.wait_for(1));
  ASSERT_TRUE(other_.wait_for(1));
  pump_.remove(one_);
  log_.commit(1);
  ASSERT_TRUE(other_.wait_for(2));
  EXPECT_THAT(one_.seqs(), ElementsAre(1));
}

TEST_F(PumpTest, a_failure_is_reported_once_and_ends_the_reading) {
  add(one_);
  log_.commit(1);
  ASSERT_TRUE(one_.wait_for(1));
  log_.break_down();
  const auto error = failure();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "the log is gone");
  pump_.remove(one_);  // returns although the pump has stopped
  pump_.stop();
}

TEST_F(PumpTest, nothing_is_taken_after_stop) {
  add(one_);
  log_.commit(1);
  ASSERT_TRUE(one_.wait_for(1));
  pump_.stop();
  log_.commit(1);
  const auto fetches = pump_.fetches();
  pump_.room();
  EXPECT_EQ(pump_.fetches(), fetches);
  EXPECT_THAT(one_.seqs(), ElementsAre(1));
}

}  // namespace
}  // namespace outbox::feed
