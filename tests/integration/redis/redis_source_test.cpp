// What only the source of Redis has to get right: consumers that are gone, entries and groups that
// are removed, entries of others. Each test starts its own server.
#include "source/redis/redis_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "integration/redis/own_redis.hpp"
#include "sink/redis/config.hpp"
#include "source/registry.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using namespace std::chrono_literals;
using source::Received;
using source::redis::RedisSource;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kShort = std::chrono::milliseconds(20);

class RedisSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_REDIS();
    server_ = std::make_unique<OwnRedis>();
  }

  [[nodiscard]] static ConsumerSpec spec() {
    return {.name = "billing", .source = "redis", .read = {"orders"}};
  }
  [[nodiscard]] std::unique_ptr<RedisSource> make(
      std::chrono::milliseconds idle_limit = RedisSource::kIdleLimit,
      ConsumerSpec consumer = spec(), const std::string& url = {}) const {
    sink::redis::RedisSettings settings;
    settings.url = url.empty() ? server_->url() : url;
    FieldErrors errors;
    auto options = sink::hiredis::parse_options("redis", settings, "", errors);
    EXPECT_TRUE(errors.empty());
    return std::make_unique<RedisSource>(std::move(options), std::move(consumer), idle_limit);
  }
  [[nodiscard]] std::unique_ptr<RedisSource> open(
      std::chrono::milliseconds idle_limit = RedisSource::kIdleLimit,
      ConsumerSpec consumer = spec(), const std::string& url = {}) const {
    auto made = make(idle_limit, std::move(consumer), url);
    const Status status = made->open();
    EXPECT_TRUE(status) << status.error().text();
    return made;
  }

  std::string run(const Words& command) const { return server_->run(command); }
  void add(const std::string& id, const std::string& body,
           const std::string& stream = "orders") const {
    (void)run({"XADD", stream, id, "body", body});
  }
  /// Adds 1-0 to N-0, whose bodies are their numbers.
  void add_many(int last) const {
    for (int i = 1; i <= last; ++i) add(std::to_string(i) + "-0", std::to_string(i));
  }
  /// Makes the group, and gives the first entries to a consumer of it.
  void give(const std::string& consumer, int count) const {
    (void)run({"XGROUP", "CREATE", "orders", "billing", "0", "MKSTREAM"});
    (void)run({"XREADGROUP", "GROUP", "billing", consumer, "COUNT", std::to_string(count),
               "STREAMS", "orders", ">"});
  }
  /// Whether the server counts what a group has not received, as Redis 7.0 does.
  [[nodiscard]] bool counts() const {
    return std::stoi(server_->client().info("redis_version")) >= 7;
  }
  [[nodiscard]] std::optional<std::int64_t> if_counted(std::int64_t number) const {
    return counts() ? std::optional(number) : std::nullopt;
  }
  [[nodiscard]] std::string pending() const {
    return run({"XPENDING", "orders", "billing", "-", "+", "100"});
  }

  /// The bodies of the next `count` messages, which are acknowledged.
  static std::vector<std::string> read(RedisSource& from, std::size_t count) {
    std::vector<std::string> bodies;
    EXPECT_TRUE(eventually([&] {
      for (const Received& one : receive(from, true)) bodies.push_back(one.payload);
      return bodies.size() >= count;
    })) << bodies.size();
    return bodies;
  }
  static std::vector<Received> receive(RedisSource& from, bool acknowledge) {
    std::vector<Received> some;
    const Status status = from.receive({.messages = 100, .wait = 20ms}, some);
    EXPECT_TRUE(status) << status.error().text();
    if (acknowledge) {
      EXPECT_TRUE(from.acknowledge(some));
    }
    return some;
  }
  /// The error that comes within a few calls.
  static Error error_of(RedisSource& from) {
    Error error;
    EXPECT_TRUE(eventually([&] {
      std::vector<Received> some;
      const Status status = from.receive({.messages = 100, .wait = 20ms}, some);
      if (!status) error = status.error();
      return !status;
    }));
    return error;
  }

  std::unique_ptr<OwnRedis> server_;
};

// ---- entries

