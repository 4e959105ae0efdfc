// Steps the core of the tenure loop with a store of the test. tests/sim steps the same core with
// dice.
#include "relay/tenure_core.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "relay/lease_core.hpp"

namespace outbox::relay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::kAllLanes;
using store::LaneMask;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = TenureAction::Kind;
using Actions = std::vector<std::string>;

constexpr LaneMask kFirstHalf = 0xFFFFFFFF;

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::look: return "look";
    case Kind::leave: return "leave";
    case Kind::change: return "change";
    case Kind::forget_retries: return "forget";
    case Kind::wait: return "wait";
    case Kind::begin: return "begin";
    case Kind::apply: return "apply";
    case Kind::update: return "update";
    case Kind::maintain: return "maintain";
    case Kind::report: return "report";
    case Kind::sleep: return "sleep";
    case Kind::end: return "end";
  }
  return "";
}

Error error_with(Remedy remedy) { return fail(Errc::unavailable, remedy, "by the test").value(); }

class TenureCoreTest : public ::testing::Test {
 protected:
  TenureCoreTest() {
    trust_.extend_to(now_ + seconds(1000));
    core_.start(1);
    begin();
  }

  void begin() {
    (void)core_.replaces_outbox(fleet_.outbox);
    core_.begin_tenure(now_);
  }
  /// Does what the core asks for until it sleeps or ends, and names it.
  Actions round() {
    Actions actions;
    while (true) {
      last_ = core_.next(now_);
      actions.emplace_back(name_of(last_.kind));
      if (!last_.group.empty() && last_.group != "default") actions.back() += " " + last_.group;
      if (last_.kind == Kind::sleep || last_.kind == Kind::end) return actions;
      if (last_.kind == Kind::wait) wait_ = last_;
      if (const auto failure = failures_.extract(last_.kind))
        core_.failed(failure.mapped());
      else
        carry_out();
    }
  }
  Actions round_after(milliseconds pause) {
    now_ += pause;
    return round();
  }
  /// A relay that has lanes and delivers.
  void deliver() {
    ASSERT_THAT(round(),
                ElementsAre("look", "change", "begin", "apply", "update", "maintain", "sleep"));
  }
  void join(const EventId& id) {
    fleet_.members.push_back({.id = id, .name = "other", .groups = {"*"}, .alive = true});
  }
  store::Group& group() { return fleet_.groups.front(); }
  [[nodiscard]] store::Holding held() const {
    const auto found = core_.holdings().find("default");
    return found == core_.holdings().end() ? store::Holding{} : found->second;
  }

  TimePoint now_{seconds(100)};
  const store::RelayIdentity self_{.name = "self"};
  const EventId other_ = EventId::generate();
  std::vector<SubscriptionSpec> specs_;
  Configuration configuration_{specs_};
  TrustDeadline trust_;
  TenureCore core_{self_, configuration_, trust_};
  store::Fleet fleet_{.outbox = "here",
                      .members = {{.id = self_.id, .name = "self", .groups = {"*"}, .alive = true}},
                      .groups = {{.name = "default", .has_subscriptions = true, .owners = {}}}};
  bool locked_{false};  ///< Whether another relay changes lanes at this moment.
  std::map<Kind, Error> failures_;
  TenureAction last_;
  TenureAction wait_;

 private:
  void carry_out() {
    if (last_.kind == Kind::look) core_.looked(fleet_);
    if (last_.kind == Kind::apply) configuration_.note_applied(last_.group);
    if (last_.kind == Kind::change) change();
  }
  void change() {
    if (locked_) return core_.changed(std::nullopt);
    const store::Holding holding{.lanes = last_.lanes, .generation = ++generation_};
    for (store::Group& group : fleet_.groups) {
      if (group.name != last_.group) continue;
      std::erase_if(group.owners, [&](const auto& owned) { return owned.owner == self_.id; });
      group.owners.push_back({.owner = self_.id, .lanes = last_.lanes, .generation = generation_});
    }
    core_.changed(holding);
  }

