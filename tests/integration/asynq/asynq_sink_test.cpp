// Tests what is special to the sink for asynq: what a task is in Redis, and that an event that
// comes again makes no second task.
#include <algorithm>
#include <set>

#include "integration/asynq/asynq_fixture.hpp"
#include "support/eventually.hpp"
#include "support/free_port.hpp"

namespace outbox::test {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

TEST_F(AsynqSinkTest, an_event_is_a_pending_task_as_asynq_writes_it) {
  open();
  Load load;
  load.add("42", std::string("{\"total\": 12.5}\0\xff", 17));
  load.item(0).headers.push_back({.name = "none", .value = "", .absent = true});
  load.item(0).headers.push_back({.name = "empty", .value = ""});
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  const std::string id = load.item(0).id_text;
  const AsynqTask found = task(load);
  EXPECT_EQ(found.type, "OrderPlaced");
  EXPECT_EQ(found.payload, load.item(0).body);
  EXPECT_EQ(found.id, id);
  EXPECT_EQ(found.queue, "default");
  EXPECT_EQ(found.retry, 25);
  EXPECT_EQ(found.timeout, 30 * 60);
  EXPECT_EQ(found.retention, 24 * 3600);
  EXPECT_EQ(found.headers, (Headers{{"outbox-id", id},
                                    {"outbox-seq", "1"},
                                    {"content-type", "application/json"},
                                    {"empty", ""},
                                    {"outbox-key", "42"}}));
  EXPECT_FALSE(found.has_other_fields);

  EXPECT_EQ(field(id, "state"), "pending");
  const long long now = std::stoll(run({"TIME"})) * 1'000'000'000;
  const long long since = std::stoll(field(id, "pending_since"));
  EXPECT_GT(since, now - 600'000'000'000) << "nanoseconds since 1970";
  EXPECT_LT(since, now + 600'000'000'000);
  EXPECT_EQ(run({"TYPE", asynq_key("default", "t:" + id)}), "hash");
  EXPECT_EQ(run({"TTL", asynq_key("default", "t:" + id)}), "-1") << "asynq deletes it";
  EXPECT_EQ(run({"TYPE", "asynq:{default}:pending"}), "list");
  EXPECT_EQ(run({"SMEMBERS", "asynq:queues"}), "default\n");
}

TEST_F(AsynqSinkTest, settings_are_in_the_task) {
  open({{"queue", "mail-{event_type|kebab}"},
        {"type", "email:{aggregate_type}"},
        {"task_id", "{id}:mail"},
        {"max_retry", "0"},
        {"timeout", "90s"},
        {"retention", "1min"}});
  Load load;
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  const std::string id = load.item(0).id_text + ":mail";
  RedisClient client = server().client();
  const AsynqTask found = read_task(client, "mail-order-placed", id);
  EXPECT_EQ(found.type, "email:order");
  EXPECT_EQ(found.id, id);
  EXPECT_EQ(found.queue, "mail-order-placed");
  EXPECT_EQ(found.retry, 0);
  EXPECT_EQ(found.timeout, 90);
  EXPECT_EQ(found.retention, 60);
  EXPECT_EQ(pending("mail-order-placed"), std::vector<std::string>{id});
}

TEST_F(AsynqSinkTest, workers_take_the_tasks_in_the_order_of_the_events) {
  open();
  Load load;
  load.add_many(200, 200);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < load.size(); ++i) ids.push_back(load.item(i).id_text);
  EXPECT_EQ(pending(), ids);
}

// ---- queues

TEST_F(AsynqSinkTest, several_queues_in_one_pipeline_are_each_named_once) {
  open({{"queue", "{aggregate_type}"}});
  Load load;
  load.add_many(300, 300);
  const std::vector<std::string> queues = {"low", "default", "Größe"};
  for (std::size_t i = 0; i < load.size(); ++i) load.item(i).event.aggregate_type = queues[i % 3];
  (void)run({"CONFIG", "RESETSTAT"});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  for (const std::string& queue : queues) {
    EXPECT_EQ(pending(queue).size(), 100U) << queue;
    EXPECT_EQ(run({"SISMEMBER", "asynq:queues", queue}), "1") << queue;
  }
  const std::string calls = run({"INFO", "commandstats"});
  EXPECT_TRUE(contains(calls, "cmdstat_sadd:calls=3,")) << calls;
}

TEST_F(AsynqSinkTest, a_queue_is_named_again_on_a_new_connection) {
  open();
  Load load;
  load.add_many(2, 2);
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked);
  (void)run({"DEL", "asynq:queues"});
  open();
  EXPECT_EQ(find_outcome(load, 1).kind, Outcome::Kind::acked);
  EXPECT_EQ(run({"SMEMBERS", "asynq:queues"}), "default\n");
}

TEST_F(AsynqSinkTest, an_event_whose_queue_could_not_be_named_is_not_acked) {
  (void)run({"SET", "asynq:queues", "text"});
  open();
  Load load;
  load.add_many(20, 20);
  MiniRelay relay(*sink_, load);
  ASSERT_GT(relay.offer(20), 0U);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 0U);
  ASSERT_FALSE(relay.failures().empty());
  const Outcome first = relay.failures().front().outcome;
  EXPECT_EQ(first.kind, Outcome::Kind::unknown) << "the task is there";
  EXPECT_EQ(first.error.effect, Effect::unknown);
  EXPECT_TRUE(contains(first.error.text(), "asynq: key asynq:queues: WRONGTYPE"))
      << first.error.text();
  (void)run({"DEL", "asynq:queues"});
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
  EXPECT_EQ(run({"SMEMBERS", "asynq:queues"}), "default\n");
}

