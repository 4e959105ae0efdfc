// Tests what a relay reads for a replay, and which progress it writes.
#include "relay/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/relay/core_driver.hpp"

namespace outbox::relay {
namespace {

using ::testing::IsEmpty;

const store::Replay kReplay{.id = 7, .subscription = 3, .first = 11, .last = 20};

TEST(ReplayRequests, lanes_at_one_cursor_and_one_position_are_read_together) {
  const std::vector<store::Strand> live{{.lanes = 0b0011, .cursor = {.s1 = "A"}},
                                        {.lanes = 0b1100, .cursor = {.s1 = "B"}}};
  const std::vector<store::ReplayPlace> places{{.lanes = 0b0101, .position = 10},
                                               {.lanes = 0b1000, .position = 15},
                                               {.lanes = 0b0010, .position = 20}};
  const auto requests = replay_requests(kReplay, live, places, {.page_events = 5});
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].lanes, 0b0001U);
  EXPECT_EQ(requests[0].live.s1, "A");
  EXPECT_EQ(requests[0].position, 10);
  EXPECT_EQ(requests[0].last, 20);
  EXPECT_EQ(requests[0].rows, 5U);
  EXPECT_EQ(requests[1].lanes, 0b0100U);
  EXPECT_EQ(requests[1].live.s1, "B");
  EXPECT_EQ(requests[2].lanes, 0b1000U);
  EXPECT_EQ(requests[2].position, 15);
}

TEST(ReplayRequests, nothing_is_left_of_lanes_that_are_done) {
  EXPECT_THAT(replay_requests(kReplay, {{.lanes = store::kAllLanes, .cursor = {.s1 = "A"}}},
                              {{.lanes = store::kAllLanes, .position = 20}}, {}),
              IsEmpty());
}

/// A delivery core as the loop makes it for a replay, with a sink that is not gapless.
class ReplayedCore : public ::testing::Test {
 protected:
  ReplayedCore() {
    sink_.opened({}, now_);
    options_.row.subscription = 3;
    options_.row.lanes = 0b11;
    options_.row.generation = 4;
    options_.gapless = false;
    options_.settle_interval = std::chrono::nanoseconds(0);
    options_.parking = replay_parking();
    core_.emplace(options_, replay_cursor(10), sink_, window_, gate_);
  }
  void read(const std::vector<std::pair<std::int64_t, std::string_view>>& events, std::int64_t from,
            std::int64_t position, bool drained) {
    auto page = std::make_shared<store::Page>();
    page->pair = replay_pair();
    page->from = from;
    page->position = position;
    page->drained = drained;
    for (const auto& [seq, key] : events)
      page->events.push_back({.seq = seq,
                              .aggregate_type = "order",
                              .aggregate_id = key,
                              .event_type = "Placed",
                              .payload = "{}",
                              .content_type = {},
                              .headers = "{}"});
    window_.add(*page);
    core_->page_read(page, {}, now_);
  }
  /// Sends all that may be sent. Rejects the events in `bad` and acks the others. Returns the seqs.
  std::vector<std::int64_t> send(const std::vector<std::int64_t>& bad = {}) {
    std::vector<std::int64_t> sent;
    while (true) {
      const auto sends = core_->to_send(now_);
      if (sends.empty()) return sent;
      std::vector<Outcome> outcomes;
      for (const auto& one : sends) {
        const bool is_bad = std::find(bad.begin(), bad.end(), one.event->seq) != bad.end();
        sent.push_back(one.event->seq);
        Outcome outcome{.token = one.token,
                        .kind = is_bad ? Outcome::Kind::rejected : Outcome::Kind::acked};
        outcome.error.message = is_bad ? "too large" : "";
        outcomes.push_back(outcome);
      }
      core_->handed_over(sends.size());
      for (const auto& outcome : outcomes) core_->outcome(outcome, now_);
    }
  }
  store::ReplayProgress settle() {
    now_ += std::chrono::seconds(1);
    return replay_progress(kReplay, core_->settle(now_));
  }

  TimePoint now_{std::chrono::seconds(1)};
  SinkState sink_;
  Window window_{{}};
  KeyGate gate_;
  CoreOptions options_;
  std::optional<DeliveryCore> core_;
};

TEST_F(ReplayedCore, its_settlements_are_progress_of_the_replay) {
  read({{12, "a"}, {14, "b"}}, 10, 14, false);
  EXPECT_EQ(send(), (std::vector<std::int64_t>{12, 14}));
  const auto progress = settle();
  EXPECT_EQ(progress.replay, 7);
  EXPECT_EQ(progress.subscription, 3);
  EXPECT_EQ(progress.generation, 4);
  EXPECT_EQ(progress.lanes, 0b11U);
  EXPECT_EQ(progress.position, 14);
  EXPECT_EQ(progress.sent, 2);
  EXPECT_THAT(progress.skips, IsEmpty());
}

TEST_F(ReplayedCore, the_end_is_the_last_seq_also_when_nothing_is_there) {
  read({}, 10, 10, true);
  EXPECT_EQ(settle().position, 20);
}

TEST_F(ReplayedCore, a_page_of_which_nothing_is_left_is_passed_over_with_the_next_one) {
  read({{12, "a"}}, 10, 12, false);
  read({{18, "a"}}, 12, 19, true);
  EXPECT_EQ(send(), (std::vector<std::int64_t>{12, 18}));
  const auto progress = settle();
  EXPECT_EQ(progress.position, 20);
  EXPECT_EQ(progress.sent, 2);
}

TEST_F(ReplayedCore, a_rejected_event_is_skipped_and_blocks_its_key_for_good) {
  read({{11, "a"}, {12, "b"}, {13, "a"}, {14, "b"}}, 10, 14, false);
  EXPECT_EQ(send({11}), (std::vector<std::int64_t>{11, 12, 14}));
  auto progress = settle();
  EXPECT_EQ(progress.position, 14);
  EXPECT_EQ(progress.sent, 2);
  ASSERT_EQ(progress.skips.size(), 2U);
  EXPECT_EQ(progress.skips[0].seq, 11);
  EXPECT_NE(progress.skips[0].error, "");
  EXPECT_EQ(progress.skips[1].seq, 13);
  EXPECT_EQ(progress.skips[1].error, "");
  core_->settled();
  read({{15, "a"}, {16, "c"}}, 14, 16, true);
  EXPECT_EQ(send(), (std::vector<std::int64_t>{16}));
  progress = settle();
  ASSERT_EQ(progress.skips.size(), 1U);
  EXPECT_EQ(progress.skips[0].seq, 15);
}

}  // namespace
}  // namespace outbox::relay