  std::int64_t generation_{0};
};

// ---- what is done when

TEST_F(TenureCoreTest, takes_its_lanes_and_then_delivers) {
  deliver();
  EXPECT_EQ(held(), (store::Holding{.lanes = kAllLanes, .generation = 1}));
  EXPECT_EQ(last_.until, now_ + seconds(1));
}

TEST_F(TenureCoreTest, looks_and_updates_once_a_second_and_maintains_every_30) {
  deliver();
  EXPECT_THAT(round_after(milliseconds(999)), ElementsAre("sleep"));
  EXPECT_THAT(round_after(milliseconds(1)), ElementsAre("look", "update", "sleep"));
  EXPECT_THAT(round_after(seconds(29)), ElementsAre("look", "update", "maintain", "sleep"));
}

TEST_F(TenureCoreTest, updates_at_once_when_a_loop_rings) {
  deliver();
  core_.ring();
  EXPECT_THAT(round_after(milliseconds(1)), ElementsAre("update", "sleep"));
  EXPECT_THAT(round_after(milliseconds(1)), ElementsAre("sleep"));
}

TEST_F(TenureCoreTest, leaves_a_group_before_its_lanes_change_and_updates_at_once_then) {
  deliver();
  core_.ring();
  ASSERT_THAT(round_after(milliseconds(500)), ElementsAre("update", "sleep"));
  join(other_);
  EXPECT_THAT(round_after(milliseconds(500)),
              ElementsAre("look", "leave", "change", "forget", "update", "sleep"));
  EXPECT_EQ(std::popcount(held().lanes), 32);
  EXPECT_EQ(held().generation, 2);
}

TEST_F(TenureCoreTest, what_retries_have_delivered_is_kept_while_no_lanes_are_lost) {
  join(other_);
  deliver();
  fleet_.members.pop_back();
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "leave", "change", "update", "sleep"));
}

TEST_F(TenureCoreTest, looks_more_often_while_another_relay_has_lanes_of_its_share) {
  join(other_);
  group().owners = {{.owner = other_, .lanes = kAllLanes, .generation = 9}};
  EXPECT_THAT(round(), ElementsAre("look", "wait", "sleep"));
  EXPECT_EQ(last_.until, now_ + milliseconds(100));
  group().owners.front().lanes = kFirstHalf;
  EXPECT_THAT(round_after(milliseconds(100)),
              ElementsAre("look", "change", "begin", "apply", "update", "maintain", "sleep"));
  EXPECT_EQ(last_.until, now_ + milliseconds(100)) << "some are still not free";
}

TEST_F(TenureCoreTest, says_once_for_whom_it_waits_until_it_has_had_lanes) {
  join(other_);
  group().owners = {{.owner = other_, .lanes = kAllLanes, .generation = 9}};
  (void)round();
  EXPECT_EQ(wait_.owner, "other");
  (void)round_after(milliseconds(100));
  EXPECT_EQ(wait_.owner, std::nullopt);
  group().owners.clear();
  (void)round_after(milliseconds(100));
  ASSERT_NE(held().lanes, 0U);
  group().one_owner = true;
  fleet_.members.back().alive = true;
  group().owners.push_back({.owner = other_, .lanes = ~held().lanes, .generation = 9});
  EXPECT_THAT(round_after(seconds(1)),
              ElementsAre("look", "leave", "change", "forget", "wait", "update", "sleep"));
  EXPECT_EQ(wait_.owner, "other");
}

TEST_F(TenureCoreTest, takes_lanes_again_that_it_has_had_since_before_a_change_of_group) {
  deliver();
  group().least_generation = 2;
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "leave", "change", "update", "sleep"));
}

TEST_F(TenureCoreTest, serves_the_groups_that_it_was_told_and_those_with_subscriptions) {
  fleet_.groups.push_back({.name = "mails", .has_subscriptions = true, .owners = {}});
  fleet_.groups.push_back({.name = "empty", .owners = {}});
  fleet_.groups.push_back({.name = "custom:else", .has_subscriptions = true, .owners = {}});
  EXPECT_THAT(round(), ElementsAre("look", "change", "change mails", "begin", "apply",
                                   "apply mails", "update", "maintain", "sleep"));
}

