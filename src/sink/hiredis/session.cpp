#include "sink/hiredis/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "sink/hiredis/error_map.hpp"

namespace outbox::sink::hiredis {
namespace {

using Words = std::initializer_list<std::string_view>;

std::optional<std::size_t> parse_number(std::string_view text) {
  std::size_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The steps after connecting. Each step waits for its answer.
class Opening {
 public:
  Opening(Connection& connection, const ServerOptions& options, const Purpose& purpose,
          Connection::TimePoint until)
      : connection_(connection), options_(options), purpose_(purpose), until_(until) {}

  [[nodiscard]] Result<Session> run(const Endpoint& endpoint) {
    Session session;
    OUTBOX_TRY(ServerFacts facts, enter(endpoint));
    OUTBOX_TRY(look_at_configuration(facts));
    session.inspection = make_inspection(endpoint, facts);
    session.most_bytes = limit_bytes(facts, options_.max_message_bytes);
    OUTBOX_TRY(const Reply hash, succeed({"SCRIPT", "LOAD", purpose_.script}));
    session.script_hash = to_text(*hash);
    OUTBOX_TRY(try_writing());
    OUTBOX_TRY(count_replicas());
    return session;
  }

  /// Logs in. Fails if the server is no master, or a node of a cluster.
  [[nodiscard]] Result<ServerFacts> enter(const Endpoint& endpoint) {
    OUTBOX_TRY(log_in(endpoint));
    OUTBOX_TRY(select(endpoint.path));
    OUTBOX_TRY(ServerFacts facts, look());
    if (auto refused = find_refusal(facts, connection_.address(), purpose_.sink))
      return fail(std::move(*refused));
    return facts;
  }

 private:
  [[nodiscard]] Inspection make_inspection(const Endpoint& endpoint,
                                           const ServerFacts& facts) const {
    const bool waits = options_.wait_replicas > 0;
    const bool synced = facts.aof_enabled == "1" && facts.appendfsync == "always";
    Inspection found{.destination = connection_.address(),
                     .acked = synced ? "the server has it on disk" : "the server has it in memory",
                     .duplicates = purpose_.duplicates,
                     .order = purpose_.order,
                     .weaknesses = find_weaknesses(facts, waits, purpose_),
                     .largest = find_limit(facts, options_.max_message_bytes, purpose_.sink),
                     .own = own_limit(options_.max_message_bytes, purpose_.sink)};
    if (waits) found.acked += fmt::format(" and {} replicas have it", options_.wait_replicas);
    if (endpoint.scheme == "redis" && !endpoint.is_loopback())
      found.weaknesses.push_back(in_clear("rediss:// in " + purpose_.sink + ".url"));
    found.weaknesses.insert(found.weaknesses.end(), purpose_.weaknesses.begin(),
                            purpose_.weaknesses.end());
    return found;
  }

  [[nodiscard]] Result<Reply> ask(Words words) { return connection_.ask(words, until_); }

  /// Asks, and turns an error reply into an error.
  [[nodiscard]] Result<Reply> succeed(Connection::Arguments words) {
    OUTBOX_TRY(Reply reply, connection_.ask(words, until_));
    if (reply->type == REDIS_REPLY_ERROR)
      return fail(describe(to_text(*reply), connection_.address(), purpose_));
    return reply;
  }
  [[nodiscard]] Result<Reply> succeed(Words words) {
    return succeed(Connection::Arguments(words.begin(), words.size()));
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

  /// Collects the facts. A fact stays unknown if this user may not use its command, or a managed
  /// service has removed it.
  [[nodiscard]] Result<ServerFacts> look() {
    ServerFacts facts;
    OUTBOX_TRY(const Reply info, ask({"INFO"}));
    const std::string_view code =
        info->type == REDIS_REPLY_ERROR ? parse_code(to_text(*info)) : std::string_view();
    if (!code.empty() && code != "NOPERM" && code != "ERR")
      return fail(describe(to_text(*info), connection_.address(), purpose_));
    if (code.empty()) read_info(to_text(*info), facts);
    return facts;
  }

  [[nodiscard]] Status look_at_configuration(ServerFacts& facts) {
    OUTBOX_TRY(facts.appendfsync, configured("appendfsync"));
    OUTBOX_TRY(const std::string bulk, configured("proto-max-bulk-len"));
    facts.bulk_limit = parse_number(bulk);
    OUTBOX_TRY(const std::string query, configured("client-query-buffer-limit"));
    facts.query_limit = parse_number(query);
    return {};
  }

  /// Asks for one name at a time, because several in one CONFIG GET need Redis 7.
  [[nodiscard]] Result<std::string> configured(std::string_view name) {
    if (!config_allowed_) return std::string();
    OUTBOX_TRY(const Reply reply, ask({"CONFIG", "GET", name}));
    config_allowed_ = reply->type != REDIS_REPLY_ERROR;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) return std::string();
    return std::string(to_text(*reply->element[1]));
  }

  [[nodiscard]] Status try_writing() {
    if (purpose_.trial.empty()) return {};
    const std::vector<std::string_view> words(purpose_.trial.begin(), purpose_.trial.end());
    const Result<Reply> reply = succeed(words);
    return reply ? Status() : Status(tl::unexpected(reply.error()));
  }

  /// Fails while a replica is missing: else a batch would be sent and be in doubt again and again.
  [[nodiscard]] Status count_replicas() {
    if (options_.wait_replicas == 0) return {};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until_ - std::chrono::steady_clock::now());
    const auto limit = std::clamp(left / 2, std::chrono::milliseconds(1), options_.wait_timeout);
    const std::string wanted = std::to_string(options_.wait_replicas);
    OUTBOX_TRY(const Reply reply, ask({"WAIT", wanted, std::to_string(limit.count())}));
    return check_replicas(*reply, options_.wait_replicas, connection_.address(), purpose_);
  }

  Connection& connection_;
  const ServerOptions& options_;
  const Purpose& purpose_;
  const Connection::TimePoint until_;
  bool config_allowed_{true};
};

Result<std::unique_ptr<Connection>> connect(const ServerOptions& options, const Purpose& purpose,
                                            const Endpoint& endpoint, Connection::TimePoint until) {
  return Connection::open(endpoint, options.tls,
                          {.sink = purpose.sink, .until = until, .silence = options.deadline});
}

Result<Session> open_one(const ServerOptions& options, const Purpose& purpose,
                         const Endpoint& endpoint, Connection::TimePoint until) {
  OUTBOX_TRY(std::unique_ptr<Connection> connection, connect(options, purpose, endpoint, until));
  OUTBOX_TRY(Session session, Opening(*connection, options, purpose, until).run(endpoint));
  session.connection = std::move(connection);
  return session;
}

Result<std::unique_ptr<Connection>> enter_one(const ServerOptions& options, const Purpose& purpose,
                                              const Endpoint& endpoint,
                                              Connection::TimePoint until) {
  OUTBOX_TRY(std::unique_ptr<Connection> connection, connect(options, purpose, endpoint, until));
  OUTBOX_TRY(Opening(*connection, options, purpose, until).enter(endpoint));
  return connection;
}

/// Tries the addresses in their order, each with its share of the time that is left.
template <class Opened>
Result<Opened> open_first(const ServerOptions& options, const Purpose& purpose,
                          Result<Opened> (*open)(const ServerOptions&, const Purpose&,
                                                 const Endpoint&, Connection::TimePoint)) {
  const auto until = std::chrono::steady_clock::now() + options.connect_timeout;
  std::optional<Error> first;
  auto left = static_cast<int>(options.endpoints.size());
  for (const Endpoint& endpoint : options.endpoints) {
    const auto at = std::chrono::steady_clock::now();
    auto opened = open(options, purpose, endpoint, at + (until - at) / left--);
    if (opened) return opened;
    if (!first) {
      first = std::move(opened.error());
    } else {
      first->message.append("; ").append(opened.error().message);
    }
  }
  OUTBOX_CHECK(first.has_value());
  return fail(std::move(*first));
}

}  // namespace

Status check_replicas(const redisReply& wait, std::size_t wanted, std::string_view address,
                      const Purpose& purpose) {
  if (wait.type != REDIS_REPLY_INTEGER) return fail(describe(to_text(wait), address, purpose));
  if (wait.integer >= 0 && static_cast<std::size_t>(wait.integer) >= wanted) return {};
  return fail(
      Errc::unavailable, Remedy::retry_call,
      fmt::format("{0}: {1}: {2} replicas have confirmed in time, {0}.wait_replicas is {3}",
                  purpose.sink, address, wait.integer, wanted),
      fmt::format("check the replicas and their lag; events in doubt are sent again, and are there "
                  "twice {}",
                  purpose.duplicates));
}

Result<Session> open_session(const ServerOptions& options, const Purpose& purpose) {
  return open_first(options, purpose, open_one);
}

Result<std::unique_ptr<Connection>> open_connection(const ServerOptions& options,
                                                    const Purpose& purpose) {
  return open_first(options, purpose, enter_one);
}

}  // namespace outbox::sink::hiredis
