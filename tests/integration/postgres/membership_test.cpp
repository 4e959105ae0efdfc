// One owner of the lanes at a time, and when another relay takes over.
#include <atomic>
#include <thread>

#include "base/process.hpp"
#include "integration/postgres/harness.hpp"
#include "support/testkit.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLong = std::chrono::minutes(10);

class PostgresMembership : public PostgresTest {
 protected:
  [[nodiscard]] std::unique_ptr<store::Membership> member(const std::string& name) const {
    auto membership = store_->membership(name);
    EXPECT_TRUE(ok(membership));
    return membership ? std::move(*membership) : nullptr;
  }
  static store::Membership::Standing keep(store::Membership& member, milliseconds lease = kLong) {
    auto standing = member.keep(lease);
    EXPECT_TRUE(ok(standing));
    return standing.value_or(store::Membership::Standing{});
  }
  /// As if the owner's heartbeats had stopped long ago.
  void let_lease_pass() const {
    (void)connect().exec("UPDATE outbox.relay SET heartbeat_at = heartbeat_at - interval '1 hour'");
  }
  [[nodiscard]] store::RelayRow row_of(const std::string& name) const {
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
  // As after the clock was set back by an hour.
  (void)connect().exec(
      "UPDATE outbox.relay SET heartbeat_at = heartbeat_at + interval '1 hour' WHERE name = 'first'");
  EXPECT_FALSE(second->vacant().value()) << "it may just not have renewed it yet";
  EXPECT_FALSE(row_of("first").alive);
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

// By its estimated cost the server would compile it first, and no relay delivers meanwhile.
TEST_F(PostgresMembership, a_claim_is_neither_compiled_nor_planned_by_statistics) {
  subscribe("mails");
  (void)connect().exec(
      "CREATE TABLE seen (jit text, seqscan text);"
      "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "  INSERT INTO seen VALUES (current_setting('jit'), current_setting('enable_seqscan')); RETURN NEW; END $$;"
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
  std::vector<std::unique_ptr<store::Membership>> challengers;
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
  EXPECT_THAT(claims[1], ::testing::ElementsAre("2", "-1", g, "3:3:", std::nullopt, "0",
                                                std::nullopt, std::nullopt, "0"));
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
  auto strands = (*progress)->load(1);
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

}  // namespace
}  // namespace outbox::test
