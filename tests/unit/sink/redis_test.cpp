// The parts of the Redis sink that need no server: settings, commands, error codes, server facts.
#include <gtest/gtest.h>

#include <map>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "sink/hiredis/connection.hpp"
#include "sink/hiredis/error_map.hpp"
#include "sink/hiredis/in_flight.hpp"
#include "sink/hiredis/server_facts.hpp"
#include "sink/kind.hpp"
#include "sink/redis/command.hpp"
#include "sink/redis/config.hpp"
#include "sink/redis/script.hpp"

namespace outbox::test {
namespace {

using namespace sink::hiredis;  // NOLINT(google-build-using-namespace)
using namespace sink::redis;    // NOLINT(google-build-using-namespace)
using Given = std::map<std::string, std::string>;

// ---- settings

std::string complaint(Given settings, const std::string& topic = "orders") {
  SubscriptionSpec spec = make_spec("redis", std::move(settings));
  spec.topic = topic;
  return find_complaint(spec);
}

std::string complaint_about(const std::string& name, const std::string& value) {
  return complaint({{"url", "redis://a"}, {name, value}});
}

TEST(RedisSettings, an_address_is_all_that_is_needed) {
  for (const char* url :
       {"redis://a", "redis://a:6380/3", "redis://:secret@a", "redis://user:se%40cret@a:6379/0",
        "rediss://a", "redis://[::1]:6379", "redis://a:1,redis://b:2"}) {
    EXPECT_EQ(complaint({{"url", url}}), "") << url;
  }
  EXPECT_TRUE(contains(complaint({}), "redis.url: is missing"));
}

TEST(RedisSettings, an_address_that_is_none_is_refused_and_not_quoted) {
  for (const char* url :
       {"a:6379", "http://a", "redis://", "redis://:hush@a/orders", "redis://:hush@a/1?x=2"}) {
    const std::string text = complaint({{"url", url}});
    EXPECT_TRUE(contains(text, "redis.url: ")) << url << ": " << text;
    EXPECT_FALSE(contains(text, "hush")) << text;
    EXPECT_TRUE(contains(text, "hint: ")) << text;
  }
}

TEST(RedisSettings, a_username_needs_a_password) {
  EXPECT_TRUE(contains(complaint_about("username", "u"), "redis.username"));
  EXPECT_TRUE(contains(complaint({{"url", "redis://u@a"}}), "redis.url"));
  EXPECT_EQ(complaint({{"url", "redis://a"}, {"username", "u"}, {"password", "p"}}), "");
  EXPECT_EQ(complaint({{"url", "redis://u@a"}, {"password", "p"}}), "");
}

TEST(RedisSettings, settings_of_tls_need_tls) {
  for (const char* name : {"tls_ca", "insecure_tls"}) {
    const std::string value = std::string(name) == "tls_ca" ? "/etc/ca.pem" : "true";
    EXPECT_TRUE(contains(complaint_about(name, value), "has no effect without TLS")) << name;
    EXPECT_EQ(complaint({{"url", "rediss://a"}, {name, value}}), "") << name;
  }
  EXPECT_TRUE(contains(complaint({{"url", "rediss://a"}, {"tls_key", "k.pem"}}),
                       "redis.tls_certificate: is missing"));
  EXPECT_TRUE(contains(complaint({{"url", "rediss://a"}, {"tls_certificate", "c.pem"}}),
                       "redis.tls_key: is missing"));
}

TEST(RedisSettings, replicas_must_have_time_within_the_deadline) {
  EXPECT_EQ(complaint_about("wait_timeout", "1min"), "");
  EXPECT_TRUE(
      contains(complaint({{"url", "redis://a"}, {"wait_replicas", "1"}, {"wait_timeout", "6s"}}),
               "half of redis.deadline"));
}

TEST(RedisSettings, the_stream_needs_a_name) {
  EXPECT_TRUE(contains(complaint({{"url", "redis://a"}}, ""), "topic: is empty"));
}

TEST(RedisSettings, the_window_may_be_off) {
  for (const char* good : {"0", "0s", "1s", "7d"})
    EXPECT_EQ(complaint_about("dedup_window", good), "");
  EXPECT_NE(complaint_about("dedup_window", "60"), "");
  EXPECT_NE(complaint_about("dedup_window", "60d"), "");
}

TEST(RedisSettings, passwords_are_secrets) {
  for (const auto& setting : outbox::sink::find_kind("redis")->settings) {
    const bool may_hold_one = setting.name == "url" || setting.name == "password";
    EXPECT_EQ(setting.secret, may_hold_one) << setting.name;
  }
}

// ---- the keys

std::string dedup_key(std::string_view stream, std::string_view id = "ID") {
  std::string key;
  append_dedup_key(key, stream, id);
  return key;
}

/// The part of a key that Redis Cluster hashes.
std::string hashed(const std::string& key) {
  const std::size_t open = key.find('{');
  if (open == std::string::npos) return key;
  const std::size_t close = key.find('}', open);
  if (close == std::string::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

TEST(RedisKeys, the_id_is_remembered_in_the_hash_slot_of_the_stream) {
  for (const char* stream : {"order.events", "shop:{eu}:orders", "{eu}", "{eu}orders{us}", "{{x}",
                             "open{only", "a{b}{}", "Größe"}) {
    EXPECT_EQ(hashed(dedup_key(stream)), hashed(stream)) << stream;
    EXPECT_TRUE(dedup_key(stream).starts_with("outbox:dedup:"));
  }
}

TEST(RedisKeys, no_two_streams_share_one) {
  std::map<std::string, std::string> seen;
  for (const char* stream :
       {"orders", "{orders}", "x{orders}", "{orders}x", "orders:", "{orders}:"}) {
    const auto [at, fresh] = seen.emplace(dedup_key(stream), stream);
    EXPECT_TRUE(fresh) << stream << " and " << at->second;
  }
}

// ---- the command

std::vector<std::string> made(const Message& message, std::chrono::milliseconds window,
                              std::size_t max_length = 0) {
  Command command(window, max_length);
  const auto call = command.call(message, "HASH");
  if (!call) return {call.error().text()};
  EXPECT_EQ(call->place, "stream orders");
  EXPECT_TRUE(call->first.empty());
  return {call->arguments.begin(), call->arguments.end()};
}

TEST(RedisCommand, has_headers_then_key_then_body) {
  Load load("orders");
  load.add("k", "B");
  const std::string id = load.item(0).id_text;
  EXPECT_EQ(
      made(load.message(0, 1), std::chrono::seconds(60), 7),
      (std::vector<std::string>{"EVALSHA", "HASH", "2", "orders", "outbox:dedup:{orders}:" + id,
                                "60000", "7", "outbox-id", id, "outbox-seq", "1", "content-type",
                                "application/json", "key", "k", "body", "B"}));
}

TEST(RedisCommand, without_a_window_there_is_one_key) {
  Load load("orders");
  load.add(std::nullopt, "");
  load.item(0).headers.clear();
  EXPECT_EQ(made(load.message(0, 1), std::chrono::seconds(0)),
            (std::vector<std::string>{"EVALSHA", "HASH", "1", "orders", "0", "0", "body", ""}));
}

TEST(RedisCommand, a_header_named_like_a_field_of_ours_is_renamed) {
  Load load("orders");
  load.add(std::nullopt, "B");
  load.item(0).headers = {{.name = "key", .value = "not the key"},
                          {.name = "body", .value = "not the body"},
                          {.name = "Body", .value = "another"},
                          {.name = "gone", .value = "", .absent = true}};
  const auto all = made(load.message(0, 1), std::chrono::seconds(0));
  EXPECT_EQ(std::vector<std::string>(all.begin() + 6, all.end()),
            (std::vector<std::string>{"header:key", "not the key", "header:body", "not the body",
                                      "Body", "another", "body", "B"}));
}

TEST(RedisCommand, a_replay_is_remembered_apart) {
  Load load("orders");
  load.add("k", "B");
  const std::string plain = made(load.message(0, 1), std::chrono::seconds(60))[4];
  load.item(0).event.headers = R"({"outbox-replay":"12","a":"b"})";
  EXPECT_EQ(made(load.message(0, 1), std::chrono::seconds(60))[4], plain + ":12");
  load.item(0).event.headers = R"({"a":"outbox-replay"})";
  EXPECT_EQ(made(load.message(0, 1), std::chrono::seconds(60))[4], plain);
}

TEST(RedisCommand, its_size_is_known_before_it_is_sent) {
  Load load("orders");
  load.add("k", std::string(1000, 'x'));
  Command command(std::chrono::seconds(60), 0);
  std::size_t bytes = 0;
  const auto call = command.call(load.message(0, 1), "HASH");
  ASSERT_TRUE(call.has_value());
  for (const auto argument : call->arguments) bytes += argument.size();
  EXPECT_GE(wire_bytes(call->arguments), bytes);
  EXPECT_LE(wire_bytes(call->arguments), bytes + 300);
}

bool is_possible(const Message& message) {
  return Command(std::chrono::seconds(60), 0).call(message, "HASH").has_value();
}

TEST(RedisCommand, what_cannot_be_an_entry_is_the_fault_of_the_event) {
  Load load("orders");
  load.add("k", "B");
  EXPECT_TRUE(is_possible(load.message(0, 1)));
  load.item(0).headers.assign(kMostFields - 2, HeaderView{.name = "a", .value = "b"});
  EXPECT_TRUE(is_possible(load.message(0, 1)));
  load.item(0).headers.push_back({.name = "a", .value = "b"});
  EXPECT_FALSE(is_possible(load.message(0, 1)));
  load.item(0).headers.clear();
  load.item(0).topic.clear();
  EXPECT_FALSE(is_possible(load.message(0, 1)));
}

// ---- errors

Error described(std::string_view reply, std::string_view where) {
  return describe(reply, where, make_purpose({}));
}

TEST(RedisErrors, the_code_is_the_first_word) {
  EXPECT_EQ(parse_code("OOM command not allowed"), "OOM");
  EXPECT_EQ(parse_code("WRONGTYPE"), "WRONGTYPE");
  EXPECT_EQ(parse_code("ERR unknown command"), "ERR");
  EXPECT_EQ(parse_code("Something else"), "ERR");
  EXPECT_EQ(parse_code(""), "ERR");
}

TEST(RedisErrors, only_a_message_that_is_too_large_is_the_fault_of_its_event) {
  for (const char* reply :
       {"OOM command not allowed when used memory > 'maxmemory'.",
        "NOREPLICAS Not enough good replicas to write.",
        "READONLY You can't write against a read only replica.",
        "LOADING Redis is loading the dataset in memory",
        "MISCONF Redis is configured to save RDB snapshots, but", "NOAUTH Authentication required.",
        "WRONGPASS invalid username-password pair",
        "NOPERM this user has no permissions to run the 'xadd' command",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381", "CLUSTERDOWN Hash slot not served",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "BUSY Redis is busy running a script.", "NOSCRIPT No matching script.",
        "MASTERDOWN Link with MASTER is down",
        "ERR The user executing the script can't run this command or subcommand script: x",
        "ERR max number of clients reached"}) {
    EXPECT_EQ(outcome_kind(reply), Outcome::Kind::blocked) << reply;
    const Error error = described(reply, "redis://a:6379");
    EXPECT_FALSE(error.hint.empty()) << reply;
    EXPECT_TRUE(contains(error.message, "redis://a:6379")) << error.message;
    EXPECT_TRUE(contains(error.message, reply)) << error.message;
    EXPECT_EQ(error.effect, Effect::none);
  }
  EXPECT_EQ(outcome_kind("ERR of a future version"), Outcome::Kind::blocked);
  EXPECT_EQ(outcome_kind("ERR Protocol error: invalid bulk length"), Outcome::Kind::rejected);
  EXPECT_EQ(described("ERR Protocol error: invalid bulk length", "stream s").code, Errc::too_large);
}

TEST(RedisErrors, where_in_the_script_an_error_arose_is_not_part_of_it) {
  const char* const oom =
      "@user_script: 10: -OOM command not allowed when used memory > 'maxmemory'.";
  EXPECT_EQ(parse_code(oom), "OOM");
  EXPECT_EQ(described(oom, "stream s").message,
            "redis: stream s: OOM command not allowed when used memory > 'maxmemory'.");
  EXPECT_EQ(
      described("@user_script: 3: The user executing the script can't run this command", "s").code,
      Errc::permission_denied);
  EXPECT_EQ(parse_code("@user_script"), "ERR");
}

TEST(RedisErrors, arguments_that_the_server_quotes_are_not_shown) {
  const Error error = described(
      "ERR unknown command 'AUTH', with args beginning with: 'user' 'hush' ", "redis://a:6379");
  EXPECT_FALSE(contains(error.text(), "hush")) << error.text();
  EXPECT_TRUE(contains(error.text(), "AUTH"));
}

// ---- what a server says of itself

ServerFacts parse_facts(std::string_view info) {
  ServerFacts facts;
  read_info(info, facts);
  return facts;
}

TEST(RedisServer, info_is_read) {
  const ServerFacts facts = parse_facts(
      "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n# Memory\r\nmaxmemory:1000\r\n"
      "maxmemory_human:1K\r\nmaxmemory_policy:allkeys-lru\r\n# Persistence\r\naof_enabled:0\r\n"
      "# Replication\r\nrole:master\r\nlast:");
  EXPECT_EQ(facts.mode, "standalone");
  EXPECT_EQ(facts.maxmemory, "1000");
  EXPECT_EQ(facts.maxmemory_policy, "allkeys-lru");
  EXPECT_EQ(facts.aof_enabled, "0");
  EXPECT_EQ(facts.role, "master");
  EXPECT_EQ(parse_facts("server_mode:cluster").mode, "cluster");
  EXPECT_EQ(parse_facts("").mode, "");
}

TEST(RedisServer, one_that_cannot_take_events_is_refused) {
  EXPECT_FALSE(find_refusal(ServerFacts(), "a", "redis").has_value());
  EXPECT_FALSE(
      find_refusal(parse_facts("redis_mode:standalone\r\nrole:master"), "a", "redis").has_value());
  for (const char* info : {"redis_mode:cluster", "redis_mode:sentinel", "role:slave"}) {
    const auto refused = find_refusal(parse_facts(info), "redis://a:1", "redis");
    ASSERT_TRUE(refused.has_value()) << info;
    EXPECT_TRUE(contains(refused->message, "redis://a:1"));
    EXPECT_FALSE(refused->hint.empty());
  }
}

std::string risks(const ServerFacts& facts, bool waits = false) {
  std::string all;
  for (const sink::Weakness& risk : find_weaknesses(facts, waits, make_purpose({}))) {
    all += risk.setting + ". ";
    EXPECT_FALSE(risk.consequence.empty());
    EXPECT_FALSE(risk.hint.empty());
  }
  return all;
}

TEST(RedisServer, settings_that_can_lose_events_are_named) {
  ServerFacts safe = parse_facts("maxmemory:1000\r\nmaxmemory_policy:noeviction\r\naof_enabled:1");
  safe.appendfsync = "always";
  EXPECT_EQ(risks(safe), "");
  EXPECT_EQ(risks(ServerFacts()), "") << "what is not known is not claimed";

  ServerFacts evicting = safe;
  evicting.maxmemory_policy = "allkeys-lru";
  EXPECT_EQ(risks(evicting), "maxmemory-policy allkeys-lru. ");
  evicting.maxmemory = "0";
  EXPECT_EQ(risks(evicting), "") << "without a limit nothing is evicted";

  ServerFacts lazy = safe;
  lazy.appendfsync = "everysec";
  EXPECT_EQ(risks(lazy), "appendfsync everysec. ");
  EXPECT_EQ(risks(lazy, true), "") << "replicas have it";

  ServerFacts forgetful = safe;
  forgetful.aof_enabled = "0";
  EXPECT_EQ(risks(forgetful), "appendonly no. ");
  EXPECT_EQ(risks(forgetful, true), "appendonly no. ");
}

TEST(RedisServer, the_smallest_limit_counts) {
  ServerFacts facts;
  EXPECT_EQ(limit_bytes(facts, 0), std::size_t{512} << 20U);
  EXPECT_EQ(limit_bytes(facts, 1000), 1000U);
  facts.bulk_limit = 5000;
  EXPECT_EQ(limit_bytes(facts, 0), 5000U);
  EXPECT_EQ(limit_bytes(facts, 9000), 5000U);
  facts.query_limit = 4000;
  EXPECT_EQ(limit_bytes(facts, 0), 4000U);
}

TEST(RedisServer, the_limit_is_named) {
  ServerFacts facts;
  EXPECT_FALSE(find_limit(facts, 0, "redis")) << "the server does not say";
  EXPECT_FALSE(own_limit(0, "redis"));
  EXPECT_EQ(find_limit(facts, 1000, "asynq")->setting, "asynq.max_message_bytes");
  facts.bulk_limit = 5000;
  EXPECT_EQ(find_limit(facts, 0, "redis")->setting, "proto-max-bulk-len of the server");
  EXPECT_EQ(find_limit(facts, 9000, "redis")->bytes, 5000);
  EXPECT_EQ(own_limit(9000, "redis")->bytes, 9000);
  EXPECT_EQ(find_limit(facts, 1000, "redis")->setting, "redis.max_message_bytes");
  facts.query_limit = 4000;
  EXPECT_EQ(find_limit(facts, 9000, "redis")->setting, "client-query-buffer-limit of the server");
}

// ---- in flight

TEST(RedisInFlight, events_that_were_added_wait_for_the_next_wait) {
  InFlight in_flight;
  in_flight.add({.token = 1, .bytes = 10, .place = "s"});
  in_flight.add({.token = 2, .bytes = 20, .place = "s"});
  EXPECT_TRUE(in_flight.lacks_wait());
  in_flight.add_wait();
  EXPECT_FALSE(in_flight.lacks_wait());
  in_flight.add({.token = 3, .bytes = 5, .place = "s"});
  EXPECT_EQ(in_flight.bytes(), 35U);

  in_flight.hold(in_flight.answered().token);
  EXPECT_EQ(in_flight.answered().token, 2U);
  EXPECT_EQ(in_flight.bytes(), 5U);
  EXPECT_EQ(in_flight.events(), 2U);
  EXPECT_EQ(in_flight.answered().kind, InFlight::Kind::wait);
  EXPECT_EQ(in_flight.take_added(), std::vector<Token>{1});

  in_flight.hold(in_flight.answered().token);
  EXPECT_TRUE(in_flight.lacks_wait()) << "its answer came before a WAIT was sent";
  EXPECT_FALSE(in_flight.expects_answer());
  EXPECT_FALSE(in_flight.empty());
  EXPECT_EQ(in_flight.take_all(), std::vector<Token>{3});
  EXPECT_TRUE(in_flight.empty());
  EXPECT_FALSE(in_flight.lacks_wait());
}

TEST(RedisInFlight, what_runs_before_an_event_is_no_event) {
  InFlight in_flight;
  in_flight.add({.kind = InFlight::Kind::first, .bytes = 7, .place = "key k"});
  in_flight.add({.token = 1, .bytes = 10, .place = "s"});
  EXPECT_EQ(in_flight.events(), 1U);
  EXPECT_EQ(in_flight.bytes(), 17U);
  EXPECT_EQ(in_flight.answered().place, "key k");
  EXPECT_EQ(in_flight.bytes(), 10U);
  EXPECT_EQ(in_flight.take_all(), std::vector<Token>{1});
}

}  // namespace
}  // namespace outbox::test