TEST_F(RedisSourceTest, an_entry_of_our_sink_is_read_back) {
  (void)run({"XADD", "orders", "1795410928283-7", "outbox-id", "I", "header:key", "K",
             "header:body", "B", "header:x", "X", "key", "42", "body", "{}"});
  const auto from = open();
  const auto got = receive(*from, true);
  ASSERT_EQ(got.size(), 1U);
  const Received& one = got.front();
  EXPECT_EQ(one.payload, "{}");
  EXPECT_EQ(one.key, "42");
  EXPECT_EQ(one.channel, "orders");
  EXPECT_EQ(one.place, "orders/1795410928283-7");
  EXPECT_THAT(one.headers, ElementsAre(Header("outbox-id", "I"), Header("key", "K"),
                                       Header("body", "B"), Header("header:x", "X")));
  ASSERT_TRUE(one.sent_at);
  EXPECT_EQ(one.sent_at->time_since_epoch(), 1795410928283ms);
}

TEST_F(RedisSourceTest, an_entry_of_others_becomes_an_object) {
  (void)run({"XADD", "orders", "1-0", "order", "42", "note", "\"a\"\n", "bytes", "\xff"});
  const auto from = open();
  const auto got = receive(*from, true);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got.front().payload, R"({"order":"42","note":"\"a\"\n","bytes":"base64:/w=="})");
  EXPECT_EQ(got.front().content_type, "application/json");
  EXPECT_THAT(got.front().headers, IsEmpty());
}

TEST_F(RedisSourceTest, several_streams_are_read_and_no_more_than_wanted) {
  ConsumerSpec both = spec();
  both.read = {"orders", "refunds", "orders"};
  for (int i = 1; i <= 20; ++i) {
    add(std::to_string(i) + "-0", "o", "orders");
    add(std::to_string(i) + "-0", "r", "refunds");
  }
  const auto from = open(RedisSource::kIdleLimit, both);
  int orders = 0;
  int refunds = 0;
  EXPECT_TRUE(eventually([&] {
    std::vector<Received> some;
    EXPECT_TRUE(from->receive({.messages = 1, .wait = 20ms}, some));
    EXPECT_LE(some.size(), 1U);
    EXPECT_TRUE(from->acknowledge(some));
    for (const Received& one : some) ++(one.channel == "orders" ? orders : refunds);
    return orders + refunds == 40;
  }));
  EXPECT_EQ(orders, 20);
  EXPECT_EQ(from->lag(), if_counted(0));
}

// ---- consumers that are gone

TEST_F(RedisSourceTest, an_abandoned_entry_comes_before_newer_ones) {
  add_many(5);
  give("abandoned", 2);
  const auto from = open(kShort);
  EXPECT_THAT(read(*from, 5), ElementsAre("1", "2", "3", "4", "5"));
  EXPECT_EQ(pending(), "");
}

TEST_F(RedisSourceTest, newer_entries_wait_for_those_of_a_consumer_that_may_live) {
  add_many(3);
  give("alive", 1);
  const auto from = open();
  for (int i = 0; i < 5; ++i) EXPECT_THAT(receive(*from, false), IsEmpty());
  (void)run({"XACK", "orders", "billing", "1-0"});
  EXPECT_THAT(read(*from, 2), ElementsAre("2", "3"));
}

TEST_F(RedisSourceTest, a_process_that_has_ended_on_this_machine_is_known) {
  ProcessIdentity ended = this_process();
  ++ended.started;
  const std::string name = source::redis::consumer_name(ended, 1);
  add_many(3);
  give(name, 2);
  const auto from = open();
  EXPECT_THAT(read(*from, 3), ElementsAre("1", "2", "3"));
  from->close();
  const auto later = open(kShort);
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(later->open());
    return run({"XINFO", "CONSUMERS", "orders", "billing"}).find(name) == std::string::npos;
  }));
}

TEST_F(RedisSourceTest, a_name_says_its_process) {
  const ProcessIdentity self = this_process();
  const std::string name = source::redis::consumer_name(self, 7);
  const auto process = source::redis::parse_process(name);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, self.pid);
  EXPECT_EQ(process->boot_id, self.boot_id);
  EXPECT_EQ(process->pid_ns, self.pid_ns);
  EXPECT_EQ(process->started, self.started);
  EXPECT_FALSE(is_gone(*process, self));
  for (const char* other : {"", "given-back", "host:1", "host:1;b;n;x;1", "host;b;n;5;1", ";;;;"})
    EXPECT_FALSE(source::redis::parse_process(other)) << other;
}

