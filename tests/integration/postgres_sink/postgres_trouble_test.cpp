// Tests a destination at fault: it lacks something, refuses the login, takes no writes, is locked,
// or goes away.
#include <atomic>

#include "integration/postgres_sink/fixture.hpp"

namespace outbox::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(PostgresSinkTest, passwords_may_have_any_characters_wherever_they_are_written) {
  EXPECT_EQ(error_of_open(), "") << "the setting takes it as it is";
  const std::string port = std::to_string(server().port());
  const std::string encoded = "p%40ss%2Fw%3Ard%27%3F%23%26%20%2541%5C%22%C3%BC";
  const std::string url = "postgresql://app:" + encoded + "@127.0.0.1:" + port + "/postgres";
  EXPECT_EQ(error_of_open({{"url", url}, {"password", ""}}), "");
  const std::string parameters = "host=127.0.0.1 user=app dbname=postgres port=" + port;
  EXPECT_EQ(error_of_open({{"url", parameters}}), "");
  EXPECT_EQ(error_of_open(
                {{"url", parameters + R"( password='p@ss/w:rd\'?#& %41\\"ü')"}, {"password", ""}}),
            "");
  EXPECT_EQ(error_of_open({{"url", "postgresql://nobody:x@127.0.0.1:" + port + "/postgres"},
                           {"username", "app"}}),
            "")
      << "the settings override what the URL has";
}

TEST_F(PostgresSinkTest, a_refused_login_is_named_and_the_password_is_not) {
  const std::string refused = error_of_open({{"password", "hush-hush"}});
  EXPECT_THAT(refused, HasSubstr("pg_hba.conf"));
  EXPECT_THAT(refused, Not(HasSubstr("hush")));
  EXPECT_THAT(
      error_of_open(
          {{"url", "postgresql://app@127.0.0.1:" + std::to_string(server().port()) + "/nowhere"}}),
      HasSubstr("nowhere"));
}

TEST_F(PostgresSinkTest, what_is_missing_is_named_with_the_statement_that_makes_it) {
  const std::string name = PostgresDestination::new_name("missing_");
  const Settings settings{{"table", name}, {"create", "false"}};
  const auto run_hint = [&](const std::string& text) {
    const std::size_t from = text.find("CREATE TABLE");
    ASSERT_NE(from, std::string::npos) << text;
    Pg admin = server().admin();
    admin.exec(text.substr(from, text.rfind(')') - from));
  };
  const std::string ids = error_of_open(settings);
  EXPECT_THAT(ids, HasSubstr(delivered_));
  run_hint(ids);
  server().admin().exec("GRANT SELECT, INSERT, UPDATE, DELETE ON " + delivered_ + " TO app");
  const std::string target = error_of_open(settings);
  EXPECT_THAT(target, HasSubstr(name));
  run_hint(target);
  open(settings);
  Load load;
  load.add("k", "{}");
  const Outcome outcome = find_outcome(load);
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked) << "the rights are missing";
  EXPECT_THAT(outcome.error.text(), HasSubstr("INSERT on the table"));
  server().admin().exec("GRANT INSERT ON " + name + " TO app");
  EXPECT_EQ(find_outcome(load).kind, Outcome::Kind::acked);
  server().admin().exec("ALTER TABLE " + name + " RENAME COLUMN payload TO body");
  EXPECT_THAT(error_of_open(settings), HasSubstr("has no column \"payload\""));
}

TEST_F(PostgresSinkTest, a_table_dropped_meanwhile_blocks_until_it_is_there_again) {
  open({{"create", "false"}, {"dedup_window", "0"}});
  make_id_unique();
  Load load;
  load.add_many(30, 5);
  MiniRelay relay(*sink_, load);
  relay.offer(10);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 10U);
  server().admin().exec("ALTER TABLE " + table_ + " RENAME TO gone_" + table_);
  relay.offer(10);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 10U);
  for (const auto& failure : relay.failures())
    EXPECT_EQ(failure.outcome.kind, Outcome::Kind::blocked) << failure.outcome.error.text();
  EXPECT_THAT(relay.failures().front().outcome.error.text(), HasSubstr(table_));
  const Status missing = sink_->open();
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().text(), HasSubstr("CREATE TABLE"));
  server().admin().exec("ALTER TABLE gone_" + table_ + " RENAME TO " + table_);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
}

