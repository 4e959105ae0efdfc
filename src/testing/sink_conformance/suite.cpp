// What every sink must do. The relay relies on nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <outbox/sink_conformance.hpp>
#include <thread>

#include "mini_relay.hpp"

namespace outbox::conformance {
namespace {

constexpr std::chrono::seconds kOpenLimit{60};

class SinkConformance : public testing::TestWithParam<HarnessKind> {
 protected:
  void SetUp() override {
    harness_ = GetParam().make();
    if (!harness_) GTEST_SKIP() << GetParam().needs;
    sink_ = harness_->make();
    ASSERT_NE(sink_, nullptr);
  }
  void TearDown() override {
    if (sink_) sink_->close();
  }

  /// Retries when the destination does not answer in time, as the relay does.
  [[nodiscard]] bool open() {
    const auto until = std::chrono::steady_clock::now() + kOpenLimit;
    while (!sink_->open()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  void expect_arrived(const Load& load, const std::vector<std::size_t>& except = {}) {
    if (!harness_->keeps()) return;
    expect_complete_and_ordered(places(harness_->delivered(), load), load, except);
  }

  std::unique_ptr<Harness> harness_;
  std::unique_ptr<Sink> sink_;
};

TEST_P(SinkConformance, each_message_gets_exactly_one_outcome_and_arrives_in_order) {
  Load load(harness_->topic());
  load.add_many(harness_->scale(5000), 17);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  EXPECT_EQ(relay.acked(), load.size());
  expect_arrived(load);
}

TEST_P(SinkConformance, no_outcome_comes_after_the_last_one) {
  Load load(harness_->topic());
  load.add_many(100, 3);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  relay.receive();
  relay.receive();
  EXPECT_EQ(relay.acked(), load.size());
}

TEST_P(SinkConformance, an_empty_send_takes_nothing) {
  ASSERT_TRUE(open());
  EXPECT_EQ(sink_->send({}), 0U);
  std::vector<Outcome> outcomes;
  sink_->receive(outcomes);
  EXPECT_TRUE(outcomes.empty());
}

TEST_P(SinkConformance, opening_again_while_all_is_well_changes_nothing) {
  Load load(harness_->topic());
  load.add_many(300, 5);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  while (relay.offer(50) > 0) {
    ASSERT_TRUE(relay.drain());
    ASSERT_TRUE(open());
  }
  EXPECT_EQ(relay.acked(), load.size());
  expect_arrived(load);
}

TEST_P(SinkConformance, works_again_after_close_and_open) {
  Load load(harness_->topic());
  load.add_many(200, 5);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  ASSERT_GT(relay.offer(100), 0U);
  ASSERT_TRUE(relay.drain());
  sink_->close();
  ASSERT_TRUE(relay.deliver());
  expect_arrived(load);
}

TEST_P(SinkConformance, bodies_arrive_byte_for_byte) {
  Load load(harness_->topic());
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes.push_back(static_cast<char>(byte));
  load.add("json", R"({ "a" : [1, 2.50, "x\u00e9"] })");
  load.add("empty", "", "");
  load.add("text", "a line\nand \"another\"\t\xc3\xa9", "text/plain");
  load.add("binary", all_bytes, "application/octet-stream");
  load.add("not-utf8", "\xff\xfe", "text/plain");
  load.add(std::nullopt, R"("no key")");
  load.add("", R"("an empty key")");
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  if (!harness_->keeps()) return;
  const auto arrived = harness_->delivered();
  ASSERT_EQ(arrived.size(), load.size());
  for (std::size_t place = 0; place < load.size(); ++place) {
    const auto& item = load.item(place);
    const auto found = std::find_if(arrived.begin(), arrived.end(), [&](const Arrived& message) {
      return message.id == item.id_text;
    });
    ASSERT_NE(found, arrived.end()) << place;
    EXPECT_EQ(found->body, item.body) << place;
    EXPECT_EQ(found->key, item.key) << place;
  }
}

TEST_P(SinkConformance, a_large_body_arrives_whole) {
  Load load(harness_->topic());
  load.add_many(10, 3);
  load.add("big", '"' + std::string(900'000, 'x') + '"');
  load.add_many(10, 3);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  expect_arrived(load);
}

TEST_P(SinkConformance, purge_gives_every_message_its_outcome_at_once) {
  Load load(harness_->topic());
  load.add_many(harness_->scale(3000), 11);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  relay.offer_all();
  harness_->purging();
  const auto from = std::chrono::steady_clock::now();
  sink_->purge();
  // At once: no sink waits for a delivery here, which takes 10 s when it fails.
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(8));
  relay.receive();
  EXPECT_EQ(relay.in_flight(), 0U);
  for (const auto& failure : relay.failures()) {
    EXPECT_NE(failure.outcome.kind, Outcome::Kind::rejected);
  }
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_arrived(load);
}

/// Only those that can be made to fail.
class SinkFailure : public SinkConformance {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SinkFailure);

TEST_P(SinkFailure, nothing_of_a_key_overtakes_a_message_that_failed) {
  Load load(harness_->topic());
  load.add_many(400, 7);
  constexpr std::size_t spoiled = 150;
  harness_->spoil(load, spoiled);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  // Like a relay that has not received the failure yet: it continues to send.
  relay.press_on(20);
  ASSERT_TRUE(relay.drain());
  if (sink_->traits().gapless) {
    const std::size_t acked = relay.acked();
    relay.offer(20);
    ASSERT_TRUE(relay.drain());
    EXPECT_EQ(relay.acked(), acked) << "delivers more before it was opened again";
  }
  ASSERT_FALSE(relay.failures().empty());
  EXPECT_FALSE(relay.is_acked(spoiled));
  for (const std::size_t place : places(harness_->delivered(), load)) {
    EXPECT_FALSE(place >= spoiled && load.item(place).key == load.item(spoiled).key)
        << place << " is behind the gap";
  }
  harness_->repair();
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_arrived(load, relay.rejected());
}

TEST_P(SinkFailure, says_what_and_why) {
  Load load(harness_->topic());
  load.add_many(10, 2);
  harness_->spoil(load, 5);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  relay.press_on(100);
  ASSERT_TRUE(relay.drain());
  ASSERT_FALSE(relay.failures().empty());
  for (const auto& failure : relay.failures()) {
    EXPECT_FALSE(failure.outcome.error.message.empty())
        << failure.place << " " << to_string(failure.outcome.kind);
  }
}

std::vector<HarnessKind> those_that_fail() {
  std::vector<HarnessKind> kinds;
  for (const HarnessKind& kind : harness_kinds()) {
    if (kind.can_fail) kinds.push_back(kind);
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Sinks, SinkConformance, testing::ValuesIn(harness_kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });
INSTANTIATE_TEST_SUITE_P(Sinks, SinkFailure, testing::ValuesIn(those_that_fail()),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace outbox::conformance