TEST_F(TenureCoreTest, while_it_waits_it_has_the_configuration_compared_once_a_second) {
  specs_.push_back({.name = "orders", .sink = "http"});
  join(other_);
  group().owners = {{.owner = other_, .lanes = kAllLanes, .generation = 9}};
  (void)round();
  EXPECT_TRUE(wait_.compares);
  (void)round_after(milliseconds(100));
  EXPECT_FALSE(wait_.compares);
  (void)round_after(milliseconds(900));
  EXPECT_TRUE(wait_.compares);
}

TEST_F(TenureCoreTest, the_configuration_of_a_group_is_applied_once) {
  deliver();
  begin();
  EXPECT_THAT(round(), ElementsAre("look", "change", "begin", "update", "maintain", "sleep"));
}

// ---- when things fail

TEST_F(TenureCoreTest, lanes_that_were_taken_over_end_the_tenure) {
  deliver();
  join(other_);
  group().owners = {{.owner = other_, .lanes = 1, .generation = 9}};
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "end"));
  EXPECT_EQ(last_.error->code, Errc::lease_lost);
  EXPECT_EQ(last_.error->message, "lanes of group default were taken over by other");
}

TEST_F(TenureCoreTest, lanes_with_a_newer_generation_are_lost_even_if_nobody_has_them) {
  deliver();
  group().owners = {{.owner = {}, .lanes = 1, .generation = 9}};
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "end"));
}

TEST_F(TenureCoreTest, a_change_that_is_refused_because_its_row_is_gone_ends_the_tenure) {
  deliver();
  join(other_);
  failures_[Kind::change] = lease_lost("by the test");
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "leave", "change", "end"));
}

TEST_F(TenureCoreTest, a_change_that_gets_no_lock_is_tried_again_and_the_loops_start_again) {
  deliver();
  join(other_);
  locked_ = true;
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "leave", "change", "update", "sleep"));
  EXPECT_EQ(held().lanes, kAllLanes);
  locked_ = false;
  EXPECT_THAT(round_after(seconds(1)),
              ElementsAre("look", "leave", "change", "forget", "update", "sleep"));
}

TEST_F(TenureCoreTest, a_group_that_is_left_without_its_last_settlement_ends_the_tenure) {
  deliver();
  join(other_);
  failures_[Kind::leave] = error_with(Remedy::reconnect);
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "leave", "end"));
}

TEST_F(TenureCoreTest, a_failure_that_passes_does_not_end_what_is_delivered) {
  deliver();
  failures_[Kind::look] = error_with(Remedy::retry_call);
  failures_[Kind::update] = error_with(Remedy::retry_transaction);
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "report", "update", "report", "sleep"));
  EXPECT_EQ(last_.until, now_ + seconds(1));
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "update", "sleep"));
}

TEST_F(TenureCoreTest, a_failed_change_of_one_group_leaves_the_others_for_the_next_look) {
  deliver();
  fleet_.groups.push_back({.name = "mails", .has_subscriptions = true, .owners = {}});
  join(other_);
  failures_[Kind::change] = error_with(Remedy::retry_transaction);
  EXPECT_THAT(round_after(seconds(1)),
              ElementsAre("look", "leave", "change", "report", "update", "sleep"));
}

TEST_F(TenureCoreTest, the_same_failure_ends_a_tenure_that_delivers_nothing) {
  failures_[Kind::look] = error_with(Remedy::retry_call);
  EXPECT_THAT(round(), ElementsAre("look", "end"));
  begin();
  failures_[Kind::update] = error_with(Remedy::retry_call);
  EXPECT_THAT(round(), ElementsAre("look", "change", "begin", "apply", "update", "end"));
}