TEST_F(RedisSourceTest, closing_leaves_no_consumer_and_gives_back) {
  add_many(3);
  const auto one = open();
  EXPECT_EQ(receive(*one, false).size(), 3U);
  one->close();
  const std::string consumers = run({"XINFO", "CONSUMERS", "orders", "billing"});
  EXPECT_THAT(consumers, HasSubstr("given-back"));
  EXPECT_THAT(consumers, Not(HasSubstr(std::to_string(this_process().pid))));
  const auto two = open();
  EXPECT_THAT(read(*two, 3), ElementsAre("1", "2", "3"));
}

TEST_F(RedisSourceTest, what_was_received_over_a_broken_connection_comes_first) {
  add_many(3);
  TcpGate gate(server_->port());
  const auto from =
      open(RedisSource::kIdleLimit, spec(), "redis://127.0.0.1:" + std::to_string(gate.port()));
  EXPECT_EQ(receive(*from, false).size(), 3U);
  add("4-0", "4");
  gate.cut();
  (void)error_of(*from);
  from->close();
  EXPECT_THAT(pending(), HasSubstr("1-0"));
  ASSERT_TRUE(from->open());
  EXPECT_THAT(read(*from, 4), ElementsAre("1", "2", "3", "4"));
}

// ---- what is removed

TEST_F(RedisSourceTest, trimmed_entries_of_an_abandoned_consumer_are_said) {
  add_many(5);
  give("abandoned", 4);
  (void)run({"XDEL", "orders", "2-0", "3-0"});
  const auto from = open(kShort);
  testing::internal::CaptureStderr();
  EXPECT_THAT(read(*from, 3), ElementsAre("1", "4", "5"));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("messages were removed from the stream before they were received"));
  EXPECT_THAT(said, HasSubstr("2-0"));
  EXPECT_THAT(said, HasSubstr("3-0"));
  EXPECT_EQ(pending(), "");
}