TEST_F(PostgresSinkTest, a_server_that_takes_no_writes_blocks_at_once_and_when_it_is_opened) {
  open();
  Load load;
  load.add_many(10, 10);
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked);
  server().refuse_writes();
  const Message message = load.message(1, 1);
  std::vector<Outcome> outcomes;
  // The session takes the new setting sooner or later.
  ASSERT_TRUE(eventually([&] {
    outcomes.clear();
    EXPECT_EQ(sink_->send({&message, 1}), 1U);
    EXPECT_TRUE(eventually([&] {
      sink_->receive(outcomes);
      return !outcomes.empty();
    }));
    return outcomes.front().kind != Outcome::Kind::acked;
  }));
  EXPECT_EQ(outcomes.front().kind, Outcome::Kind::blocked) << outcomes.front().error.text();
  EXPECT_THAT(error_of_open(), HasSubstr("read-only"));
  server().allow_writes();
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
}

TEST_F(PostgresSinkTest, a_locked_table_is_waited_for_and_nothing_is_committed_after_we_gave_up) {
  open({{"deadline", "4s"}});
  Load load;
  load.add_many(50, 5);
  Pg admin = server().admin();
  admin.exec("BEGIN");
  admin.exec("LOCK TABLE " + table_);
  MiniRelay relay(*sink_, load);
  ASSERT_EQ(relay.offer(50), 50U);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 50U);
  for (const auto& failure : relay.failures()) {
    EXPECT_EQ(failure.outcome.kind, Outcome::Kind::retry) << failure.outcome.error.text();
    EXPECT_EQ(failure.outcome.error.effect, Effect::none);
  }
  admin.exec("COMMIT");
  EXPECT_EQ(count(), 0);
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_each_once(load);
}

TEST_F(PostgresSinkTest, a_connection_that_ends_while_idle_is_noticed_and_made_again) {
  open();
  Load load;
  load.add("k", "B");
  load.add("k", "C");
  EXPECT_EQ(find_outcome(load, 0).kind, Outcome::Kind::acked);
  std::atomic<bool> rung{false};
  sink_->on_ready([&] { rung = true; });
  std::vector<Outcome> none;
  sink_->receive(none);
  server().admin().exec(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
  ASSERT_TRUE(eventually([&] { return rung.load(); }));
  // The server's last message may arrive before the end of the connection.
  const Message message = load.message(1, 7);
  ASSERT_TRUE(eventually([&] {
    sink_->receive(none);
    return sink_->send({&message, 1}) == 1 || !none.empty();
  }));
  ASSERT_TRUE(eventually([&] {
    sink_->receive(none);
    return !none.empty();
  }));
  EXPECT_THAT(none.front().kind,
              testing::AnyOf(Outcome::Kind::blocked, Outcome::Kind::unknown, Outcome::Kind::retry));
  sink_->on_ready({});
  EXPECT_EQ(find_outcome(load, 1).kind, Outcome::Kind::acked);
  expect_each_once(load);
}

TEST_F(PostgresSinkTest, old_ids_that_may_not_be_removed_stay_and_delivery_goes_on) {
  open();
  sink_->close();
  Pg admin = server().admin();
  admin.exec("ALTER TABLE " + delivered_ + " OWNER TO postgres");
  admin.exec("GRANT SELECT, INSERT, UPDATE ON " + delivered_ + " TO app");
  Load load;
  load.add_many(500, 10);
  open({{"batch", "50"}});
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  expect_each_once(load);
}

}  // namespace
}  // namespace outbox::test
