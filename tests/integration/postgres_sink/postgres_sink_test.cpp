// Tests that every event has exactly one row, whatever happens on the way: lost answers, crashes,
// cuts, two senders, consumers that delete.
#include "integration/postgres_sink/fixture.hpp"

namespace outbox::test {
namespace {

using testing::HasSubstr;

TEST_F(PostgresSinkTest, a_commit_whose_answer_is_lost_is_in_doubt_and_found_when_it_comes_again) {
  TcpGate gate(server().port());
  open({{"url", server().url(gate.port())}, {"deadline", "2s"}});
  Load load;
  load.add_many(300, 20);
  MiniRelay relay(*sink_, load);
  relay.offer(100);
  ASSERT_TRUE(relay.drain());
  gate.set(TcpGate::Mode::answers_lost);
  ASSERT_EQ(relay.offer(100), 100U);
  ASSERT_TRUE(eventually([&] { return count() == 200; })) << "committed, and we do not know";
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 100U);
  ASSERT_EQ(relay.failures().size(), 100U);
  for (const auto& failure : relay.failures()) {
    EXPECT_EQ(failure.outcome.kind, Outcome::Kind::unknown);
    EXPECT_EQ(failure.outcome.error.effect, Effect::unknown);
  }
  gate.set(TcpGate::Mode::open);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
  EXPECT_EQ(server().admin().value("SELECT count(*) FROM " + delivered_ + " WHERE times = 2"),
            "100");
}

TEST_F(PostgresSinkTest, a_server_killed_again_and_again_under_load_has_each_event_once) {
  open();
  Load load;
  load.add_many(static_cast<std::size_t>(6000) * static_cast<std::size_t>(soak_factor()), 50);
  MiniRelay relay(*sink_, load);
  for (std::size_t kill = 1; kill <= 3; ++kill) {
    ASSERT_TRUE(relay.deliver_first(kill * load.size() / 5, 200));
    relay.offer_all();
    server().server().stop_immediate();
    ASSERT_TRUE(relay.drain());
    EXPECT_FALSE(sink_->open().has_value());
    server().server().start();
    relay.rewind();
    ASSERT_TRUE(reopen());
  }
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
}

TEST_F(PostgresSinkTest, connections_cut_at_any_byte_leave_each_event_once) {
  TcpGate gate(server().port());
  open({{"url", server().url(gate.port())}, {"batch", "40"}});
  Load load;
  load.add_many(1500, 30);
  MiniRelay relay(*sink_, load);
  gate.cut_after(12'000);
  while (gate.cuts() < 25 && relay.acked() < load.size()) {
    relay.offer_all();
    ASSERT_TRUE(relay.drain());
    relay.rewind();
    ASSERT_TRUE(reopen());
  }
  EXPECT_GT(gate.cuts(), 5);
  gate.cut_after(0);
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
}

/// The two senders are a relay that was taken over and does not know it yet, and its successor.
TEST_F(PostgresSinkTest, two_senders_of_the_same_events_at_once_insert_each_once) {
  open({{"batch", "50"}});
  const auto other = make({{"batch", "70"}});
  ASSERT_TRUE(other->open().has_value());
  Load load;
  load.add_many(2000, 40);
  MiniRelay one(*sink_, load);
  MiniRelay two(*other, load);
  for (bool more = true; more;) {
    more = one.offer(170) > 0;
    more = two.offer(130) > 0 || more;
    one.receive();
    two.receive();
    more = more || one.in_flight() > 0 || two.in_flight() > 0;
  }
  EXPECT_TRUE(one.failures().empty());
  EXPECT_TRUE(two.failures().empty());
  other->close();
  expect_each_once(load);
}

TEST_F(PostgresSinkTest, rows_that_a_consumer_has_taken_do_not_come_back_with_a_redelivery) {
  Load load;
  load.add_many(400, 20);
  for (int time = 0; time < 3; ++time) {
    open();  // a new sink, as after a takeover
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver());
    EXPECT_EQ(relay.acked(), load.size());
    if (time == 0) {
      expect_each_once(load);
      server().admin().exec("DELETE FROM " + table_);
    }
  }
  EXPECT_EQ(count(), 0);
}

/// An event that was parked comes later than others of greater seq. So does an event that a changed
/// filter lets through.
TEST_F(PostgresSinkTest, an_event_that_comes_late_is_inserted) {
  open();
  Load load;
  load.add_many(10, 10);
  for (const std::size_t place : {5U, 9U, 2U, 9U, 0U})
    EXPECT_EQ(find_outcome(load, place).kind, Outcome::Kind::acked);
  EXPECT_EQ(places(server().arrived(table_), load), (std::vector<std::size_t>{5, 9, 2, 0}));
}

TEST_F(PostgresSinkTest, a_replay_inserts_the_event_again_and_once) {
  open();
  Load load;
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  for (const char* headers : {R"({"outbox-replay":"1"})", R"({"outbox-replay":"2"})"}) {
    load.item(0).event.headers = headers;
    for (int time = 0; time < 2; ++time)
      EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked) << headers;
  }
  EXPECT_EQ(count(), 3);
}

