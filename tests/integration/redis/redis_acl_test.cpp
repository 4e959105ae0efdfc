// Tests users with the rights that docs/sinks/redis.md names, and with one right too few: the error
// names that right, and nothing is half done.
#include "integration/redis/redis_fixture.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

class RedisAcl : public RedisSinkTest {
 protected:
  /// The rights that docs/sinks/redis.md names.
  static Words rights() {
    return {"+evalsha", "+script|load", "+xadd", "+exists",     "+set",          "+pexpire",
            "+select",  "+wait",        "+info", "+config|get", "~order.events", "~outbox:dedup:*"};
  }
  void set_user(const Words& rights) {
    Words command{"ACL", "SETUSER", "relay", "reset", "on", ">hush"};
    command.insert(command.end(), rights.begin(), rights.end());
    (void)server().run(command);
  }
  [[nodiscard]] static Words without(const std::string& right) {
    Words left = rights();
    std::erase(left, right);
    return left;
  }
  [[nodiscard]] Settings login(Settings settings = {}) {
    settings.insert({{"username", "relay"}, {"password", "hush"}});
    return settings;
  }
  /// The error of open() or of the first message.
  [[nodiscard]] Error refusal(Settings settings = {}) {
    sink_ = make(login(std::move(settings)));
    const Status opened = sink_->open();
    if (!opened) return opened.error();
    Load load(kStream);
    load.add("k", "B");
    const Outcome outcome = find_outcome(load);
    EXPECT_EQ(outcome.kind, Outcome::Kind::blocked) << outcome.error.text();
    EXPECT_FALSE(is_remembered(load));
    return outcome.error;
  }
};

TEST_F(RedisAcl, the_rights_of_the_page_are_enough) {
  set_user(rights());
  open(login({{"url", server().url() + "/0"}}));
  Load load(kStream);
  load.add_many(100, 10);
  for (int time = 0; time < 2; ++time) {
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver());
    EXPECT_TRUE(relay.failures().empty());
  }
  expect_each_once(load);
}

TEST_F(RedisAcl, a_right_that_is_missing_blocks_is_named_and_nothing_is_added) {
  for (const std::string right : {"+evalsha", "+script|load", "+xadd", "+exists", "+set",
                                  "~order.events", "~outbox:dedup:*"}) {
    set_user(without(right));
    const Error error = refusal();
    EXPECT_EQ(error.code, Errc::permission_denied) << right << ": " << error.text();
    EXPECT_TRUE(contains(error.hint, right == "~order.events" ? "~STREAM" : right)) << error.text();
    EXPECT_FALSE(contains(error.text(), "hush"));
    EXPECT_EQ(length(), 0) << right;
  }
}

TEST_F(RedisAcl, those_that_only_some_settings_need_are_named_too) {
  set_user(without("+select"));
  EXPECT_EQ(refusal({{"url", server().url() + "/3"}}).code, Errc::permission_denied);
  set_user(without("+wait"));
  EXPECT_EQ(refusal({{"wait_replicas", "1"}}).code, Errc::permission_denied);
  EXPECT_EQ(length(), 0);
}

TEST_F(RedisAcl, a_redelivery_needs_the_right_to_prolong_and_is_not_acked_without) {
  set_user(rights());
  open(login());
  Load load(kStream);
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  set_user(without("+pexpire"));
  ASSERT_TRUE(eventually([&] { return sink_->open().has_value(); }));
  Outcome outcome = find_outcome(load);
  if (outcome.kind == Outcome::Kind::unknown) {  // changing a user ends its connections
    ASSERT_TRUE(sink_->open().has_value());
    outcome = find_outcome(load);
  }
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked);
  EXPECT_EQ(outcome.error.code, Errc::permission_denied) << outcome.error.text();
  EXPECT_EQ(length(), 1);
}

TEST_F(RedisAcl, without_the_right_to_ask_the_server_is_not_checked) {
  Words few = without("+info");
  std::erase(few, "+config|get");
  set_user(few);
  open(login());
  Load load(kStream);
  load.add("k", "B");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
}

TEST_F(RedisAcl, a_right_taken_away_while_it_works_makes_no_duplicate) {
  set_user(rights());
  open(login());
  Load load(kStream);
  load.add("k", "B");
  load.add("k", "C");
  (void)server().run({"ACL", "SETUSER", "relay", "-set"});
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked) << "it is in the stream";
  EXPECT_FALSE(is_remembered(load, 0));
  const Outcome next = find_outcome(load, 1);
  EXPECT_EQ(next.kind, Outcome::Kind::blocked);
  EXPECT_EQ(next.error.code, Errc::permission_denied) << next.error.text();
  EXPECT_FALSE(sink_->open().has_value());
  EXPECT_EQ(length(), 1);
}

TEST_F(RedisAcl, no_password_and_an_unknown_user_are_named) {
  set_user(rights());
  (void)server().run({"CONFIG", "SET", "requirepass", "other"});
  EXPECT_TRUE(contains(error_of_open(), "redis.password"));
  EXPECT_TRUE(contains(error_of_open({{"username", "nobody"}, {"password", "hush"}}), "WRONGPASS"));
  EXPECT_TRUE(contains(error_of_open({{"password", "hush"}}), "WRONGPASS"));
  EXPECT_EQ(error_of_open(login()), "");
}

// ---- messages that are too large, when the server does not tell its limit

TEST_F(RedisAcl, a_message_that_the_server_cuts_off_is_never_acked) {
  (void)server({"--proto-max-bulk-len", "1mb"});
  set_user(without("+config|get"));
  open(login());
  Load load(kStream);
  load.add("k", std::string(3'000'000, 'x'), "text/plain");
  const Outcome outcome = find_outcome(load);
  EXPECT_TRUE(outcome.kind == Outcome::Kind::rejected || outcome.kind == Outcome::Kind::unknown)
      << to_string(outcome.kind) << " " << outcome.error.text();
  EXPECT_EQ(length(), 0);
}

TEST_F(RedisAcl, with_a_setting_it_is_rejected_alone) {
  (void)server({"--proto-max-bulk-len", "1mb"});
  set_user(without("+config|get"));
  open(login({{"max_message_bytes", "1MiB"}}));
  Load load(kStream);
  load.add_many(10, 10);
  load.add("k", std::string(3'000'000, 'x'), "text/plain");
  load.add_many(10, 10);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(relay.rejected(), std::vector<std::size_t>{10});
  EXPECT_EQ(relay.reopened(), 1U) << "it was never sent, so nothing stops";
  EXPECT_EQ(length(), 20);
}

}  // namespace
}  // namespace outbox::test
