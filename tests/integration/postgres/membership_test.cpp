// Tests that lanes have one owner at a time, and when another relay takes over.
#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "base/process.hpp"
#include "integration/postgres/harness.hpp"
#include "store/postgres/queries.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/lane_owner.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLong = std::chrono::minutes(10);

class PostgresMembership : public PostgresTest {
 protected:
  [[nodiscard]] std::unique_ptr<LaneOwner> member(const std::string& name) const {
    return std::make_unique<LaneOwner>(*store_, name);
  }
  static LaneOwner::Standing keep(LaneOwner& member, milliseconds lease = kLong) {
    auto standing = member.keep(lease);
    EXPECT_TRUE(ok(standing));
    return standing.value_or(LaneOwner::Standing{});
  }
  /// Makes the owner's last heartbeat an hour old.
  void let_lease_pass() const {
    (void)connect().exec("UPDATE outbox.relay SET heartbeat_at = heartbeat_at - interval '1 hour'");
  }
  [[nodiscard]] store::RelayRow read_row(const std::string& name) const {
    const auto relays = (*store_->catalog())->relays().value();
    for (const auto& relay : relays) {
      if (relay.name == name) return relay;
    }
    return {};
  }
  void subscribe(const std::string& name) const {
    ASSERT_TRUE(ok((*store_->catalog())->apply({.name = name, .sink = "null"})));
  }
};

TEST_F(PostgresMembership, the_first_owns_and_the_second_waits) {
  const auto first = member("first");
  const auto second = member("second");
  EXPECT_TRUE(keep(*first).owns());
  const auto standing = keep(*second);
  EXPECT_FALSE(standing.owns());
  EXPECT_EQ(standing.other, "first");
  EXPECT_FALSE(second->vacant().value());
  EXPECT_TRUE(keep(*first).owns());
  EXPECT_EQ(
      value(
          "SELECT count(*) FROM outbox.lane WHERE owner = (SELECT id FROM outbox.relay WHERE name = 'first')"),
      "64");
}

TEST_F(PostgresMembership, a_dead_owner_is_replaced_although_the_servers_clock_was_set_back) {
  const auto first = member("first");
  const auto second = member("second");
  const auto before = keep(*first, milliseconds(500));
  // This is what the row looks like after the clock was set back by an hour.
  (void)connect().exec(
      "UPDATE outbox.relay SET heartbeat_at = heartbeat_at + interval '1 hour' WHERE name = 'first'");
  EXPECT_FALSE(second->vacant().value()) << "it may just not have renewed it yet";
  EXPECT_FALSE(read_row("first").alive);
  EXPECT_TRUE(eventually([&] { return second->vacant().value(); }, seconds(60)));
  const auto after = keep(*second);
  EXPECT_TRUE(after.owns());
  EXPECT_GT(after.generation, before.generation);
}