TEST_F(AsynqSinkTest, a_queue_that_asynq_does_not_take_is_the_fault_of_its_event) {
  open({{"queue", "{aggregate_type}"}});
  Load load;
  load.add_many(8, 8);
  for (const char* bad : {"", " \t", "{default}", "a}b", "\xff"}) {
    load.item(3).event.aggregate_type = bad;
    const Outcome outcome = find_outcome(load, 3);
    EXPECT_EQ(outcome.kind, Outcome::Kind::rejected) << bad;
    EXPECT_FALSE(outcome.error.hint.empty());
  }
  EXPECT_EQ(run({"KEYS", "asynq:{*"}), "") << "nothing was sent";
}

TEST_F(AsynqSinkTest, a_pending_list_of_another_type_blocks_and_loses_nothing) {
  open();
  Load load;
  load.add_many(20, 20);
  (void)run({"SET", "asynq:{default}:pending", "text"});
  const Outcome outcome = find_outcome(load);
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked);
  EXPECT_EQ(outcome.scope, Outcome::Scope::partition);
  EXPECT_TRUE(contains(outcome.error.text(), "asynq: queue default: WRONGTYPE"))
      << outcome.error.text();
  EXPECT_EQ(field(load.item(0).id_text, "state"), "unsent");
  (void)run({"DEL", "asynq:{default}:pending"});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
  EXPECT_EQ(field(load.item(0).id_text, "state"), "pending");
}

// ---- sent again

TEST_F(AsynqSinkTest, an_event_that_is_sent_again_makes_no_second_task) {
  Load load;
  load.add_many(500, 20);
  for (int time = 0; time < 3; ++time) {
    open();  // a new sink, as after a takeover
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver());
    EXPECT_TRUE(relay.failures().empty());
    EXPECT_EQ(relay.acked(), load.size());
  }
  expect_each_once(load);
}

TEST_F(AsynqSinkTest, nor_while_asynq_keeps_it_in_any_state) {
  open();
  Load load;
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  const std::string id = load.item(0).id_text;
  const std::string key = asynq_key("default", "t:" + id);
  (void)run({"RPOP", "asynq:{default}:pending"});
  for (const char* state : {"active", "scheduled", "retry", "archived", "completed"}) {
    (void)run({"HSET", key, "state", state});
    (void)run({"HDEL", key, "pending_since"});
    const std::string before = run({"HGETALL", key});
    EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked) << state;
    EXPECT_EQ(pending(), std::vector<std::string>()) << state;
    EXPECT_EQ(run({"HGETALL", key}), before) << "it is left as it is";
  }
  (void)run({"DEL", key});  // asynq does so after the retention
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_EQ(pending(), std::vector<std::string>{id});
}

TEST_F(AsynqSinkTest, a_replay_makes_one_task_of_its_own) {
  open();
  Load load;
  load.add("k", "B");
  const std::string id = load.item(0).id_text;
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  for (const char* headers : {R"({"outbox-replay":"1"})", R"({"outbox-replay":"2"})"}) {
    load.item(0).event.headers = headers;
    for (int time = 0; time < 2; ++time)
      EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked) << headers;
  }
  EXPECT_EQ(pending(), (std::vector<std::string>{id, id + ":1", id + ":2"}));
}

TEST_F(AsynqSinkTest, two_tasks_of_one_event_in_one_queue_need_two_ids) {
  Load load;
  load.add("k", "B");
  open({{"type", "email:welcome"}});
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  open({{"type", "crm:sync"}});
  const Outcome outcome = find_outcome(load);
  EXPECT_EQ(outcome.kind, Outcome::Kind::rejected) << "it must not look delivered";
  EXPECT_TRUE(contains(outcome.error.text(), "another type")) << outcome.error.text();
  EXPECT_TRUE(contains(outcome.error.hint, "task_id")) << outcome.error.text();
  open({{"type", "crm:sync"}, {"task_id", "{id}:crm"}});
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_EQ(pending().size(), 2U);
}

TEST_F(AsynqSinkTest, a_task_that_somebody_else_made_with_this_id_is_left_as_it_is) {
  open();
  Load load;
  load.add("k", "B");
  const std::string key = asynq_key("default", "t:" + load.item(0).id_text);
  (void)run({"HSET", key, "msg", "theirs", "state", "pending"});
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_EQ(run({"HGETALL", key}), "msg\ntheirs\nstate\npending\n");
}