TEST_F(RedisSourceTest, trimmed_entries_of_its_own_are_said_and_do_not_come_again) {
  add_many(3);
  TcpGate gate(server_->port());
  const auto from =
      open(RedisSource::kIdleLimit, spec(), "redis://127.0.0.1:" + std::to_string(gate.port()));
  EXPECT_EQ(receive(*from, false).size(), 3U);
  gate.cut();
  (void)error_of(*from);
  (void)run({"XTRIM", "orders", "MAXLEN", "1"});
  ASSERT_TRUE(from->open());
  testing::internal::CaptureStderr();
  EXPECT_THAT(read(*from, 1), ElementsAre("3"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("1-0 2-0"));
  EXPECT_EQ(pending(), "");
}

TEST_F(RedisSourceTest, entries_that_are_removed_while_it_closes_are_said) {
  add_many(3);
  const auto from = open();
  EXPECT_EQ(receive(*from, false).size(), 3U);
  (void)run({"XDEL", "orders", "2-0"});
  testing::internal::CaptureStderr();
  from->close();
  // Redis before 7.0 still has it as pending then, and the next consumer finds out.
  const auto next = open();
  EXPECT_THAT(read(*next, 2), ElementsAre("1", "3"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("2-0"));
}

TEST_F(RedisSourceTest, entries_that_nobody_received_are_said_once) {
  if (!counts()) GTEST_SKIP() << "Redis before 7.0 does not count them";
  add_many(3);
  const auto from = open();
  EXPECT_EQ(read(*from, 3).size(), 3U);
  from->close();
  for (int i = 4; i <= 9; ++i) add(std::to_string(i) + "-0", std::to_string(i));
  (void)run({"XTRIM", "orders", "MAXLEN", "2"});
  testing::internal::CaptureStderr();
  ASSERT_TRUE(from->open());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("messages were removed from the stream before they were received"));
  EXPECT_THAT(said, HasSubstr("count=4"));
  EXPECT_THAT(said, HasSubstr("after=3-0"));
  from->close();
  testing::internal::CaptureStderr();
  ASSERT_TRUE(from->open());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(from->lag(), 2);
  EXPECT_THAT(read(*from, 2), ElementsAre("8", "9"));
}

TEST_F(RedisSourceTest, entries_that_were_received_may_be_trimmed_in_silence) {
  add_many(3);
  testing::internal::CaptureStderr();
  const auto from = open();
  EXPECT_EQ(read(*from, 3).size(), 3U);
  from->close();
  (void)run({"XTRIM", "orders", "MAXLEN", "0"});
  ASSERT_TRUE(from->open());
  add("4-0", "4");
  EXPECT_THAT(read(*from, 1), ElementsAre("4"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(RedisSourceTest, a_removed_group_is_an_error_and_made_again) {
  add_many(2);
  const auto from = open();
  EXPECT_EQ(read(*from, 2).size(), 2U);
  (void)run({"XGROUP", "DESTROY", "orders", "billing"});
  const Error error = error_of(*from);
  EXPECT_EQ(error.code, Errc::not_found) << error.text();
  EXPECT_THAT(error.hint, HasSubstr("makes both again"));
  from->close();
  ASSERT_TRUE(from->open());
  EXPECT_THAT(read(*from, 2), ElementsAre("1", "2"));
}

TEST_F(RedisSourceTest, a_removed_stream_is_an_error_and_made_again) {
  add_many(1);
  const auto from = open();
  EXPECT_EQ(read(*from, 1).size(), 1U);
  (void)run({"DEL", "orders"});
  EXPECT_EQ(error_of(*from).code, Errc::not_found);
  from->close();
  ASSERT_TRUE(from->open());
  add("9-0", "9");
  EXPECT_THAT(read(*from, 1), ElementsAre("9"));
}

TEST_F(RedisSourceTest, a_removed_group_that_began_with_the_latest_goes_on_where_it_was) {
  ConsumerSpec latest = spec();
  latest.start = ConsumeFrom::latest;
  add_many(2);
  const auto from = open(RedisSource::kIdleLimit, latest);
  add("3-0", "3");
  EXPECT_THAT(read(*from, 1), ElementsAre("3"));
  (void)run({"XGROUP", "DESTROY", "orders", "billing"});
  add("4-0", "4");
  EXPECT_EQ(error_of(*from).code, Errc::not_found);
  from->close();
  ASSERT_TRUE(from->open());
  EXPECT_THAT(read(*from, 1), ElementsAre("4"));
}

// ---- errors

TEST_F(RedisSourceTest, a_key_of_another_type_is_named) {
  (void)run({"SET", "orders", "x"});
  const Status status = make()->open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::invalid_argument);
  EXPECT_THAT(status.error().message, HasSubstr("orders"));
  EXPECT_THAT(status.error().hint, HasSubstr("no stream"));
}

TEST_F(RedisSourceTest, the_rights_of_the_page_are_enough_and_a_missing_one_is_named) {
  const auto url = [&] {
    return "redis://billing:hush@127.0.0.1:" + std::to_string(server_->port());
  };
  const Words rights{"ACL",         "SETUSER", "billing",   "reset", "on",    ">hush",
                     "~orders",     "+xgroup", "+xinfo",    "+xlen", "+xack", "+xreadgroup",
                     "+xautoclaim", "+xclaim", "+xpending", "+ping", "+info"};
  (void)run(rights);
  add_many(3);
  give("abandoned", 1);
  const auto from = open(kShort, spec(), url());
  EXPECT_EQ(read(*from, 3).size(), 3U);
  std::vector<Received> none;
  EXPECT_TRUE(from->receive({.messages = 0, .wait = 1ms}, none));
  EXPECT_EQ(from->lag(), if_counted(0));
  from->close();
  Words fewer = rights;
  std::erase(fewer, "+xgroup");
  (void)run(fewer);
  const Status status = make(kShort, spec(), url())->open();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::permission_denied) << status.error().text();
  EXPECT_THAT(status.error().hint, HasSubstr("+xgroup"));
  (void)run({"ACL", "SETUSER", "billing", ">other", "<hush"});
  const Status refused = make(kShort, spec(), url())->open();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().hint, HasSubstr("redis.password"));
}

TEST_F(RedisSourceTest, settings_of_sending_are_refused) {
  ConsumerSpec wrong = spec();
  wrong.settings = {{"url", server_->url()}, {"max_length", "10"}};
  const auto made = source::make_source(wrong);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("redis.max_length"));
}

}  // namespace
}  // namespace outbox::test