TEST_F(PostgresMembership, an_owner_that_renews_is_alive_although_the_servers_clock_was_set_back) {
  const auto first = member("first");
  const auto second = member("second");
  (void)keep(*first, milliseconds(500));
  (void)connect().exec("UPDATE outbox.relay SET heartbeat_at = heartbeat_at + interval '1 hour'");
  EXPECT_FALSE(second->vacant().value());
  const auto until = std::chrono::steady_clock::now() + seconds(1);
  while (std::chrono::steady_clock::now() < until) {
    EXPECT_TRUE(keep(*first, milliseconds(60'000)).owns());
    EXPECT_FALSE(keep(*second, milliseconds(60'000)).owns());
  }
}

TEST_F(PostgresMembership, a_lease_that_has_passed_is_taken_over_and_the_old_owner_hears_of_it) {
  subscribe("mails");
  const auto first = member("first");
  const auto second = member("second");
  const auto before = keep(*first);
  let_lease_pass();
  EXPECT_TRUE(second->vacant().value());
  const auto after = keep(*second);
  EXPECT_TRUE(after.owns());
  EXPECT_GT(after.generation, before.generation);
  const auto told = keep(*first);
  EXPECT_FALSE(told.owns());
  EXPECT_EQ(told.other, "second");
}

TEST_F(PostgresMembership, a_heartbeat_before_the_takeover_saves_the_owner) {
  const auto first = member("first");
  const auto second = member("second");
  ASSERT_TRUE(keep(*first).owns());
  let_lease_pass();
  EXPECT_TRUE(keep(*first).owns());
  EXPECT_FALSE(keep(*second).owns());
}

// By the claim's estimated cost the server would compile it first, and no relay would deliver
// meanwhile.
TEST_F(PostgresMembership, a_claim_is_neither_compiled_nor_planned_by_statistics) {
  subscribe("mails");
  (void)connect().exec(
      "CREATE TABLE seen (jit text, seqscan text);"
      "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "  INSERT INTO public.seen VALUES (current_setting('jit'), current_setting('enable_seqscan')); RETURN NEW; END $$;"
      "CREATE TRIGGER look BEFORE INSERT ON outbox.settlement FOR EACH ROW EXECUTE FUNCTION look();"
      "GRANT INSERT ON seen TO PUBLIC");
  const auto member = this->member("first");
  EXPECT_TRUE(keep(*member).owns());
  EXPECT_EQ(value("SELECT string_agg(jit || ' ' || seqscan, ',') FROM seen"), "off off");
}

TEST_F(PostgresMembership, given_back_is_free_at_once) {
  const auto first = member("first");
  const auto second = member("second");
  const auto before = keep(*first);
  EXPECT_FALSE(keep(*second).owns());
  ASSERT_TRUE(ok(first->leave()));
  EXPECT_TRUE(second->vacant().value());
  const auto after = keep(*second);
  EXPECT_TRUE(after.owns());
  EXPECT_EQ(after.generation, before.generation + 1);
  EXPECT_EQ(value("SELECT string_agg(name, ',') FROM outbox.relay"), "second");
  EXPECT_TRUE(ok(first->leave()));
}

TEST_F(PostgresMembership, an_owner_whose_process_is_gone_is_replaced_at_once) {
  const auto first = member("first");
  const auto second = member("second");
  ASSERT_TRUE(keep(*first).owns());
  EXPECT_FALSE(second->vacant().value());
  ChildProcess child({.command = {"/bin/sleep", "1000"}});
  (void)connect().exec("UPDATE outbox.relay SET pid = " + std::to_string(child.pid()) +
                       ", started = 0 WHERE name = 'first'");
  EXPECT_FALSE(second->vacant().value());
  child.kill();
  EXPECT_TRUE(second->vacant().value());
  EXPECT_TRUE(keep(*second).owns());
}

TEST_F(PostgresMembership, of_a_process_elsewhere_only_the_lease_tells) {
  const auto first = member("first");
  const auto second = member("second");
  ASSERT_TRUE(keep(*first).owns());
  (void)connect().exec(
      "UPDATE outbox.relay SET pid = 1999999999, boot_id = 'another machine' WHERE name = 'first'");
  EXPECT_FALSE(second->vacant().value());
  EXPECT_FALSE(keep(*second).owns());
  (void)connect().exec("UPDATE outbox.relay SET boot_id = '" + this_process().boot_id +
                       "', pid_ns = 'another container' WHERE name = 'first'");
  EXPECT_FALSE(second->vacant().value());
}

TEST_F(PostgresMembership, of_two_challengers_one_wins) {
  const auto first = member("first");
  ASSERT_TRUE(keep(*first).owns());
  let_lease_pass();
  std::vector<std::unique_ptr<LaneOwner>> challengers;
  for (int i = 0; i < 6; ++i) challengers.push_back(member("challenger"));
  std::atomic<int> owners{0};
  {
    std::vector<std::jthread> threads;
    for (const auto& challenger : challengers) {
      threads.emplace_back([&owners, &challenger] { owners += keep(*challenger).owns() ? 1 : 0; });
    }
  }
  EXPECT_EQ(owners, 1);
  EXPECT_EQ(value("SELECT count(DISTINCT (owner, generation)) FROM outbox.lane"), "1");
}

TEST_F(PostgresMembership, a_challenger_that_holds_the_lanes_does_not_hold_up_the_others) {
  const auto first = member("first");
  const auto second = member("second");
  ASSERT_TRUE(keep(*first).owns());
  let_lease_pass();
  Pg frozen(database_->url());
  (void)frozen.exec("BEGIN; SELECT FROM outbox.lane FOR UPDATE");
  auto standing = second->keep(kLong);
  ASSERT_TRUE(ok(standing));
  EXPECT_FALSE(standing->owns());
  (void)frozen.exec("ROLLBACK");
  EXPECT_TRUE(keep(*second).owns());
}

TEST_F(PostgresMembership, a_takeover_claims_the_newest_cursor_of_every_subscription) {
  subscribe("mails");
  subscribe("reports");
  (void)connect().exec(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, config_version, s1, s2, from_position, position, l) "
      "VALUES (1, 'settle', -1, 0, 1, '3:3:', '100:120:110', 0, 7, 20)");
  const auto first = member("first");
  const auto generation = keep(*first).generation;
  const auto claims = connect().exec(
      "SELECT subscription, lanes, generation, s1, s2, from_position, position, l, acked FROM outbox.settlement "
      "WHERE kind = 'claim' ORDER BY subscription");
  const std::string g = std::to_string(generation);
  ASSERT_EQ(claims.size(), 2U);
  EXPECT_THAT(claims[0],
              ::testing::ElementsAre("1", "-1", g, "3:3:", "100:120:110", "7", "7", "20", "0"));
  EXPECT_THAT(claims[1], ::testing::ElementsAre("2", "-1", g, "3:3:", "3:3:", "0", std::nullopt,
                                                std::nullopt, "0"));
}

TEST_F(PostgresMembership, a_late_row_of_the_old_owner_does_not_count) {
  subscribe("mails");
  const auto first = member("first");
  const auto before = keep(*first);
  let_lease_pass();
  const auto second = member("second");
  ASSERT_TRUE(keep(*second).owns());
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  store::Settlement late;
  late.subscription = 1;
  late.generation = before.generation;
  late.config_version = 1;
  late.s1 = "3:3:";
  late.s2 = "100:100:";
  late.bound = 5;
  ASSERT_TRUE(
      ok((*progress)->append({.settlements = std::span(&late, 1)}, store::Durability::flushed)));
  auto strands = (*progress)->load(1, store::kAllLanes);
  ASSERT_TRUE(ok(strands));
  ASSERT_EQ(strands->size(), 1U);
  EXPECT_EQ(strands->front().cursor.s1, "3:3:");
  EXPECT_TRUE(strands->front().cursor.drained());
}

TEST_F(PostgresMembership, lanes_at_different_cursors_are_claimed_apart) {
  subscribe("mails");
  (void)connect().exec(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, config_version, s1, s2) VALUES "
      "(1, 'settle', 5, 0, 1, '3:3:', '50:50:'), (1, 'settle', (1::bigint << 63), 0, 1, '3:3:', '60:60:')");
  const auto first = member("first");
  ASSERT_TRUE(keep(*first).owns());
  const auto claims =
      connect().exec("SELECT lanes FROM outbox.settlement WHERE kind = 'claim' ORDER BY lanes");
  ASSERT_EQ(claims.size(), 3U);
  EXPECT_EQ(*claims[0][0], std::to_string(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(*claims[1][0], "5");
  EXPECT_EQ(*claims[2][0], std::to_string(std::int64_t{0x7fffffffffffffff} - 5));
}

TEST_F(PostgresMembership, a_member_removed_by_hand_registers_again) {
  const auto first = member("first");
  ASSERT_TRUE(keep(*first).owns());
  (void)connect().exec("DELETE FROM outbox.relay");
  EXPECT_TRUE(keep(*first).owns());
  EXPECT_EQ(value("SELECT count(*) FROM outbox.relay"), "1");
}

TEST_F(PostgresMembership, heartbeats_survive_a_row_that_moved) {
  const auto first = member("first");
  ASSERT_TRUE(keep(*first).owns());
  (void)connect().exec("UPDATE outbox.relay SET name = 'renamed'");
  (void)connect().exec("VACUUM FULL outbox.relay");
  EXPECT_TRUE(keep(*first).owns());
  EXPECT_EQ(value("SELECT clock_timestamp() - heartbeat_at < interval '10 s' FROM outbox.relay"),
            "t");
}

TEST_F(PostgresMembership, the_list_of_relays_tells_who_delivers_and_who_lives) {
  const auto first = member("first");
  const auto second = member("second");
  ASSERT_TRUE(keep(*first).owns());
  EXPECT_FALSE(keep(*second).owns());
  (void)connect().exec(
      "UPDATE outbox.relay SET heartbeat_at = heartbeat_at - interval '1 hour' WHERE name = 'second'");
  auto relays = (*store_->catalog())->relays();
  ASSERT_TRUE(ok(relays));
  ASSERT_EQ(relays->size(), 2U);
  EXPECT_EQ((*relays)[0].name, "first");
  EXPECT_TRUE((*relays)[0].owner);
  EXPECT_TRUE((*relays)[0].alive);
  EXPECT_FALSE((*relays)[1].owner);
  EXPECT_FALSE((*relays)[1].alive);
  EXPECT_THAT((*relays)[0].heartbeat_at, ::testing::MatchesRegex("....-..-..T..:..:......Z"));
}

// ---- the shares of a group

class PostgresShares : public PostgresMembership {
 protected:
  static constexpr store::LaneMask kLow = 0x0000'0000'FFFF'FFFF;

  store::Holding change(LaneOwner& relay, const std::string& group, store::LaneMask lanes) {
    auto changed = relay.owners().change(group, lanes);
    EXPECT_TRUE(ok(changed));
    return changed && *changed ? **changed : store::Holding{};
  }
  std::vector<store::Strand> load(std::int32_t subscription,
                                  store::LaneMask lanes = store::kAllLanes) {
    auto strands = progress_->load(subscription, lanes);
    EXPECT_TRUE(ok(strands));
    return strands.value_or(std::vector<store::Strand>{});
  }
  /// Settles a pair that ends at this snapshot.
  void settle(const store::Holding& holding, const std::string& s1, const std::string& s2,
              std::int64_t acked, store::LaneMask lanes) {
    store::Settlement row{.subscription = 1, .lanes = lanes, .generation = holding.generation};
    row.s1 = s1;
    row.s2 = s2;
    row.acked.count = acked;
    ASSERT_TRUE(
        ok(progress_->append({.settlements = std::span(&row, 1)}, store::Durability::flushed)));
  }
  /// Expects that people are shown the places at which relays begin.
  void expect_standing_as_cursors() {
    const store::postgres::Queries queries("outbox");
    Pg admin(database_->url());
    admin.run("PREPARE cursors AS " + queries.cursors.sql);
    admin.run("PREPARE standing AS " + queries.standing.sql);
    const auto places = [&](const std::string& call) {
      std::multiset<std::string> found;
      for (const auto& row : admin.exec("EXECUTE " + call)) {
        std::string text;
        for (int column = 0; column < 7; ++column) text += row[column].value_or("null") + " ";
        found.insert(text);
      }
      return found;
    };
    EXPECT_EQ(places("standing(1)"), places("cursors(1, -1)"));
  }
  std::int64_t total() {
    store::SubscriptionProgress progress;
    progress.id = 1;
    EXPECT_TRUE(ok((*store_->catalog())->add_totals(progress)));
    expect_standing_as_cursors();
    return progress.acked;
  }
  LaneOwner& joined(std::unique_ptr<LaneOwner>& relay, const std::string& name) {
    relay = member(name);
    EXPECT_TRUE(ok(relay->keep()));
    return *relay;
  }
  void SetUp() override {
    PostgresMembership::SetUp();
    if (IsSkipped()) return;
    subscribe("mails");
    progress_ = store_->progress().value();
  }

  std::unique_ptr<store::Progress> progress_;
};

TEST_F(PostgresShares, lanes_that_are_given_back_go_to_another_relay_and_the_rest_stays) {
  std::unique_ptr<LaneOwner> a;
  std::unique_ptr<LaneOwner> b;
  joined(a, "a");
  const auto low = change(*a, "default", kLow);
  EXPECT_EQ(low.lanes, kLow);
  const auto high = joined(b, "b").keep().value();
  EXPECT_EQ(high.lanes, ~kLow);
  EXPECT_GT(high.generation, low.generation);
  const auto more = change(*b, "default", store::kAllLanes);
  EXPECT_EQ(more.lanes, ~kLow) << "the others have a live owner";
  EXPECT_EQ(change(*a, "default", 0), store::Holding{});
  EXPECT_EQ(change(*b, "default", store::kAllLanes).lanes, store::kAllLanes);
}

TEST_F(PostgresShares, totals_are_the_sum_over_all_owners_through_every_change) {
  std::unique_ptr<LaneOwner> a;
  std::unique_ptr<LaneOwner> b;
  const store::Holding all = change(joined(a, "a"), "default", store::kAllLanes);
  settle(all, "3:3:", "10:10:", 5, store::kAllLanes);
  EXPECT_EQ(total(), 5);
  const store::Holding high = change(*a, "default", ~kLow);
  EXPECT_EQ(total(), 5);
  joined(b, "b");
  const store::Holding low = change(*b, "default", kLow);
  settle(high, "10:10:", "20:20:", 2, ~kLow);
  settle(low, "10:10:", "30:30:", 1, kLow);
  EXPECT_EQ(total(), 8);
  settle(all, "10:10:", "40:40:", 100, store::kAllLanes);
  EXPECT_EQ(total(), 8) << "a late row of a former ownership";
  EXPECT_EQ(change(*b, "default", 0), store::Holding{});
  const store::Holding again = change(*a, "default", store::kAllLanes);
  EXPECT_EQ(total(), 8);
  ASSERT_EQ(load(1).size(), 2U) << "at two cursors";
  settle(again, "20:20:", "50:50:", 3, ~kLow);
  settle(again, "30:30:", "50:50:", 4, kLow);
  EXPECT_EQ(total(), 15);

  // Both halves are at one place again, so that they are one strand. Its totals are in two rows
  // until a claim continues them in one.
  ASSERT_EQ(load(1).size(), 1U);
  EXPECT_EQ(load(1).front().rows, 2U);
  ASSERT_TRUE(ok(progress_->claim(1, store::kAllLanes, again.generation)));
  ASSERT_EQ(load(1).size(), 1U);
  EXPECT_EQ(load(1).front().rows, 1U);
  EXPECT_EQ(load(1).front().cursor, (store::Cursor{.s1 = "50:50:"}));
  EXPECT_EQ(total(), 15);
  settle(again, "50:50:", "60:60:", 1, store::kAllLanes);
  EXPECT_EQ(total(), 16);
}

TEST_F(PostgresShares, only_the_owner_claims_a_subscription) {
  std::unique_ptr<LaneOwner> a;
  const store::Holding low = change(joined(a, "a"), "default", kLow);
  EXPECT_TRUE(ok(progress_->claim(1, kLow, low.generation)));
  EXPECT_FALSE(progress_->claim(1, kLow, low.generation - 1));
  EXPECT_FALSE(progress_->claim(1, store::kAllLanes, low.generation));
}

TEST_F(PostgresShares, a_relay_that_was_taken_for_dead_cannot_take_lanes) {
  std::unique_ptr<LaneOwner> a;
  joined(a, "a");
  (void)connect().exec("DELETE FROM outbox.relay");
  auto changed = a->owners().change("default", store::kAllLanes);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, Errc::lease_lost);
}

TEST_F(PostgresShares, in_a_new_group_only_a_new_ownership_counts) {
  std::unique_ptr<LaneOwner> a;
  joined(a, "a");
  const store::Holding heavy = change(*a, "heavy", store::kAllLanes);
  const store::Holding old = change(*a, "default", store::kAllLanes);
  settle(old, "3:3:", "10:10:", 5, store::kAllLanes);
  SubscriptionSpec moved{.name = "mails", .sink = "null"};
  moved.group = "heavy";
  ASSERT_TRUE(ok((*store_->catalog())->apply(moved)));
  const auto row = (*store_->catalog())->subscriptions()->front();
  EXPECT_EQ(row.group, "heavy");
  EXPECT_GT(row.group_generation, heavy.generation);
  const auto fleet = a->owners().look().value();
  for (const auto& group : fleet.groups)
    EXPECT_EQ(group.least_generation, group.name == "heavy" ? row.group_generation : 0);
  const store::Holding fresh = change(*a, "heavy", store::kAllLanes);
  EXPECT_GT(fresh.generation, row.group_generation);
  EXPECT_EQ(load(1).front().cursor.s1, "10:10:");
  EXPECT_EQ(load(1).front().generation, fresh.generation);
  settle(old, "10:10:", "20:20:", 7, store::kAllLanes);
  EXPECT_EQ(load(1).front().cursor.s1, "10:10:") << "a late row of the old group's owner";
  EXPECT_EQ(total(), 5);
}

TEST_F(PostgresShares, the_cursor_of_a_quiet_lane_is_found_beside_a_busy_owner) {
  std::unique_ptr<LaneOwner> a;
  std::unique_ptr<LaneOwner> b;
  const store::Holding low = change(joined(a, "a"), "default", kLow);
  settle(low, "3:3:", "10:10:", 1, kLow);
  joined(b, "b");
  const store::Holding high = change(*b, "default", ~kLow);
  (void)connect().exec(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, config_version, s1, s2, l) "
      "SELECT 1, 'settle', ~$1::bigint, $2::bigint, 1, '3:3:', '20:20:', 1 FROM generate_series(1, 200)",
      {std::to_string(kLow), std::to_string(high.generation)});
  const auto strands = load(1);
  ASSERT_EQ(strands.size(), 2U);
  for (const auto& strand : strands)
    EXPECT_EQ(strand.cursor.s1, strand.lanes == kLow ? "10:10:" : "20:20:");
  EXPECT_EQ(load(1, 1).front().cursor.s1, "10:10:");
}

}  // namespace
}  // namespace outbox::test