TEST_F(AsynqSinkTest, after_a_crash_of_the_server_no_second_task_is_made) {
  open();
  Load load;
  load.add_many(300, 20);
  MiniRelay first(*sink_, load);
  ASSERT_TRUE(first.deliver());
  server().kill();
  server().start();
  ASSERT_TRUE(eventually([&] { return !find_outcome(load).error.message.empty(); }))
      << "notices it";
  MiniRelay again(*sink_, load);
  ASSERT_TRUE(again.deliver());
  expect_each_once(load);
}

// ---- what a task cannot be

TEST_F(AsynqSinkTest, text_that_is_not_utf8_is_the_fault_of_its_event) {
  open({{"queue", "{aggregate_type}"}, {"task_id", "{id}:{aggregate_id}"}});
  Load good;
  good.add_many(1, 1);
  const std::string bad = "caf\xe9";
  const auto expect_rejected = [&](const Load& load, const std::string& what) {
    const Outcome outcome = find_outcome(load);
    EXPECT_EQ(outcome.kind, Outcome::Kind::rejected) << what;
    EXPECT_TRUE(contains(outcome.error.text(), what)) << outcome.error.text();
    EXPECT_TRUE(contains(outcome.error.text(), "UTF-8")) << outcome.error.text();
  };
  Load load = good;
  load.item(0).event.event_type = bad;
  expect_rejected(load, "type");
  load = good;
  load.item(0).event.aggregate_type = bad;
  expect_rejected(load, "queue");
  load = good;
  load.item(0).event.aggregate_id = bad;
  expect_rejected(load, "id");
  load = good;
  load.item(0).key = bad;
  expect_rejected(load, "header");
  load = good;
  load.item(0).headers.push_back({.name = bad, .value = "v"});
  expect_rejected(load, "header");
  load = good;
  load.item(0).headers.push_back({.name = "n", .value = bad});
  expect_rejected(load, "header");
  EXPECT_EQ(run({"KEYS", "asynq:{*"}), "");
  load = good;
  load.item(0).body = bad;
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked) << "a payload has any bytes";
}

TEST_F(AsynqSinkTest, a_task_needs_a_type_and_an_id) {
  open({{"task_id", "{aggregate_id}"}});
  Load load;
  load.add("k", "B");
  load.item(0).event.aggregate_id = " ";
  EXPECT_TRUE(contains(find_outcome(load).error.text(), "asynq.task_id"));
  load.item(0).event.aggregate_id = "7";
  load.item(0).event.event_type = "";
  const Outcome outcome = find_outcome(load);
  EXPECT_EQ(outcome.kind, Outcome::Kind::rejected);
  EXPECT_TRUE(contains(outcome.error.text(), "asynq.type")) << outcome.error.text();
  EXPECT_EQ(run({"KEYS", "asynq:{*"}), "");
}

// ---- the server

TEST_F(AsynqSinkTest, a_node_of_a_cluster_is_refused) {
  // By default such a server also takes the port 10,000 above its own, which may be in use by
  // somebody's connection.
  (void)server({"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())});
  const std::string error = error_of_open();
  EXPECT_TRUE(contains(error, "asynq: ")) << error;
  EXPECT_TRUE(contains(error, "Redis Cluster")) << error;
}

TEST_F(AsynqSinkTest, a_server_without_memory_blocks_before_an_event_is_sent) {
  open();
  (void)run({"CONFIG", "SET", "maxmemory", "1"});
  Load load;
  load.add("k", "B");
  const Outcome outcome = find_outcome(load);
  EXPECT_NE(outcome.kind, Outcome::Kind::acked);
  EXPECT_TRUE(contains(outcome.error.text(), "asynq.retention")) << outcome.error.text();
  EXPECT_TRUE(contains(error_of_open(), "OOM"));
  EXPECT_EQ(pending(), std::vector<std::string>());
  (void)run({"CONFIG", "SET", "maxmemory", "0"});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
}

TEST_F(AsynqSinkTest, what_was_there_already_is_acked_when_the_replica_has_it_too) {
  const auto replica = OwnRedis::start_replica(server().port());
  Load load;
  load.add_many(50, 50);
  replica->freeze();
  const auto hasty = make();
  ASSERT_TRUE(hasty->open().has_value());
  MiniRelay first(*hasty, load);
  ASSERT_TRUE(first.deliver()) << "without WAIT";
  replica->thaw();
  const Settings waits = {{"wait_replicas", "1"}, {"wait_timeout", "200ms"}, {"deadline", "20s"}};
  sink_ = make(waits);
  ASSERT_TRUE(eventually([&] { return sink_->open().has_value(); }));
  replica->freeze();
  MiniRelay again(*sink_, load);
  ASSERT_GT(again.offer(50), 0U);
  ASSERT_TRUE(again.drain());
  EXPECT_EQ(again.acked(), 0U);
  ASSERT_FALSE(again.failures().empty());
  EXPECT_EQ(again.failures().front().outcome.kind, Outcome::Kind::unknown);
  replica->thaw();
  ASSERT_TRUE(again.deliver());
  expect_each_once(load);
}

}  // namespace
}  // namespace outbox::test
