// Which consumer gets which pages, over a log in memory.
#include "feed/pump.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "support/eventually.hpp"
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
    return pages <= room_ && pages_.size() < most_;
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
  /// Makes the consumer full for good after this many pages.
  void take_at_most(std::size_t pages) {
    const MutexLock lock(mutex_);
    most_ = pages;
  }
  /// Returns false if the event did not arrive in time.
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
  std::size_t most_ OUTBOX_GUARDED_BY(mutex_){100'000};
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

TEST_F(PumpTest, those_that_are_close_in_a_backlog_come_together) {
  log_.commit(300);
  Pump pump(std::make_unique<MemoryReader>(log_), std::make_unique<NoWakeup>(), {.page_rows = 3},
            [](const Error&) {});
  // One consumer is in the middle of a pair that ended earlier, and of a page of the other one,
  // which has not begun it yet.
  pump.add(one_, store::kAllLanes, Cursor{.s1 = "0", .s2 = "290", .position = 20, .bound = 0});
  pump.add(other_, store::kAllLanes, Cursor{.s1 = "0"});
  ASSERT_TRUE(pump.start());
  ASSERT_TRUE(one_.wait_for(300));
  ASSERT_TRUE(other_.wait_for(300));
  pump.stop();
  EXPECT_EQ(one_.seqs().size(), 280U);
  EXPECT_EQ(other_.seqs().size(), 300U);
  // Until they met, one of them had read one page.
  const auto of_one = one_.pages();
  const auto of_other = other_.pages();
  EXPECT_TRUE(std::equal(of_one.begin() + 1, of_one.end(),
                         of_other.end() - static_cast<std::ptrdiff_t>(of_one.size()) + 1));
}

TEST_F(PumpTest, one_that_stays_full_in_a_backlog_is_left_behind) {
  add(one_);
  add(other_);
  log_.commit(9);
  ASSERT_TRUE(one_.wait_for(9));
  ASSERT_TRUE(other_.wait_for(9));
  other_.take_at_most(other_.pages().size() + 5);
  log_.commit(300);
  ASSERT_TRUE(one_.wait_for(309)) << "it waits for ever";
  EXPECT_EQ(other_.seqs().size(), 9U + 15U);
}

TEST_F(PumpTest, pages_are_read_ahead_beside_one_that_is_full) {
  other_.set_room(0);
  add(other_);
  add(one_);
  log_.commit(30);
  ASSERT_TRUE(one_.wait_for(30));
  EXPECT_GT(log_.reads_ahead(), 0);
}

TEST_F(PumpTest, a_page_for_several_knows_what_they_would_each_count) {
  add(one_);
  log_.commit(3);
  ASSERT_TRUE(one_.wait_for(3));
  EXPECT_FALSE(one_.pages().back()->kinds.known()) << "nobody shares it";
  add(other_, 3);
  for (std::int64_t seq = 4; other_.pages().empty() || one_.pages().back() != other_.pages().back();
       ++seq) {
    ASSERT_LT(seq, 1000) << "they never share a page";
    log_.commit(1);
    ASSERT_TRUE(one_.wait_for(seq));
    ASSERT_TRUE(other_.wait_for(seq));
  }
  const auto page = one_.pages().back();
  EXPECT_EQ(page->kinds.of_event().size(), page->events.size());
  EXPECT_EQ(page->tally, store::make_tally(page->events));
}

/// Wherever consumers start and whenever they have room, each gets every event once, in order.
TEST_F(PumpTest, everybody_gets_every_event_once) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same each time
  const auto below = [&](std::int64_t limit) {
    return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random);
  };
  constexpr std::int64_t kEvents = 3000;
  log_.commit(kEvents);
  std::vector<std::unique_ptr<Consumer>> consumers;
  std::vector<std::int64_t> starts;
  for (int i = 0; i < 8; ++i) {
    consumers.push_back(std::make_unique<Consumer>(log_));
    starts.push_back(below(100));
    const bool begun = i % 2 == 1;
    pump_.add(*consumers.back(), store::kAllLanes,
              begun ? Cursor{.s1 = "0", .s2 = std::to_string(kEvents), .position = starts.back()}
                    : Cursor{.s1 = std::to_string(starts.back())});
  }
  for (int i = 0; i < 2000; ++i) {
    consumers[static_cast<std::size_t>(below(8))]->set_room(static_cast<std::size_t>(below(3)));
    pump_.room();
  }
  for (const auto& consumer : consumers) consumer->set_room(100);
  pump_.room();
  for (std::size_t i = 0; i < consumers.size(); ++i) {
    ASSERT_TRUE(consumers[i]->wait_for(kEvents)) << i;
    std::vector<std::int64_t> all(static_cast<std::size_t>(kEvents - starts[i]));
    std::iota(all.begin(), all.end(), starts[i] + 1);
    EXPECT_EQ(consumers[i]->seqs(), all) << i;
    std::int64_t position = consumers[i]->pages().front()->from;
    for (const auto& page : consumers[i]->pages()) {
      EXPECT_EQ(page->from, position);
      position = page->position;
    }
    pump_.remove(*consumers[i]);
  }
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
  pump_.remove(one_);  // This returns although the pump has stopped.
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

// ---- standbys

