// The parts of the sink for asynq that need no server: settings, names, messages, commands.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/text.hpp"
#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "sink/asynq/config.hpp"
#include "sink/asynq/tasks.hpp"
#include "sink/hiredis/error_map.hpp"
#include "sink/hiredis/server_facts.hpp"

namespace outbox::test {
namespace {

using namespace sink::asynq;  // NOLINT(google-build-using-namespace)
using Given = std::map<std::string, std::string>;

// ---- settings

std::string complaint(Given settings) {
  return find_complaint(make_spec("asynq", std::move(settings)));
}

std::string complaint_about(const std::string& name, const std::string& value) {
  return complaint({{"url", "redis://a"}, {name, value}});
}

TEST(AsynqSettings, an_address_is_all_that_is_needed) {
  EXPECT_EQ(complaint({{"url", "redis://a"}}), "");
  EXPECT_TRUE(contains(complaint({}), "asynq.url: is missing"));
}

TEST(AsynqSettings, their_defaults_are_those_of_asynq_and_a_day_of_retention) {
  const AsynqSettings settings;
  EXPECT_EQ(settings.queue, "default");
  EXPECT_EQ(settings.type, "{event_type}");
  EXPECT_EQ(settings.max_retry, 25U);
  EXPECT_EQ(settings.timeout, std::chrono::minutes(30));
  EXPECT_EQ(settings.retention, std::chrono::hours(24));
}

TEST(AsynqSettings, complaints_name_the_settings_of_this_sink) {
  EXPECT_TRUE(contains(complaint({{"url", "http://a"}}), "asynq.url: "));
  EXPECT_TRUE(contains(complaint({{"url", "redis://a/orders"}}), "the queue is asynq.queue"));
  EXPECT_TRUE(contains(complaint_about("username", "u"), "asynq.password"));
  EXPECT_TRUE(contains(complaint_about("tls_ca", "/ca.pem"), "begin asynq.url with rediss://"));
  EXPECT_TRUE(
      contains(complaint({{"url", "redis://a"}, {"wait_replicas", "1"}, {"wait_timeout", "6s"}}),
               "half of asynq.deadline"));
}

TEST(AsynqSettings, a_queue_has_a_name_that_asynq_takes) {
  for (const char* good : {"default", "low priority", "{aggregate_type|kebab}",
                           "x-{header:tenant|default:all}", "Größe"})
    EXPECT_EQ(complaint_about("queue", good), "") << good;
  for (const char* bad : {"", "  ", "{{default}}", "a}}", "\xff"})
    EXPECT_TRUE(contains(complaint_about("queue", bad), "asynq.queue: ")) << bad;
  EXPECT_TRUE(contains(complaint_about("queue", "{nonsense}"), "asynq.queue: "));
}

TEST(AsynqSettings, a_task_has_a_type_and_an_id) {
  for (const char* name : {"type", "task_id"}) {
    EXPECT_EQ(complaint_about(name, "a:{id}"), "") << name;
    EXPECT_TRUE(contains(complaint_about(name, ""), "is empty")) << name;
    EXPECT_TRUE(contains(complaint_about(name, " "), "is empty")) << name;
    EXPECT_TRUE(contains(complaint_about(name, "{nonsense}"), std::string("asynq.") + name));
  }
}

TEST(AsynqSettings, retention_is_what_keeps_an_event_from_running_twice) {
  EXPECT_EQ(complaint_about("retention", "1min"), "");
  EXPECT_EQ(complaint_about("retention", "30d"), "");
  EXPECT_TRUE(contains(complaint_about("retention", "59s"), "is less than 1min"));
  EXPECT_TRUE(contains(complaint_about("retention", "0"), "would run again"));
  EXPECT_NE(complaint_about("retention", "400d"), "");
}

TEST(AsynqSettings, asynq_counts_in_seconds) {
  EXPECT_EQ(complaint_about("timeout", "1s"), "");
  EXPECT_TRUE(contains(complaint_about("timeout", "1500ms"), "whole number of seconds"));
  EXPECT_TRUE(contains(complaint_about("retention", "60500ms"), "whole number of seconds"));
  EXPECT_NE(complaint_about("timeout", "0"), "") << "asynq takes that for a mistake";
}

TEST(AsynqSettings, passwords_are_secrets) {
  for (const auto& setting : outbox::sink::find_kind("asynq")->settings) {
    const bool may_hold_one = setting.name == "url" || setting.name == "password";
    EXPECT_EQ(setting.secret, may_hold_one) << setting.name;
  }
}

// ---- the message

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_hex(text, byte);
  return text;
}

std::string write_message(const TaskMessage& task) {
  std::string bytes;
  append_message(bytes, task);
  return bytes;
}

/// These bytes went through asynq's own scripts and workers.
TEST(AsynqMessage, has_the_bytes_that_asynq_writes) {
  const HeaderView header{.name = "ce_id", .value = "abc"};
  EXPECT_EQ(
      hex(write_message({.type = "email:welcome",
                         .payload = R"({"user_id":42})",
                         .id = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
                         .queue = "default",
                         .max_retry = 25,
                         .timeout = std::chrono::minutes(30),
                         .headers = {&header, 1}})),
      "0a0d656d61696c3a77656c636f6d65120e7b22757365725f6964223a34327d1a2439623164656234642d336237642d346261642d39"
      "6264642d326230643762336463623664220764656661756c74281940880e7a0c0a0563655f69641203616263");
}

TEST(AsynqMessage, has_its_retention_and_leaves_out_what_is_zero) {
  EXPECT_EQ(hex(write_message({.type = "t",
                               .payload = {},
                               .id = "i",
                               .queue = "q",
                               .retention = std::chrono::hours(24),
                               .headers = {}})),
            "0a0174"
            "1a0169"
            "220171"
            "6080a305");
  EXPECT_EQ(write_message({}), "");
}

TEST(AsynqMessage, keeps_the_order_of_the_headers_and_leaves_out_absent_ones) {
  const HeaderView headers[] = {{.name = "b", .value = "1"},
                                {.name = "gone", .value = "", .absent = true},
                                {.name = "a", .value = ""}};
  TaskMessage task;
  task.headers = headers;
  EXPECT_EQ(hex(write_message(task)),
            "7a060a0162120131"
            "7a050a01611200");
}

TEST(AsynqMessage, text_must_be_utf8) {
  const auto wrong = [](TaskMessage task) { return std::string(not_utf8(task)); };
  EXPECT_EQ(wrong({}), "");
  EXPECT_EQ(wrong({.type = "größe", .payload = "\xff", .id = "1", .queue = "日本", .headers = {}}),
            "");
  EXPECT_EQ(wrong({.type = "\xff", .payload = {}, .id = {}, .queue = {}, .headers = {}}),
            "its type");
  EXPECT_EQ(wrong({.type = {}, .payload = {}, .id = "\xc0\x80", .queue = {}, .headers = {}}),
            "its id");
  EXPECT_EQ(wrong({.type = {}, .payload = {}, .id = {}, .queue = "\xed\xa0\x80", .headers = {}}),
            "its queue");
  for (const HeaderView& header :
       {HeaderView{.name = "\xff", .value = ""}, HeaderView{.name = "n", .value = "\xff"}}) {
    TaskMessage task;
    task.headers = {&header, 1};
    EXPECT_EQ(not_utf8(task), "a header");
  }
}

// ---- names

TEST(AsynqNames, begin_with_the_queue_as_hash_tag) {
  std::string key;
  append_prefix(key, "low priority");
  EXPECT_EQ(key, "asynq:{low priority}:");
}

// ---- the command

class AsynqCommand : public testing::Test {
 protected:
  static Tasks tasks(const AsynqSettings& settings) {
    FieldErrors errors;
    TaskOptions options = make_task_options(settings, errors);
    EXPECT_TRUE(errors.empty());
    return Tasks(std::move(options));
  }
  /// The words of EVALSHA with "..." in place of the message and the time.
  static std::vector<std::string> words(Tasks& tasks, const Message& message) {
    const auto call = tasks.call(message, "HASH");
    if (!call) return {call.error().text()};
    std::vector<std::string> all(call->arguments.begin(), call->arguments.end());
    all.at(5) = all.at(7) = "...";
    return all;
  }
  static std::vector<std::string> list_first(Tasks& tasks, const Message& message) {
    const auto call = tasks.call(message, "HASH");
    if (!call) return {call.error().text()};
    return {call->first.begin(), call->first.end()};
  }

