// Tests what relays record of their runs: where each run began, which events were on trial, and
// whether its relay lives.
#include "conformance/store/fixture.hpp"
#include "support/lane_owner.hpp"

namespace outbox::conformance {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TrialSuite : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    row_ = subscribe(make_spec("orders"));
    trials_ = std::move(*store_->trials());
    take_over();
  }
  /// Lets the relay die and another one take its lanes.
  void take_over() {
    if (owner_) {
      EXPECT_TRUE(owner_->leave()) << "its lanes must be free";
    }
    owner_ = std::make_unique<test::LaneOwner>(*store_, "relay");
    const auto standing = owner_->keep(seconds(60)).value();
    holding_ = {.lanes = standing.lanes, .generation = standing.generation};
  }
  [[nodiscard]] std::vector<store::FormerRun> former() const {
    const auto found = trials_->former(row_.id, holding_.lanes, owner_->id());
    EXPECT_TRUE(ok(found));
    return found.value_or(std::vector<store::FormerRun>{});
  }
  void begin(const std::string& place, std::size_t range = 0,
             const std::vector<std::int64_t>& keep = {}) {
    const Status status = trials_->begin(row_.id, holding_, owner_->id(), place, range, keep);
    EXPECT_TRUE(status) << status.error().text();
  }
  std::size_t open(std::size_t range, std::int64_t seq) {
    const auto deaths = trials_->open(row_.id, holding_, {holding_.lanes, range, seq});
    EXPECT_TRUE(ok(deaths));
    return deaths ? deaths->size() : 99;
  }
  /// Registers a relay again that was taken for dead.
  void come_back(const EventId& relay) {
    const auto membership = store_->membership({.id = relay, .name = "relay"});
    ASSERT_TRUE(ok(membership));
    EXPECT_TRUE(ok((*membership)->keep(seconds(60))));
  }
  /// The former runs as texts such as "here 8 from 7, counted".
  [[nodiscard]] std::vector<std::string> shown() const {
    std::vector<std::string> all;
    for (const auto& run : former()) {
      all.push_back(run.place);
      if (run.range > 0) all.back() += " " + std::to_string(run.range);
      if (run.seq > 0) all.back() += " from " + std::to_string(run.seq);
      if (run.alive) all.back() += ", alive";
      if (run.counted) all.back() += ", counted";
    }
    return all;
  }

  store::SubscriptionRow row_;
  std::unique_ptr<test::LaneOwner> owner_;
  store::Holding holding_;
  std::unique_ptr<store::Trials> trials_;
};

TEST_P(TrialSuite, what_dead_relays_left_is_found_the_newest_first) {
  begin("here");
  const std::int64_t first = holding_.generation;
  take_over();
  EXPECT_THAT(shown(), ElementsAre("here"));
  begin("here", 1, {first});
  EXPECT_EQ(open(8, 7), 1U);
  const std::int64_t second = holding_.generation;
  take_over();
  EXPECT_THAT(shown(), ElementsAre("here 8 from 7", "here, counted"));
  begin("there", 4, {second});
  take_over();
  EXPECT_THAT(shown(), ElementsAre("there 4", "here 8 from 7, counted"));
}

TEST_P(TrialSuite, its_own_runs_are_no_deaths_and_those_that_end_in_order_are_gone) {
  begin("here");
  EXPECT_THAT(shown(), ElementsAre("here, alive"));
  begin("there");
  EXPECT_THAT(shown(), ElementsAre("there, alive"));
  EXPECT_TRUE(trials_->end(row_.id, holding_));
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_P(TrialSuite, a_trial_goes_on_after_a_run_that_ended_in_order) {
  begin("here", 1);
  open(64, 7);
  EXPECT_TRUE(trials_->end(row_.id, holding_));
  take_over();
  EXPECT_THAT(shown(), ElementsAre("here 64, alive"));
}

TEST_P(TrialSuite, a_relay_that_comes_back_was_not_dead) {
  begin("here");
  const std::int64_t first = holding_.generation;
  const EventId frozen = owner_->id();
  take_over();
  begin("here", 1, {first});
  EXPECT_EQ(open(1, 7), 1U);
  come_back(frozen);
  EXPECT_EQ(open(2, 8), 0U);
  take_over();
  EXPECT_THAT(shown(), ElementsAre("here 2 from 8", "here, alive, counted"));
}

TEST_P(TrialSuite, a_relay_that_has_come_back_before_its_successor_begins_was_not_dead) {
  begin("here");
  const EventId frozen = owner_->id();
  take_over();
  come_back(frozen);
  EXPECT_THAT(shown(), ElementsAre("here, alive"));
}

TEST_P(TrialSuite, when_the_trial_is_over_the_run_goes_on_and_what_matters_is_kept) {
  begin("here");
  const std::int64_t first = holding_.generation;
  take_over();
  begin("here", 1, {first});
  open(1, 7);
  const std::int64_t second = holding_.generation;
  take_over();
  begin("here", 1, {first, second});
  open(1, 7);
  EXPECT_TRUE(trials_->close(row_.id, holding_, {second}));
  take_over();
  EXPECT_THAT(shown(), ElementsAre("here", "here 1 from 7, counted"));
}

TEST_P(TrialSuite, a_relay_that_was_replaced_records_nothing) {
  begin("here");
  const store::Holding former_holding = holding_;
  take_over();
  begin("there");
  EXPECT_FALSE(trials_->open(row_.id, former_holding, {former_holding.lanes, 1, 7}));
  (void)trials_->close(row_.id, former_holding, {});
  EXPECT_THAT(shown(), ElementsAre("there, alive"));
}

INSTANTIATE_TEST_SUITE_P(Store, TrialSuite, ::testing::ValuesIn(backends()), backend_name);

}  // namespace
}  // namespace outbox::conformance
