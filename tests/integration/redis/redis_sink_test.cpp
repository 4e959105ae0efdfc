// Tests what is special to the Redis sink: what an entry is, and that an event that comes again is
// not added again.
#include "integration/redis/redis_fixture.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

TEST_F(RedisSinkTest, an_entry_has_the_headers_the_key_and_the_body) {
  open();
  Load load(kStream);
  load.add("42", R"({"total": 12.5})");
  load.add(std::nullopt, "", "");
  load.item(0).headers = {{.name = "outbox-id", .value = load.item(0).id_text},
                          {.name = "key", .value = "a header"},
                          {.name = "none", .value = "", .absent = true},
                          {.name = "empty", .value = ""}};
  load.item(1).headers = {{.name = "body", .value = "a header"}};
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  const auto entries = server().client().entries(kStream);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].fields, (Fields{{"outbox-id", load.item(0).id_text},
                                       {"header:key", "a header"},
                                       {"empty", ""},
                                       {"key", "42"},
                                       {"body", R"({"total": 12.5})"}}));
  EXPECT_EQ(entries[1].fields, (Fields{{"header:body", "a header"}, {"body", ""}}));
}

TEST_F(RedisSinkTest, the_topic_is_the_stream_whatever_bytes_it_has) {
  open();
  const std::string names[] = {"orders", "shop:{eu}:orders",          "{}",  "a b\n\r\tc",
                               "Größe",  std::string("nul\0byte", 8), "%s%n"};
  Load load;
  for (const std::string& name : names) load.add("k", name).topic = name;
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  for (const std::string& name : names) {
    const auto entries = server().client().entries(name);
    ASSERT_EQ(entries.size(), 1U) << name;
    EXPECT_EQ(entries[0].field("body"), name);
  }
}

TEST_F(RedisSinkTest, the_path_of_the_address_is_the_database) {
  open({{"url", server().url() + "/3"}});
  Load load(kStream);
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_EQ(length(), 0);
  RedisClient client = server().client();
  (void)client.run({"SELECT", "3"});
  EXPECT_EQ(client.entries(kStream).size(), 1U);
  EXPECT_TRUE(contains(error_of_open({{"url", server().url() + "/99"}}), "out of range"));
}

TEST_F(RedisSinkTest, as_many_headers_as_the_script_can_pass_on) {
  open();
  Load load(kStream);
  load.add("k", "B");
  load.add("k2", "B");
  const HeaderView header{.name = "name", .value = "value"};
  load.item(0).headers.assign(3898, header);
  load.item(1).headers.assign(3899, header);
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked);
  EXPECT_EQ(find_outcome(load, 1).kind, Outcome::Kind::rejected);
  EXPECT_EQ(length(), 1);
}

TEST_F(RedisSinkTest, a_redelivery_adds_nothing_within_the_window) {
  Load load(kStream);
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

TEST_F(RedisSinkTest, after_the_window_it_is_added_again) {
  open({{"dedup_window", "50ms"}});
  Load load(kStream);
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  ASSERT_TRUE(eventually([&] { return !is_remembered(load); }));
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_EQ(length(), 2);
}

TEST_F(RedisSinkTest, a_redelivery_prolongs_the_window) {
  open({{"dedup_window", "1h"}});
  Load load(kStream);
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  const std::string key = "outbox:dedup:{order.events}:" + load.item(0).id_text;
  (void)server().run({"PEXPIRE", key, "60000"});
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_GT(server().client().number({"PTTL", key}), 3'000'000);
  EXPECT_EQ(length(), 1);
}

TEST_F(RedisSinkTest, without_a_window_nothing_is_remembered) {
  open({{"dedup_window", "0"}});
  Load load(kStream);
  load.add("k", "B");
  for (int time = 0; time < 2; ++time) EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_EQ(length(), 2);
  EXPECT_EQ(server().client().number({"DBSIZE"}), 1);
}

TEST_F(RedisSinkTest, the_same_event_goes_to_each_of_two_streams) {
  open();
  Load load(kStream);
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  load.item(0).topic = "audit";
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  EXPECT_EQ(length(kStream), 1);
  EXPECT_EQ(length("audit"), 1);
}

TEST_F(RedisSinkTest, a_replay_adds_the_event_again_and_once) {
  open();
  Load load(kStream);
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  for (const char* headers : {R"({"outbox-replay":"1"})", R"({"outbox-replay":"2"})"}) {
    load.item(0).event.headers = headers;
    for (int time = 0; time < 2; ++time)
      EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked) << headers;
  }
  EXPECT_EQ(length(), 3);
}

TEST_F(RedisSinkTest, the_length_of_a_stream_can_be_limited) {
  open({{"max_length", "500"}});
  Load load(kStream);
  load.add_many(5000, 5000);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  const auto found = places(server().client().arrived(kStream), load);
  EXPECT_GE(found.size(), 500U);
  EXPECT_LE(found.size(), 700U) << "a node of the stream has 100 entries";
  EXPECT_EQ(found.back(), load.size() - 1);
}

TEST_F(RedisSinkTest, after_script_flush_the_script_is_loaded_again) {
  open();
  Load load(kStream);
  load.add_many(400, 50);
  MiniRelay relay(*sink_, load);
  relay.offer(200);
  ASSERT_TRUE(relay.drain());
  (void)server().run({"SCRIPT", "FLUSH"});
  ASSERT_GT(relay.offer(50), 0U);
  ASSERT_TRUE(relay.drain());
  ASSERT_FALSE(relay.failures().empty());
  for (const auto& failure : relay.failures())
    EXPECT_EQ(failure.outcome.kind, Outcome::Kind::blocked) << failure.outcome.error.text();
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(relay.reopened(), 1U);
  expect_each_once(load);
}

TEST_F(RedisSinkTest, after_a_crash_of_the_server_a_redelivery_adds_nothing) {
  open();
  Load load(kStream);
  load.add_many(300, 20);
  MiniRelay first(*sink_, load);
  ASSERT_TRUE(first.deliver());
  server().kill();
  server().start();
  MiniRelay again(*sink_, load);
  ASSERT_TRUE(eventually([&] { return !find_outcome(load).error.message.empty(); }))
      << "notices it";
  ASSERT_TRUE(again.deliver());
  expect_each_once(load);
}

TEST_F(RedisSinkTest, a_connection_that_ends_while_idle_is_noticed_and_made_again) {
  open();
  Load load(kStream);
  load.add("k", "B");
  load.add("k", "C");
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked);
  std::atomic<bool> rung{false};
  sink_->on_ready([&] { rung = true; });
  (void)server().run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  ASSERT_TRUE(eventually([&] { return rung.load(); }));
  std::vector<Outcome> none;
  sink_->receive(none);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(find_outcome(load, 1).kind, Outcome::Kind::blocked);
  ASSERT_TRUE(sink_->open().has_value());
  EXPECT_EQ(find_outcome(load, 1).kind, Outcome::Kind::acked);
  sink_->on_ready({});
  expect_each_once(load);
}

}  // namespace
}  // namespace outbox::test