/// Takes pages, and notes when one has an event that the standby did not have.
class CarefulConsumer final : public PageConsumer {
 public:
  explicit CarefulConsumer(MemoryLog& log) : log_(log) {}
  [[nodiscard]] bool has_room(std::size_t /*pages*/) const override { return true; }
  void take_page(const std::shared_ptr<const Page>& page) override {
    const std::int64_t have = log_.replicated();
    const MutexLock lock(mutex_);
    for (const EventView& event : page->events) {
      EXPECT_EQ(event.seq, last_ + 1);
      last_ = event.seq;
      if (event.seq > have) ++without_;
    }
    changed_.notify_all();
  }
  bool wait_for(std::int64_t seq) {
    const MutexLock lock(mutex_);
    return changed_.wait_for(mutex_, seconds(30),
                             [&]() OUTBOX_REQUIRES(mutex_) { return last_ >= seq; });
  }
  std::int64_t last() {
    const MutexLock lock(mutex_);
    return last_;
  }
  int without() {
    const MutexLock lock(mutex_);
    return without_;
  }

 private:
  MemoryLog& log_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::int64_t last_ OUTBOX_GUARDED_BY(mutex_){0};
  int without_ OUTBOX_GUARDED_BY(mutex_){0};
};

class StandbyPump : public ::testing::Test {
 protected:
  void start(std::chrono::nanoseconds limit = {}) {
    pump_ = std::make_unique<Pump>(
        std::make_unique<MemoryReader>(log_), std::make_unique<NoWakeup>(),
        PumpOptions{.page_rows = 7, .standbys = store::Standbys{}, .standby_limit = limit},
        [](const Error& error) { ADD_FAILURE() << error.text(); });
    ASSERT_TRUE(pump_->start());
  }

  MemoryLog log_;
  CarefulConsumer one_{log_};
  CarefulConsumer two_{log_};
  std::unique_ptr<Pump> pump_;
};

TEST_F(StandbyPump, hands_over_nothing_that_the_standby_does_not_have) {
  start();
  pump_->add(one_, store::kAllLanes, Cursor{.s1 = "0"});
  std::mt19937 random(7);
  std::int64_t committed = 0;
  for (int round = 0; round < 100; ++round) {
    const std::int64_t more = 1 + static_cast<std::int64_t>(random() % 20);
    log_.commit(more);
    committed += more;
    if (round == 50) pump_->add(two_, store::kAllLanes, Cursor{.s1 = "0"});
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 4));
    log_.replicate(committed - static_cast<std::int64_t>(random() % 10));
  }
  log_.replicate(committed);
  EXPECT_TRUE(one_.wait_for(committed)) << one_.last();
  EXPECT_TRUE(two_.wait_for(committed)) << two_.last();
  EXPECT_EQ(one_.without() + two_.without(), 0);
}

TEST_F(StandbyPump, goes_on_without_them_after_the_limit_and_waits_again_once_they_are_back) {
  start(std::chrono::milliseconds(50));
  pump_->add(one_, store::kAllLanes, Cursor{.s1 = "0"});
  log_.commit(10);
  EXPECT_TRUE(one_.wait_for(10));
  EXPECT_EQ(one_.without(), 10);
  log_.replicate(1000);
  log_.commit(10);
  EXPECT_TRUE(one_.wait_for(20));
  EXPECT_EQ(one_.without(), 10);
}

TEST_F(StandbyPump, stops_and_removes_consumers_while_events_wait) {
  start();
  pump_->add(one_, store::kAllLanes, Cursor{.s1 = "0"});
  log_.commit(10);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  pump_->remove(one_);
  pump_->stop();
  EXPECT_EQ(one_.last(), 0);
}

// ---- beside a stream

class PumpBesideStream : public ::testing::Test {
 protected:
  PumpBesideStream() {
    EXPECT_TRUE(pump_.start());
    pump_.add(one_, store::kAllLanes, Cursor{.s1 = "0"});
  }
  /// Waits until the pump sleeps and has nothing left to do.
  void expect_sleep() {
    EXPECT_TRUE(test::eventually([this] { return stream_->is_asleep(); }));
  }
  void commit() {
    log_.commit(1);
    stream_->tell();
  }

  MemoryLog log_;
  Consumer one_{log_};
  StreamWakeup* stream_ = new StreamWakeup;
  Wakeups wakeups_;
  Pump pump_{std::make_unique<MemoryReader>(log_), std::unique_ptr<store::Wakeup>(stream_),
             PumpOptions{.pace = {.idle = std::chrono::hours(1)}, .wakeups = &wakeups_},
             [](const Error& error) { ADD_FAILURE() << error.text(); }};
};

TEST_F(PumpBesideStream, each_commit_wakes_it_and_one_read_is_enough) {
  expect_sleep();
  for (std::int64_t seq = 1; seq <= 50; ++seq) {
    const auto fetches = pump_.fetches();
    commit();
    ASSERT_TRUE(one_.wait_for(seq));
    expect_sleep();
    EXPECT_LE(pump_.fetches() - fetches, 2U);
  }
  EXPECT_EQ(wakeups_.by_commit, 50U);
}

TEST_F(PumpBesideStream, a_commit_that_is_not_visible_yet_is_read_as_soon_as_it_is) {
  expect_sleep();
  for (std::int64_t seq = 1; seq <= 20; ++seq) {
    stream_->tell();
    std::jthread late([this] { log_.commit(1); });
    ASSERT_TRUE(one_.wait_for(seq)) << "the next thing that would wake it is an hour away";
    expect_sleep();
  }
}

TEST_F(PumpBesideStream, when_the_stream_ends_it_polls) {
  expect_sleep();
  stream_->run(false);
  commit();
  ASSERT_TRUE(one_.wait_for(1));
  stream_->run(true);
  expect_sleep();
  commit();
  EXPECT_TRUE(one_.wait_for(2));
}

}  // namespace
}  // namespace outbox::feed
