// Tests what only a real server can show, for every sink that has one: the server dies, stops
// answering, or refuses. What arrived is read back from the server.
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/sink/server_harness.hpp"
#include "conformance/sink/suite.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox {
namespace test {

namespace {

class SinkServer : public testing::Test {
 protected:
  void SetUp() override {
    const ServerHarnessKind kind = server_harness_kind();
    harness_ = kind.make();
    if (!harness_) GTEST_SKIP() << kind.needs;
    gate_.emplace(harness_->behind_gate(), harness_->gate_port());
    sink_ = harness_->make();
    ASSERT_NE(sink_, nullptr);
  }
  void TearDown() override {
    if (sink_) sink_->close();
  }

  /// Sends through the gate from now on.
  void go_through_gate() {
    sink_ = harness_->make(harness_->settings(gate_->port()));
    ASSERT_NE(sink_, nullptr);
  }
  /// Opens the sink as often as the relay would try.
  [[nodiscard]] bool open() {
    return eventually([this] { return sink_->open().has_value(); });
  }
  /// Expects that every message arrived, in order of keys, and at most `repeats` more than once.
  void expect_arrived(const Load& load, std::size_t repeats,
                      const std::vector<std::size_t>& except = {}) {
    const auto found = places(harness_->delivered(), load);
    expect_complete_and_ordered(found, load, except);
    EXPECT_LE(found.size() + except.size(), load.size() + repeats)
        << "more duplicates than were in flight";
  }
  static std::string last_failure(const MiniRelay& relay) {
    return relay.failures().empty() ? "nothing failed"
                                    : relay.failures().back().outcome.error.text();
  }
  /// Expects that nothing in flight was reported as delivered or as at fault.
  static void expect_in_doubt(const MiniRelay& relay) {
    ASSERT_FALSE(relay.failures().empty());
    for (const auto& failure : relay.failures()) {
      EXPECT_NE(failure.outcome.kind, Outcome::Kind::rejected) << failure.outcome.error.text();
      EXPECT_FALSE(failure.outcome.error.message.empty());
    }
  }
  /// Expects that only this message was refused.
  void expect_rejected(const Load& load, const MiniRelay& relay, std::size_t place) {
    EXPECT_EQ(relay.rejected(), std::vector<std::size_t>{place});
    expect_arrived(load, 0, {place});
  }

