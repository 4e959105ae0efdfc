// Tests what a Redis server may refuse. Each refusal blocks with its reason, nothing is lost, and
// the sink goes on by itself.
#include "integration/redis/redis_fixture.hpp"
#include "support/eventually.hpp"
#include "support/free_port.hpp"

namespace outbox::test {
namespace {

// ---- memory

TEST_F(RedisSinkTest, a_server_without_memory_blocks_and_gets_everything_later) {
  open();
  Load load(kStream);
  load.add_many(200, 20);
  MiniRelay relay(*sink_, load);
  relay.offer(100);
  ASSERT_TRUE(relay.drain());
  const std::size_t acked = relay.acked();
  (void)server().run({"CONFIG", "SET", "maxmemory", "1"});
  ASSERT_GT(relay.offer(100), 0U);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), acked) << "the limit is kept";
  for (const auto& failure : relay.failures()) {
    EXPECT_EQ(failure.outcome.kind, Outcome::Kind::blocked);
    EXPECT_TRUE(contains(failure.outcome.error.text(), "maxmemory"))
        << failure.outcome.error.text();
    EXPECT_FALSE(is_remembered(load, failure.place));
  }
  const Status opened = sink_->open();
  ASSERT_FALSE(opened.has_value()) << "no event needs to be tried";
  EXPECT_TRUE(contains(opened.error().text(), "OOM")) << opened.error().text();
  EXPECT_EQ(length(), static_cast<long>(acked));
  (void)server().run({"CONFIG", "SET", "maxmemory", "0"});
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
}

// ---- the stream

TEST_F(RedisSinkTest, a_key_of_another_type_blocks_and_is_named) {
  open();
  Load load(kStream);
  load.add_many(20, 5);
  (void)server().run({"SET", kStream, "text"});
  const Outcome outcome = find_outcome(load);
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked);
  EXPECT_EQ(outcome.scope, Outcome::Scope::partition);
  EXPECT_TRUE(contains(outcome.error.text(), "stream order.events: WRONGTYPE"))
      << outcome.error.text();
  EXPECT_FALSE(is_remembered(load)) << "it would never be added";
  (void)server().run({"DEL", kStream});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
}

// ---- roles

