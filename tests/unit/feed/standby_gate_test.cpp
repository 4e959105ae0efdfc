#include "feed/standby_gate.hpp"

#include <gtest/gtest.h>

namespace outbox::feed {
namespace {

using namespace std::chrono_literals;
using News = StandbyGate::News;

constexpr store::Replication kNone{.flushed = 0, .connected = 1};
constexpr store::Replication kOne{.flushed = 1, .connected = 1};
const StandbyGate::TimePoint kStart{1h};

TEST(StandbyGate, passes_what_the_standbys_have) {
  StandbyGate gate({.count = 1}, 0s);
  EXPECT_TRUE(gate.take(kOne, kStart).pass);
  EXPECT_EQ(gate.take(kOne, kStart + 1h).news, News::none);
}

TEST(StandbyGate, waits_for_as_long_as_it_takes_and_says_so_once) {
  StandbyGate gate({.count = 1}, 0s);
  EXPECT_FALSE(gate.take(kNone, kStart).pass);
  EXPECT_EQ(gate.take(kNone, kStart + 1s).news, News::none);
  EXPECT_EQ(gate.take(kNone, kStart + 3s).news, News::waits);
  EXPECT_EQ(gate.take(kNone, kStart + 6s).news, News::none);
  EXPECT_FALSE(gate.take(kNone, kStart + 240h).pass);
  const auto over = gate.take(kOne, kStart + 241h);
  EXPECT_TRUE(over.pass);
  EXPECT_EQ(over.news, News::over);
}

TEST(StandbyGate, a_standby_that_is_slow_for_a_moment_is_no_news) {
  StandbyGate gate({.count = 1}, 0s);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(gate.take(kNone, kStart + i * 1s).pass);
    EXPECT_EQ(gate.take(kOne, kStart + i * 1s + 500ms).news, News::none);
  }
}

TEST(StandbyGate, after_the_limit_events_go_out_until_the_standbys_are_back) {
  StandbyGate gate({.count = 1}, 10s);
  EXPECT_FALSE(gate.take(kNone, kStart).pass);
  EXPECT_FALSE(gate.take(kNone, kStart + 9s).pass);
  const auto without = gate.take(kNone, kStart + 10s);
  EXPECT_TRUE(without.pass);
  EXPECT_EQ(without.news, News::without);
  EXPECT_EQ(gate.take(kNone, kStart + 11s).news, News::none);
  EXPECT_TRUE(gate.take(kNone, kStart + 11s).pass);
  EXPECT_EQ(gate.take(kOne, kStart + 12s).news, News::over);
  EXPECT_FALSE(gate.take(kNone, kStart + 13s).pass) << "the limit counts anew";
}

TEST(StandbyGate, asks_less_and_less_often) {
  StandbyGate gate({.count = 1}, 0s);
  (void)gate.take(kNone, kStart);
  EXPECT_EQ(gate.pause(), 1ms);
  for (int i = 0; i < 20; ++i) (void)gate.take(kNone, kStart);
  EXPECT_EQ(gate.pause(), 50ms);
  (void)gate.take(kOne, kStart);
  (void)gate.take(kNone, kStart);
  EXPECT_EQ(gate.pause(), 1ms);
}

TEST(StandbyGate, all_named_standbys_must_have_it) {
  StandbyGate gate({.count = 1, .names = {"a", "b"}}, 0s);
  EXPECT_FALSE(gate.take(kOne, kStart).pass);
  EXPECT_EQ(gate.words(), "1 of 2 standbys has flushed them, 1 is connected");
  EXPECT_TRUE(gate.take({.flushed = 2, .connected = 2}, kStart).pass);
}

TEST(StandbyGate, says_which_right_is_missing) {
  StandbyGate gate({.count = 1}, 0s);
  EXPECT_FALSE(gate.take({.flushed = 0, .connected = 0, .hidden = true}, kStart).pass);
  EXPECT_NE(gate.words().find("GRANT pg_monitor TO outbox_relay"), std::string::npos);
}

}  // namespace
}  // namespace outbox::feed