TEST_F(TenureCoreTest, a_lost_connection_ends_the_tenure) {
  deliver();
  failures_[Kind::look] = error_with(Remedy::reconnect);
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "end"));
  EXPECT_EQ(last_.error->remedy, Remedy::reconnect);
}

TEST_F(TenureCoreTest, what_other_threads_lose_ends_the_tenure_with_the_first_error) {
  deliver();
  core_.lose(lease_lost("the first"));
  core_.lose(lease_lost("the second"));
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("end"));
  EXPECT_EQ(last_.error->message, "the first");
  begin();
  EXPECT_EQ(core_.next(now_).kind, Kind::look);
}

TEST_F(TenureCoreTest, without_trust_no_configuration_is_applied) {
  trust_.end();
  EXPECT_THAT(round(), ElementsAre("look", "change", "begin", "end"));
  EXPECT_EQ(last_.error->code, Errc::lease_lost);
}

TEST_F(TenureCoreTest, another_outbox_ends_the_tenure_and_the_next_one_is_told) {
  deliver();
  fleet_.outbox = "another";
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("look", "end"));
  EXPECT_EQ(last_.error->remedy, Remedy::reconnect);
  EXPECT_TRUE(core_.replaces_outbox("another"));
  EXPECT_FALSE(core_.replaces_outbox("another"));
}

TEST_F(TenureCoreTest, retries_are_forgotten_when_another_relay_has_had_lanes_between_tenures) {
  deliver();
  begin();
  EXPECT_THAT(core_.holdings(), IsEmpty());
  EXPECT_THAT(round(), ElementsAre("look", "change", "begin", "update", "maintain", "sleep"))
      << "its lanes are still its own";
  begin();
  group().owners = {{.owner = {}, .lanes = 1, .generation = 9}};
  EXPECT_THAT(round(),
              ElementsAre("look", "forget", "change", "begin", "update", "maintain", "sleep"));
}

// ---- a stop

TEST_F(TenureCoreTest, a_stop_ends_the_tenure_in_order_before_any_failure) {
  deliver();
  core_.lose(lease_lost("by the test"));
  core_.stop();
  EXPECT_THAT(round_after(seconds(1)), ElementsAre("end"));
  EXPECT_FALSE(last_.error);
}

TEST_F(TenureCoreTest, a_stop_during_a_change_of_lanes_takes_no_more_after_this_round) {
  deliver();
  join(other_);
  now_ += seconds(1);
  ASSERT_EQ(core_.next(now_).kind, Kind::look);
  core_.looked(fleet_);
  ASSERT_EQ(core_.next(now_).kind, Kind::leave);
  core_.stop();
  EXPECT_THAT(round(), ElementsAre("change", "forget", "update", "sleep"));
  EXPECT_THAT(round_after(seconds(5)), ElementsAre("end"));
  core_.start(1);
  begin();
  EXPECT_EQ(core_.next(now_).kind, Kind::look);
}

// ---- the pauses between tenures

TEST_F(TenureCoreTest, pauses_grow_until_a_tenure_was_sound) {
  const auto first = core_.back_off(false, now_);
  const auto second = core_.back_off(false, now_);
  EXPECT_FALSE(second.was_sound);
  EXPECT_GT(second.pause, first.pause);
  deliver();
  EXPECT_GT(core_.back_off(false, now_ + milliseconds(1999)).pause, second.pause);
  begin();
  (void)round();
  const auto after_sound = core_.back_off(false, now_ + seconds(2));
  EXPECT_TRUE(after_sound.was_sound);
  EXPECT_EQ(after_sound.pause, first.pause);
  EXPECT_TRUE(core_.back_off(true, now_).was_sound) << "something was settled";
  EXPECT_EQ(core_.back_off(false, now_).pause, second.pause);
}

TEST_F(TenureCoreTest, the_sinks_stay_open_while_no_other_relay_may_have_the_lanes) {
  EXPECT_FALSE(core_.back_off(false, now_).close_sinks);
  EXPECT_TRUE(core_.back_off(false, now_ + seconds(1000)).close_sinks);
}

}  // namespace
}  // namespace outbox::relay
