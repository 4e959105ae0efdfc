#include "sink/redis/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "sink/redis/command.hpp"
#include "sink/redis/error_map.hpp"
#include "sink/redis/script.hpp"

namespace outbox::sink::redis {
namespace {

using Words = std::initializer_list<std::string_view>;

std::optional<std::size_t> number_of(std::string_view text) {
  std::size_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The steps after connecting. Each waits for its answer.
class Opening {
 public:
  Opening(Connection& connection, const RedisOptions& options, Connection::TimePoint until)
      : connection_(connection), options_(options), until_(until) {}

  [[nodiscard]] Result<Session> run(const Endpoint& endpoint) {
    Session session;
    if (Status done = log_in(endpoint); !done) return pass(done);
    if (Status done = select(endpoint.path); !done) return pass(done);
    OUTBOX_TRY(const ServerFacts facts, look());
    if (auto refused = refusal_of(facts, connection_.address())) return fail(std::move(*refused));
    session.inspection = inspection_of(endpoint, facts);
    session.most_bytes = most_bytes_of(facts, options_.max_message_bytes);
    OUTBOX_TRY(const Reply hash, succeed({"SCRIPT", "LOAD", kScript}));
    session.script_hash = text_of(*hash);
    if (Status done = try_writing(); !done) return pass(done);
    if (Status done = count_replicas(); !done) return pass(done);
    return session;
  }

 private:
  [[nodiscard]] Inspection inspection_of(const Endpoint& endpoint, const ServerFacts& facts) const {
    const bool waits = options_.wait_replicas > 0;
    const bool synced = facts.aof_enabled == "1" && facts.appendfsync == "always";
    Inspection found{.destination = connection_.address(),
                     .acked = synced ? "the server has it on disk" : "the server has it in memory",
                     .duplicates = "after a lost answer, a crash of the relay or a takeover",
                     .order = "of each key in a stream",
                     .weaknesses = weaknesses_of(facts, waits)};
    if (waits) found.acked += fmt::format(" and {} replicas have it", options_.wait_replicas);
    if (options_.dedup_window.count() > 0) {
      found.duplicates =
          fmt::format("only when more than {} lie between", format_duration(options_.dedup_window));
    }
    if (endpoint.scheme == "redis" && !endpoint.is_loopback())
      found.weaknesses.push_back(in_clear("rediss:// in redis.url"));
    if (options_.max_length > 0) {
      found.weaknesses.push_back(
          {fmt::format("max_length = {}", options_.max_length),
           "the oldest events of a longer stream are removed, whether they were read or not",
           "leave out redis.max_length and let consumers trim"});
    }
    return found;
  }

  [[nodiscard]] Result<Reply> ask(Words words) { return connection_.ask(words, until_); }

  /// An error reply is an error.
  [[nodiscard]] Result<Reply> succeed(Words words) {
    OUTBOX_TRY(Reply reply, ask(words));
    if (reply->type == REDIS_REPLY_ERROR)
      return fail(describe(text_of(*reply), connection_.address()));
    return reply;
  }
  [[nodiscard]] Status done(Words words) {
    const Result<Reply> reply = succeed(words);
    return reply ? Status() : Status(tl::unexpected(reply.error()));
  }

  [[nodiscard]] Status log_in(const Endpoint& endpoint) {
    const std::string& user = options_.username.empty() ? endpoint.username : options_.username;
    const std::string& password = options_.password.empty() ? endpoint.password : options_.password;
    if (password.empty()) return {};
    return user.empty() ? done({"AUTH", password}) : done({"AUTH", user, password});
  }

  [[nodiscard]] Status select(const std::string& database) {
    return database.empty() || database == "0" ? Status() : done({"SELECT", database});
  }

  /// Commands that a user may not use, and those that a managed service has removed, leave their facts unknown.
  [[nodiscard]] Result<ServerFacts> look() {
    ServerFacts facts;
    OUTBOX_TRY(const Reply info, ask({"INFO"}));
    const std::string_view code =
        info->type == REDIS_REPLY_ERROR ? code_of(text_of(*info)) : std::string_view();
    if (!code.empty() && code != "NOPERM" && code != "ERR")
      return fail(describe(text_of(*info), connection_.address()));
    if (code.empty()) read_info(text_of(*info), facts);
    OUTBOX_TRY(facts.appendfsync, configured("appendfsync"));
    OUTBOX_TRY(const std::string bulk, configured("proto-max-bulk-len"));
    facts.bulk_limit = number_of(bulk);
    OUTBOX_TRY(const std::string query, configured("client-query-buffer-limit"));
    facts.query_limit = number_of(query);
    return facts;
  }

  /// One at a time: several names in one CONFIG GET need Redis 7.
  [[nodiscard]] Result<std::string> configured(std::string_view name) {
    if (!config_allowed_) return std::string();
    OUTBOX_TRY(const Reply reply, ask({"CONFIG", "GET", name}));
    config_allowed_ = reply->type != REDIS_REPLY_ERROR;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) return std::string();
    return std::string(text_of(*reply->element[1]));
  }

  /// Finds out before an event is sent that the memory is full, that the disk fails, or that the right to remember ids is missing.
  [[nodiscard]] Status try_writing() {
    if (options_.dedup_window.count() == 0) return {};
    const std::string key = std::string(kDedupPrefix).append("check");
    return done({"SET", key, "", "PX", "1"});
  }

  /// While a replica is missing, a batch would be sent and be in doubt, again and again.
  [[nodiscard]] Status count_replicas() {
    if (options_.wait_replicas == 0) return {};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until_ - std::chrono::steady_clock::now());
    const auto limit = std::clamp(left / 2, std::chrono::milliseconds(1), options_.wait_timeout);
    const std::string wanted = std::to_string(options_.wait_replicas);
    OUTBOX_TRY(const Reply reply, ask({"WAIT", wanted, std::to_string(limit.count())}));
    return check_replicas(*reply, options_.wait_replicas, connection_.address());
  }