TEST_F(PostgresSinkTest, each_subscription_and_each_event_of_an_id_has_its_own_row) {
  open();
  Load load;
  load.add("k", "B");
  load.add("k", "C");
  load.item(1).event.id = load.item(0).event.id;  // no constraint of the log forbids it
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked);
  EXPECT_EQ(find_outcome(load, 1).kind, Outcome::Kind::acked);
  EXPECT_EQ(count(), 2);
  sink_->close();
  open({}, "audit");
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked);
  EXPECT_EQ(count(), 3);
}

TEST_F(PostgresSinkTest, without_ids_a_unique_index_takes_their_place) {
  const Settings settings{{"dedup_window", "0"}};
  EXPECT_EQ(error_of_open(settings), "");
  sink_ = make(settings);
  Load load;
  load.add_many(20, 5);
  const Outcome refused = find_outcome(load);
  EXPECT_EQ(refused.kind, Outcome::Kind::blocked);
  EXPECT_THAT(refused.error.text(), HasSubstr("unique index on the column with {id}"));
  make_id_unique();
  for (int time = 0; time < 2; ++time) {
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver());
  }
  expect_each_once(load);
  EXPECT_EQ(server().admin().exec("SELECT to_regclass('" + delivered_ + "')")[0][0], std::nullopt);
}

TEST_F(PostgresSinkTest, ids_older_than_the_window_are_removed_in_chunks) {
  const Settings settings{{"dedup_window", "1h"}, {"batch", "10"}};
  open(settings);
  Load load;
  load.add_many(40, 40);
  {
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver());
  }
  Pg admin = server().admin();
  for (const char* old : {"SELECT gen_random_uuid(), n, 'orders', '', now() - interval '2h', 1 "
                          "FROM generate_series(1, 2500) n",
                          "SELECT gen_random_uuid(), 1, 'audit', '', now() - interval '2h', 1"})
    admin.exec("INSERT INTO " + delivered_ + " " + old);
  open(settings);
  // One chunk is removed after each batch as long as there are more.
  for (int removed = 1; removed <= 3; ++removed) {
    load.add("more", "B");
    EXPECT_EQ(find_outcome(load, load.size() - 1).kind, Outcome::Kind::acked);
    std::vector<Outcome> none;
    const int left = std::max(0, 2500 - removed * 1000) + 40 + removed + 1;
    EXPECT_TRUE(eventually([&] {
      sink_->receive(none);
      return count(delivered_) == left;
    })) << count(delivered_)
        << " instead of " << left;
  }
  EXPECT_EQ(admin.value("SELECT count(*) FROM " + delivered_ + " WHERE subscription = 'audit'"),
            "1")
      << "another subscription may have a longer window";
  MiniRelay again(*sink_, load);
  ASSERT_TRUE(again.deliver());
  expect_each_once(load);
}

TEST_F(PostgresSinkTest, a_redelivery_begins_the_window_anew) {
  open({{"dedup_window", "1h"}});
  Load load;
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  server().admin().exec("UPDATE " + delivered_ + " SET delivered_at = now() - interval '59min'");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_EQ(
      server().admin().value("SELECT delivered_at > now() - interval '1min' FROM " + delivered_),
      "t");
  EXPECT_EQ(count(), 1);
}

}  // namespace
}  // namespace outbox::test