  AsynqSettings settings_;
  Load load_;
};

TEST_F(AsynqCommand, has_the_keys_of_the_queue) {
  load_.add("k", "B");
  const std::string id = load_.item(0).id_text;
  Tasks made = tasks(settings_);
  EXPECT_EQ(
      words(made, load_.message(0, 1)),
      (std::vector<std::string>{"EVALSHA", "HASH", "2", "asynq:{default}:t:" + id,
                                "asynq:{default}:pending", "...", id, "...", "OrderPlaced", "0"}));
  settings_.wait_replicas = 1;
  Tasks waiting = tasks(settings_);
  EXPECT_EQ(words(waiting, load_.message(0, 1)).back(), "1");
}

TEST_F(AsynqCommand, a_replay_has_an_id_of_its_own) {
  load_.add("k", "B");
  load_.item(0).event.headers = R"({"outbox-replay":"12","a":"b"})";
  Tasks made = tasks(settings_);
  EXPECT_EQ(words(made, load_.message(0, 1)).at(6), load_.item(0).id_text + ":12");
}

TEST_F(AsynqCommand, a_queue_is_named_once_on_a_connection) {
  settings_.queue = "{aggregate_type}";
  Tasks made = tasks(settings_);
  load_.add_many(2, 2);
  load_.item(1).event.aggregate_type = "other";
  using Words = std::vector<std::string>;
  const Words order{"SADD", "asynq:queues", "order"};
  const Words other{"SADD", "asynq:queues", "other"};
  EXPECT_EQ(list_first(made, load_.message(0, 1)), order);
  EXPECT_EQ(list_first(made, load_.message(0, 1)), Words());
  EXPECT_EQ(list_first(made, load_.message(1, 1)), other);
  EXPECT_EQ(list_first(made, load_.message(0, 1)), Words());
  made.connected();
  EXPECT_EQ(list_first(made, load_.message(0, 1)), order);
}

TEST_F(AsynqCommand, only_so_many_queues_are_remembered) {
  settings_.queue = "{aggregate_id}";
  Tasks made = tasks(settings_);
  load_.add("k", "B");
  std::size_t named = 0;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i <= kMostQueues; ++i) ids.push_back("q" + std::to_string(i));
  for (const std::string& id : ids) {
    load_.item(0).event.aggregate_id = id;
    if (!list_first(made, load_.message(0, 1)).empty()) ++named;
  }
  EXPECT_EQ(named, kMostQueues + 1);
  load_.item(0).event.aggregate_id = ids.back();
  EXPECT_TRUE(list_first(made, load_.message(0, 1)).empty());
  load_.item(0).event.aggregate_id = ids.front();
  EXPECT_FALSE(list_first(made, load_.message(0, 1)).empty()) << "forgotten, and named again";
}

