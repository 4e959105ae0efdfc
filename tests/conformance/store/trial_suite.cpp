// What relays leave behind when they die: how often, where, and of which event.
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
    owner_ = std::make_unique<test::LaneOwner>(*store_, "relay");
    const auto standing = owner_->keep(seconds(60)).value();
    holding_ = {.lanes = standing.lanes, .generation = standing.generation};
    trials_ = std::move(*store_->trials());
  }
  /// Another process begins to deliver.
  store::Trial start(const std::string& place) {
    relay_ = EventId::generate();
    return again(place);
  }
  /// The same one, after it lost its connection.
  store::Trial again(const std::string& place) {
    const auto found = trials_->begin(row_.id, holding_, relay_, place);
    EXPECT_TRUE(ok(found));
    return found.value_or(store::Trial{});
  }
  void open(std::int64_t seq) {
    const Status status = trials_->open(row_.id, holding_, seq);
    EXPECT_TRUE(status) << status.error().text();
  }
  void end() { EXPECT_TRUE(trials_->end(row_.id, holding_)); }
  /// "7: 2 newest".
  static std::vector<std::string> shown(const store::Trial& trial) {
    std::vector<std::string> all;
    for (const auto& event : trial.events)
      all.push_back(std::to_string(event.seq) + ": " + std::to_string(event.deaths) +
                    (event.newest ? " newest" : ""));
    return all;
  }

  store::SubscriptionRow row_;
  std::unique_ptr<test::LaneOwner> owner_;
  store::Holding holding_;
  std::unique_ptr<store::Trials> trials_;
  EventId relay_{};
};

TEST_P(TrialSuite, deaths_at_one_place_are_counted) {
  EXPECT_EQ(start("here").deaths, 0U);
  EXPECT_EQ(start("here").deaths, 1U);
  EXPECT_EQ(start("here").deaths, 2U);
  EXPECT_EQ(again("here").deaths, 2U) << "it only lost its connection";
  EXPECT_EQ(start("there").deaths, 0U) << "something was delivered";
  EXPECT_EQ(start("there").deaths, 1U);
  end();
  EXPECT_EQ(start("there").deaths, 0U) << "it ended in order";
}

TEST_P(TrialSuite, an_event_on_trial_at_a_death_is_named) {
  start("here");
  open(6);
  open(7);
  EXPECT_THAT(shown(start("here")), ElementsAre("7: 1 newest"));
  open(6);
  open(7);
  EXPECT_THAT(shown(start("there")), ElementsAre("7: 2 newest"));
}

TEST_P(TrialSuite, one_that_survives_is_forgotten) {
  start("here");
  open(7);
  EXPECT_THAT(shown(again("here")), IsEmpty()) << "no death";
  open(7);
  EXPECT_THAT(shown(start("here")), ElementsAre("7: 1 newest"));
  open(7);
  end();
  EXPECT_THAT(shown(start("here")), IsEmpty());
}

TEST_P(TrialSuite, a_relay_that_was_replaced_records_nothing) {
  start("here");
  store::Holding former = holding_;
  former.generation -= 1;
  EXPECT_FALSE(trials_->open(row_.id, former, 7));
  EXPECT_THAT(shown(start("here")), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Store, TrialSuite, ::testing::ValuesIn(backends()), backend_name);

}  // namespace
}  // namespace outbox::conformance