  std::unique_ptr<ServerHarness> harness_;
  std::optional<TcpGate> gate_;
  std::unique_ptr<Sink> sink_;
};

TEST_F(SinkServer, a_server_killed_and_restarted_under_load_loses_nothing_and_keeps_the_order) {
  if (!harness_->may_kill())
    GTEST_SKIP()
        << "needs a server of its own to kill: OUTBOX_TEST_SERVERS is not set (scripts/servers start DIR)";
  Load load(harness_->topic());
  load.add_many(harness_->scale(6000) * static_cast<std::size_t>(soak_factor()), 300);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  for (std::size_t kill = 1; kill <= harness_->kills(); ++kill) {
    // A server that has just recovered may miss a deadline.
    ASSERT_TRUE(relay.deliver_first(kill * load.size() / 5, 100)) << last_failure(relay);
    const std::size_t failures = relay.failures().size();
    ASSERT_GT(relay.offer(load.size() / 5), 0U);
    harness_->kill();
    ASSERT_TRUE(relay.drain());
    relay.offer(100);  // The server may have answered everything before it was killed.
    ASSERT_TRUE(relay.drain());
    ASSERT_GT(relay.failures().size(), failures);
    EXPECT_FALSE(sink_->open().has_value());
    harness_->start();
    relay.rewind();
    ASSERT_TRUE(open());
  }
  ASSERT_TRUE(relay.deliver());
  expect_arrived(load, relay.failures().size());
}

TEST_F(SinkServer, messages_whose_answers_are_lost_are_in_doubt_and_arrive) {
  go_through_gate();
  Load load(harness_->topic());
  load.add_many(300, 100);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  while (relay.acked() < 100 && relay.failures().empty()) {
    relay.offer(100 - relay.acked());
    ASSERT_TRUE(relay.drain());
  }
  gate_->set(TcpGate::Mode::answers_lost);
  ASSERT_GT(relay.offer(100), 0U);
  ASSERT_TRUE(eventually([&] { return gate_->lost_answers() > 0; }));
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 100U);
  expect_in_doubt(relay);
  // What waited for a connection was not sent, so it is not in doubt and may not arrive twice.
  EXPECT_EQ(relay.in_doubt() > 0, !harness_->is_dialogue());
  gate_->set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  // On a slow machine the deadline may pass for others, which are then in doubt, too.
  expect_arrived(load, relay.in_doubt());
}

TEST_F(SinkServer, a_server_that_stops_answering_is_given_up_and_the_sink_goes_on_when_it_is_back) {
  go_through_gate();
  Load load(harness_->topic());
  load.add_many(harness_->scale(3000), 1000);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  relay.offer(100);
  ASSERT_TRUE(relay.drain());
  gate_->set(TcpGate::Mode::stalled);
  relay.offer_all();
  const std::size_t in_flight = relay.in_flight();
  ASSERT_TRUE(relay.drain());
  expect_in_doubt(relay);
  EXPECT_FALSE(sink_->open().has_value());
  gate_->set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_arrived(load, in_flight);
}

TEST_F(SinkServer, purge_and_close_return_while_the_server_hangs) {
  go_through_gate();
  Load load(harness_->topic());
  load.add_many(harness_->scale(3000), 1000);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  gate_->set(TcpGate::Mode::stalled);
  relay.offer_all();
  const std::size_t in_flight = relay.in_flight();
  sink_->purge();
  relay.receive();
  EXPECT_EQ(relay.in_flight(), 0U);
  expect_in_doubt(relay);
  sink_->close();
  gate_->set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_arrived(load, in_flight);
}

TEST_F(SinkServer, connections_that_break_at_any_byte_lose_nothing_and_keep_the_order) {
  go_through_gate();
  Load load(harness_->topic());
  load.add_many(harness_->scale(2000), 100);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  gate_->cut_after(20'000);
  std::size_t in_flight = 0;
  while (gate_->cuts() < 8 && relay.acked() < load.size()) {
    relay.offer_all();
    in_flight += relay.in_flight();
    ASSERT_TRUE(relay.drain());
    relay.rewind();
    ASSERT_TRUE(open());
  }
  EXPECT_GT(gate_->cuts(), 0);
  gate_->cut_after(0);
  ASSERT_TRUE(relay.deliver());
  expect_arrived(load, in_flight);
}

TEST_F(SinkServer, a_server_that_cannot_be_reached_is_named) {
  const auto sink = harness_->make(harness_->settings(gate_->port()));
  gate_->set(TcpGate::Mode::refused);
  const Status refused = sink->open();
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find(std::to_string(gate_->port())), std::string::npos)
      << refused.error().text();
  gate_->set(TcpGate::Mode::open);
  EXPECT_TRUE(eventually([&] { return sink->open().has_value(); }));
  sink->close();
}

/// If the protocol has no login, the server refuses the first message instead.
TEST_F(SinkServer, a_wrong_password_is_refused_and_not_shown) {
  const SinkSettings settings = harness_->wrong_password(harness_->port());
  const auto sink = harness_->make(settings);
  Error refusal;
  if (const Status refused = sink->open(); !refused) {
    refusal = refused.error();
  } else {
    Load load(harness_->topic());
    load.add_many(1, 1);
    MiniRelay relay(*sink, load);
    ASSERT_EQ(relay.offer(1), 1U);
    ASSERT_TRUE(relay.drain());
    ASSERT_EQ(relay.failures().size(), 1U);
    EXPECT_EQ(relay.failures().front().outcome.kind, Outcome::Kind::blocked);
    refusal = relay.failures().front().outcome.error;
  }
  EXPECT_FALSE(refusal.hint.empty()) << refusal.text();
  ASSERT_TRUE(settings.contains(harness_->password_setting()));
  EXPECT_EQ(refusal.text().find(settings.at(harness_->password_setting())), std::string::npos);
}

TEST_F(SinkServer, a_missing_destination_blocks_and_is_named) {
  const auto missing = harness_->missing_topic();
  if (!missing) GTEST_SKIP() << "sending makes the destination";
  Load load(*missing);
  load.add_many(10, 10);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(open());
  relay.offer(1);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 1U);
  const Outcome& outcome = relay.failures().front().outcome;
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked) << outcome.error.text();
  EXPECT_NE(outcome.error.text().find(*missing), std::string::npos) << outcome.error.text();
}