  Connection& connection_;
  const RedisOptions& options_;
  const Connection::TimePoint until_;
  bool config_allowed_{true};
};

Result<Session> open_one(const RedisOptions& options, const Endpoint& endpoint,
                         Connection::TimePoint until) {
  OUTBOX_TRY(std::unique_ptr<Connection> connection,
             Connection::open(endpoint, options.tls, until, options.deadline));
  OUTBOX_TRY(Session session, Opening(*connection, options, until).run(endpoint));
  session.connection = std::move(connection);
  return session;
}

}  // namespace

Status check_replicas(const redisReply& wait, std::size_t wanted, std::string_view address) {
  if (wait.type != REDIS_REPLY_INTEGER) return fail(describe(text_of(wait), address));
  if (wait.integer >= 0 && static_cast<std::size_t>(wait.integer) >= wanted) return {};
  return fail(
      Errc::unavailable, Remedy::retry_call,
      fmt::format("redis: {}: {} replicas have confirmed in time, redis.wait_replicas is {}",
                  address, wait.integer, wanted),
      "check the replicas and their lag; events in doubt are sent again, and added once within "
      "redis.dedup_window");
}

Result<Session> open_session(const RedisOptions& options) {
  const auto until = std::chrono::steady_clock::now() + options.connect_timeout;
  std::optional<Error> first;
  auto left = static_cast<int>(options.endpoints.size());
  for (const Endpoint& endpoint : options.endpoints) {
    const auto at = std::chrono::steady_clock::now();
    auto session = open_one(options, endpoint, at + (until - at) / left--);
    if (session) return session;
    if (!first) {
      first = std::move(session.error());
    } else {
      first->message.append("; ").append(session.error().message);
    }
  }
  OUTBOX_CHECK(first.has_value());
  return fail(std::move(*first));
}

}  // namespace outbox::sink::redis