// ---- what people are told

TEST(AsynqErrors, name_this_sink_and_its_settings) {
  const auto purpose = make_purpose({});
  for (const char* reply : {"OOM command not allowed when used memory > 'maxmemory'.",
                            "READONLY You can't write against a read only replica.",
                            "WRONGPASS invalid username-password pair",
                            "NOPERM this user has no permissions to run the 'hset' command",
                            "WRONGTYPE Operation against a key holding the wrong kind of value",
                            "ERR unknown command 'EVALSHA'"}) {
    const Error error = sink::hiredis::describe(reply, "queue default", purpose);
    EXPECT_TRUE(error.message.starts_with("asynq: queue default: ")) << error.message;
    EXPECT_FALSE(error.hint.empty()) << reply;
    EXPECT_FALSE(contains(error.hint, "redis.")) << error.hint;
    EXPECT_FALSE(contains(error.hint, "stream")) << error.hint;
    EXPECT_EQ(sink::hiredis::outcome_kind(reply), Outcome::Kind::blocked);
  }
}

TEST(AsynqErrors, an_id_that_another_task_has_is_the_fault_of_the_event) {
  const char* const reply = "OUTBOX there is a task of another type with this id";
  EXPECT_EQ(sink::hiredis::outcome_kind(reply), Outcome::Kind::rejected);
  const Error error = sink::hiredis::describe(reply, "queue default", make_purpose({}));
  EXPECT_EQ(error.code, Errc::already_exists);
  EXPECT_TRUE(contains(error.hint, "task_id")) << error.hint;
}

TEST(AsynqServer, that_removes_keys_loses_tasks) {
  sink::hiredis::ServerFacts facts;
  facts.maxmemory = "1000";
  facts.maxmemory_policy = "allkeys-lru";
  const auto found = find_weaknesses(facts, false, make_purpose({}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(contains(found[0].consequence, "tasks")) << found[0].consequence;
  EXPECT_TRUE(contains(found[0].hint, "noeviction"));
}

}  // namespace
}  // namespace outbox::test
