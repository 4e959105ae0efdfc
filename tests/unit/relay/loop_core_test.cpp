// Steps the core of a loop, which has a sink and a driver of the test. tests/sim steps the same
// core with dice.
#include "relay/loop_core.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/relay/core_driver.hpp"

namespace outbox::relay {
namespace {

using std::chrono::milliseconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = Outcome::Kind;

/// Takes everything, and acks what the test says, or the rest when it is purged.
class SlowSink final : public Sink {
 public:
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "slow", .gapless = true};
  }
  [[nodiscard]] Status open() override { return {}; }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override {
    for (const Message& message : messages) flying.push_back(message.token);
    return messages.size();
  }
  void receive(std::vector<Outcome>& outcomes) override {
    for (const Token token : std::exchange(acked_, {}))
      outcomes.push_back({.token = token, .kind = Kind::acked});
  }
  void purge() override { ack_all(); }
  void close() noexcept override {}

  void ack_all() {
    acked_.insert(acked_.end(), flying.begin(), flying.end());
    flying.clear();
  }

  std::vector<Token> flying;

 private:
  std::vector<Token> acked_;
};

class LoopCoreTest : public ::testing::Test, protected LoopPorts {
 protected:
  static store::SubscriptionRow row() {
    store::SubscriptionRow row;
    row.id = 3;
    row.spec.name = "orders";
    row.spec.sink = "custom";
    return row;
  }
  static LoopOptions options() {
    return {.settle_interval = milliseconds(50), .holding = {.lanes = 3, .generation = 7}};
  }

  /// Two events for a strand, which ends there.
  void read(std::size_t strand, std::int64_t seq) {
    const auto page = page_of({.s1 = "0", .s2 = "9", .bound = 100}, 0,
                              {{seq, "a" + std::to_string(seq)}, {seq + 1, "b"}}, true);
    ASSERT_TRUE(core_.strand(strand).accept(*page, now_));
    EXPECT_TRUE(core_.needs_step(*page));
    core_.page_read(strand, page, now_);
  }
  /// The settler has written everything.
  void write_all() {
    for (const auto& [strand, work] : std::exchange(written_, {})) core_.written(strand, {}, now_);
  }

  [[nodiscard]] TimePoint now() override { return now_; }
  [[nodiscard]] bool trusted(TimePoint /*now*/) override { return trusted_; }
  void distrusted() override { ++distrusted_; }
  void room() override { ++rooms_; }
  void replay_done() override {}
  void write(ProgressWork work, std::optional<std::size_t> strand) override {
    written_.emplace_back(strand, std::move(work));
  }
  void read_due(std::size_t /*besides*/, const std::vector<store::AskedRow>& /*asked*/) override {
    ++asked_for_due_;
  }
  void read_keys() override {}
  [[nodiscard]] std::optional<std::vector<std::int64_t>> try_range(
      const store::Trials::Range& /*range*/) override {
    return {};
  }
  void culprit_found(const EventView& /*event*/, std::size_t /*deaths*/) override {}
  void end_trial(const std::vector<std::int64_t>& /*keep*/,
                 std::optional<std::size_t> /*tried*/) override {}

  TimePoint now_{std::chrono::seconds(100)};
  bool trusted_{true};
  int distrusted_{0};
  int rooms_{0};
  int asked_for_due_{0};
  std::vector<std::pair<std::optional<std::size_t>, ProgressWork>> written_;
  SlowSink sink_;
  LoopCore core_{row(),
                 format::Renderer::create(row().spec).value(),
                 {.strands = {{.lanes = 1, .cursor = drained_at("0")},
                              {.lanes = 2, .cursor = drained_at("0")}}},
                 options(),
                 sink_,
                 *this,
                 now_};
};

TEST_F(LoopCoreTest, what_is_read_is_sent_and_settled_and_makes_room) {
  EXPECT_EQ(core_.next_at(now_), now_) << "the sink must be opened";
  core_.step(now_);
  EXPECT_EQ(core_.next_at(now_), now_ + milliseconds(100));
  read(1, 5);
  core_.step(now_);
  EXPECT_EQ(rooms_, 1);
  EXPECT_THAT(sink_.flying, SizeIs(2));
  EXPECT_EQ(LoopCore::source_of(sink_.flying.front()), 1U);
  EXPECT_EQ(core_.next_at(now_), now_ + milliseconds(20)) << "the sink may not call wake()";
  sink_.ack_all();
  core_.step(now_);
  EXPECT_THAT(written_, IsEmpty());
  EXPECT_EQ(core_.next_at(now_), now_ + milliseconds(50));
  now_ += milliseconds(50);
  core_.step(now_);
  ASSERT_THAT(written_, SizeIs(1));
  EXPECT_EQ(written_.front().first, 1U);
  EXPECT_EQ(written_.front().second.rows.front().acked.count, 2);
  write_all();
  EXPECT_EQ(rooms_, 1) << "nobody is called before the next step";
  core_.step(now_);
  EXPECT_EQ(rooms_, 2);
  EXPECT_TRUE(core_.idle());
}

TEST_F(LoopCoreTest, a_stop_is_over_when_all_strands_are_settled) {
  core_.step(now_);
  read(0, 5);
  read(1, 7);
  core_.step(now_);
  core_.stop_requested(now_ + milliseconds(100), true, now_);
  core_.step(now_);
  EXPECT_FALSE(core_.is_over(now_));
  sink_.ack_all();
  core_.step(now_);
  ASSERT_THAT(written_, SizeIs(2));
  core_.written(written_.front().first, {}, now_);
  EXPECT_FALSE(core_.is_over(now_));
  core_.written(written_.back().first, {}, now_);
  EXPECT_TRUE(core_.is_over(now_));
  EXPECT_THAT(core_.unsettled_acks(), IsEmpty());
}

TEST_F(LoopCoreTest, what_the_sink_reports_at_the_end_of_the_grace_period_is_remembered) {
  core_.step(now_);
  read(0, 5);
  core_.step(now_);
  core_.stop_requested(now_ + milliseconds(100), false, now_);
  core_.step(now_);
  EXPECT_FALSE(core_.is_over(now_ + milliseconds(99)));
  EXPECT_TRUE(core_.is_over(now_ + milliseconds(100)));
  EXPECT_EQ(core_.given_up(), 0U) << "acked after all";
  EXPECT_THAT(core_.unsettled_acks(), SizeIs(2));
  EXPECT_THAT(written_, IsEmpty());
}

TEST_F(LoopCoreTest, without_trust_nothing_is_sent_and_what_is_in_flight_is_given_up) {
  core_.step(now_);
  read(0, 5);
  core_.step(now_);
  trusted_ = false;
  read(1, 7);
  core_.step(now_);
  EXPECT_EQ(distrusted_, 1);
  EXPECT_THAT(sink_.flying, IsEmpty());
  EXPECT_EQ(core_.sink_state().in_flight(), 0U);
  core_.step(now_);
  EXPECT_EQ(distrusted_, 1);
}

TEST_F(LoopCoreTest, what_people_change_is_asked_for) {
  core_.step(now_);
  EXPECT_EQ(asked_for_due_, 0);
  core_.parked_changed(now_);
  core_.step(now_);
  EXPECT_EQ(asked_for_due_, 1);
}

}  // namespace
}  // namespace outbox::relay