TEST_F(SinkServer, a_message_that_is_too_large_is_rejected_alone) {
  Load load(harness_->topic());
  load.add_many(50, 50);
  load.add("large", std::string(harness_->too_large(), 'x'), "text/plain");
  load.add_many(50, 50);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  expect_rejected(load, relay, 50);
}

TEST_F(SinkServer, an_illegal_topic_is_the_fault_of_its_event) {
  const auto illegal = harness_->illegal_topics();
  if (illegal.empty()) GTEST_SKIP() << "every text is legal";
  for (const std::string& topic : illegal) {
    Load load(harness_->topic());
    load.add_many(20, 20);
    load.item(7).topic = topic;
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver()) << topic;
    EXPECT_EQ(relay.rejected(), std::vector<std::size_t>{7}) << topic;
    EXPECT_EQ(relay.acked(), load.size() - 1) << topic;
    ASSERT_FALSE(relay.failures().empty());
    EXPECT_FALSE(relay.failures().front().outcome.error.hint.empty()) << topic;
    EXPECT_TRUE(relay.failures().front().outcome.unsent) << topic;
    EXPECT_EQ(relay.reopened(), 1U) << "nothing was stopped by it: " << topic;
  }
}

TEST_F(SinkServer, line_breaks_in_a_header_change_nothing_but_that_header) {
  Load load(harness_->topic());
  load.add_many(20, 20);
  load.item(9).headers.push_back({.name = "note", .value = "one\r\noutbox-id: another\r\n\r\ntwo"});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  if (harness_->keeps_line_breaks()) {
    EXPECT_TRUE(relay.failures().empty());
    expect_arrived(load, 0);
  } else {
    expect_rejected(load, relay, 9);
  }
}

TEST_F(SinkServer, text_that_is_not_ascii_arrives_as_it_is) {
  Load load(harness_->topic());
  load.add("schlüssel-日本-🙂", "größe: 日本語 🙂", "text/plain; charset=utf-8");
  load.item(0).headers.push_back({.name = "kunde", .value = "Jürgen Groß 日本"});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  const auto arrived = harness_->delivered();
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived.front().key, load.item(0).key);
  EXPECT_EQ(arrived.front().body, load.item(0).body);
}

TEST_F(SinkServer, a_destination_that_takes_nothing_blocks_and_gets_everything_later) {
  if (!harness_->block()) GTEST_SKIP() << "the destination has no such state";
  Load load(harness_->topic());
  load.add_many(500, 100);
  MiniRelay relay(*sink_, load);
  if (sink_->open()) {
    relay.offer_all();
    ASSERT_TRUE(relay.drain());
    EXPECT_LT(relay.acked(), load.size());
    expect_in_doubt(relay);
  }
  harness_->unblock();
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_arrived(load, load.size());
}

}  // namespace
}  // namespace test

/// The sink must pass the contract, too.
std::vector<conformance::HarnessKind> conformance::harness_kinds() {
  using namespace test;  // The use is limited to one function.
  const ServerHarnessKind kind = server_harness_kind();
  return {{kind.name, []() -> std::unique_ptr<Harness> { return server_harness_kind().make(); },
           kind.needs, kind.can_fail}};
}

}  // namespace outbox
