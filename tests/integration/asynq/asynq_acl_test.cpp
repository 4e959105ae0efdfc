// Tests a user with the rights that docs/sinks/asynq.md names, and with one right too few: the
// error names that right, and no event is lost.
#include "integration/asynq/asynq_fixture.hpp"

namespace outbox::test {
namespace {

class AsynqAcl : public AsynqSinkTest {
 protected:
  /// The rights that docs/sinks/asynq.md names.
  static Words rights() {
    return {"+evalsha", "+script|load", "+exists", "+hmget", "+hset",       "+lpush",  "+sadd",
            "+set",     "+select",      "+info",   "+wait",  "+config|get", "~asynq:*"};
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
  [[nodiscard]] Settings login() const { return {{"username", "relay"}, {"password", "hush"}}; }
  /// The error of open() or of the first message.
  [[nodiscard]] Error refusal(const Load& load) {
    sink_ = make(login());
    const Status opened = sink_->open();
    if (!opened) return opened.error();
    const Outcome outcome = find_outcome(load);
    EXPECT_NE(outcome.kind, Outcome::Kind::acked);
    EXPECT_NE(outcome.kind, Outcome::Kind::rejected);
    return outcome.error;
  }
};

TEST_F(AsynqAcl, the_rights_of_the_page_are_enough) {
  set_user(rights());
  Load load;
  load.add_many(100, 10);
  for (int time = 0; time < 2; ++time) {
    open(login());
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver());
    EXPECT_TRUE(relay.failures().empty());
  }
  expect_each_once(load);
}

TEST_F(AsynqAcl, a_right_that_is_missing_is_named_and_the_event_arrives_once_it_is_given) {
  Load load;
  load.add("k", "B");
  for (const std::string right :
       {"+evalsha", "+script|load", "+exists", "+hset", "+lpush", "+sadd", "+set", "~asynq:*"}) {
    set_user(without(right));
    const Error error = refusal(load);
    EXPECT_EQ(error.code, Errc::permission_denied) << right << ": " << error.text();
    EXPECT_TRUE(contains(error.hint, right)) << error.text();
    EXPECT_FALSE(contains(error.text(), "hush"));
    set_user(rights());
    open(login());
    MiniRelay relay(*sink_, load);
    ASSERT_TRUE(relay.deliver()) << right;
    expect_each_once(load);
    (void)run({"FLUSHALL"});
  }
}

}  // namespace
}  // namespace outbox::test