TEST_F(RedisSinkTest, a_master_that_became_a_replica_blocks_until_it_is_one_again) {
  OwnRedis other;
  open();
  Load load(kStream);
  load.add_many(20, 5);
  (void)server().run({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
  const Outcome outcome = find_outcome(load);
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked);
  EXPECT_TRUE(contains(outcome.error.text(), "READONLY")) << outcome.error.text();
  const Status opened = sink_->open();
  ASSERT_FALSE(opened.has_value());
  EXPECT_TRUE(contains(opened.error().text(), "is a replica")) << opened.error().text();
  (void)server().run({"REPLICAOF", "NO", "ONE"});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
}

TEST_F(RedisSinkTest, of_several_servers_the_one_that_is_the_master_is_used) {
  const auto replica = OwnRedis::start_replica(server().port());
  Load load(kStream);
  load.add_many(100, 10);
  open({{"url", replica->url() + "," + server().url()}});
  MiniRelay relay(*sink_, load);
  relay.offer(50);
  ASSERT_TRUE(relay.drain());
  const std::size_t acked = relay.acked();
  ASSERT_TRUE(eventually([&] { return replica->client().number({"XLEN", kStream}) == length(); }));
  server().kill();
  (void)replica->run({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(relay.deliver());
  EXPECT_GT(relay.acked(), acked);
  const auto found = places(replica->client().arrived(kStream), load);
  expect_complete_and_ordered(found, load);
  EXPECT_EQ(found.size(), load.size());
}

TEST_F(RedisSinkTest, a_node_of_a_cluster_is_refused) {
  // By default such a server also takes the port 10,000 above its own, which may be in use by
  // somebody's connection.
  (void)server({"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())});
  EXPECT_TRUE(contains(error_of_open(), "Redis Cluster"));
}

TEST_F(RedisSinkTest, too_few_replicas_for_the_server_block_before_an_event_is_sent) {
  open();
  (void)server().run({"CONFIG", "SET", "min-replicas-to-write", "1"});
  EXPECT_TRUE(contains(error_of_open(), "NOREPLICAS"));
  Load load(kStream);
  load.add("k", "B");
  const Outcome outcome = find_outcome(load);
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked);
  EXPECT_TRUE(contains(outcome.error.text(), "NOREPLICAS")) << outcome.error.text();
  EXPECT_EQ(length(), 0);
}

// ---- WAIT

class RedisWait : public RedisSinkTest {
 protected:
  void SetUp() override {
    RedisSinkTest::SetUp();
    if (IsSkipped()) return;
    replica_ = OwnRedis::start_replica(server().port());
    load_.add_many(200, 20);
  }
  /// Opens a sink that waits for the replica. Tests in which the replica hangs give a short
  /// timeout.
  void open_waiting(const std::string& timeout) {
    sink_ = make({{"wait_replicas", "1"}, {"wait_timeout", timeout}, {"deadline", "20s"}});
    ASSERT_TRUE(eventually([this] { return sink_->open().has_value(); }));
  }
  void expect_unknown(const MiniRelay& relay) {
    ASSERT_FALSE(relay.failures().empty());
    for (const auto& failure : relay.failures()) {
      EXPECT_EQ(failure.outcome.kind, Outcome::Kind::unknown) << failure.outcome.error.text();
      EXPECT_EQ(failure.outcome.error.effect, Effect::unknown);
      EXPECT_TRUE(contains(failure.outcome.error.text(), "0 replicas"))
          << failure.outcome.error.text();
    }
  }

  std::unique_ptr<OwnRedis> replica_;
  Load load_{kStream};
};

TEST_F(RedisWait, an_event_is_acked_when_the_replica_has_it) {
  open_waiting("10s");
  MiniRelay relay(*sink_, load_);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  // The test need not wait here, because an ack says that the replica has the event.
  EXPECT_EQ(replica_->client().number({"XLEN", kStream}), static_cast<long>(load_.size()));
}

TEST_F(RedisWait, while_the_replica_hangs_events_are_in_doubt_and_then_added_once) {
  open_waiting("200ms");
  replica_->freeze();
  MiniRelay relay(*sink_, load_);
  ASSERT_GT(relay.offer(100), 0U);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 0U);
  expect_unknown(relay);
  EXPECT_GT(length(), 0) << "they are in the stream already";
  const Status opened = sink_->open();
  ASSERT_FALSE(opened.has_value()) << "no event needs to be tried";
  EXPECT_TRUE(contains(opened.error().text(), "redis.wait_replicas is 1")) << opened.error().text();
  replica_->thaw();
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load_);
  EXPECT_EQ(replica_->client().number({"XLEN", kStream}), static_cast<long>(load_.size()));
}

TEST_F(RedisWait, a_redelivery_that_adds_nothing_waits_too) {
  replica_->freeze();
  const auto hasty = make();
  ASSERT_TRUE(hasty->open().has_value());
  MiniRelay first(*hasty, load_);
  ASSERT_TRUE(first.deliver()) << "without WAIT";
  replica_->thaw();
  open_waiting("200ms");
  replica_->freeze();
  MiniRelay again(*sink_, load_);
  ASSERT_GT(again.offer(100), 0U);
  ASSERT_TRUE(again.drain());
  EXPECT_EQ(again.acked(), 0U);
  expect_unknown(again);
  replica_->thaw();
  ASSERT_TRUE(again.deliver());
  expect_each_once(load_);
}

TEST_F(RedisWait, an_event_that_the_server_refuses_does_not_hold_up_the_others) {
  open_waiting("10s");
  (void)server().run({"SET", "wrong", "text"});
  load_.item(5).topic = "wrong";
  MiniRelay relay(*sink_, load_);
  relay.offer(20);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 1U);
  EXPECT_EQ(relay.failures().front().place, 5U);
  EXPECT_EQ(relay.failures().front().outcome.kind, Outcome::Kind::blocked);
  EXPECT_EQ(relay.acked(), 19U) << "they were sent with it, and the replica has them";
}

TEST_F(RedisWait, the_master_that_became_a_replica_confirms_nothing) {
  OwnRedis other;
  open_waiting("10s");
  replica_->freeze();
  MiniRelay relay(*sink_, load_);
  ASSERT_GT(relay.offer(20), 0U);
  ASSERT_TRUE(eventually([&] { return server().client().info("blocked_clients") == "1"; }));
  (void)server().run({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 0U);
  for (const auto& failure : relay.failures())
    EXPECT_EQ(failure.outcome.kind, Outcome::Kind::unknown) << failure.outcome.error.text();
}

}  // namespace
}  // namespace outbox::test
