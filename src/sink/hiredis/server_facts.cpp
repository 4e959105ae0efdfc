#include "sink/hiredis/server_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace outbox::sink::hiredis {
namespace {

/// Redis' default, for servers that do not tell theirs.
constexpr std::size_t kBulkLimit = std::size_t{512} << 20U;
/// The longest command that hiredis before 1.0 can write; it is far longer than any event.
constexpr std::size_t kQueryLimit = std::size_t{1} << 30U;

/// The fields by their names in INFO. Valkey calls the mode server_mode.
constexpr std::pair<std::string_view, std::string ServerFacts::*> kFields[] = {
    {"redis_mode", &ServerFacts::mode},
    {"server_mode", &ServerFacts::mode},
    {"role", &ServerFacts::role},
    {"maxmemory", &ServerFacts::maxmemory},
    {"maxmemory_policy", &ServerFacts::maxmemory_policy},
    {"aof_enabled", &ServerFacts::aof_enabled},
};

}  // namespace

/// Reads lines "name:value" that end with CR LF; comments begin with #.
void read_info(std::string_view text, ServerFacts& facts) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    for (const auto& [name, member] : kFields) {
      if (name == line.substr(0, colon)) facts.*member = line.substr(colon + 1);
    }
  }
}

std::optional<Error> find_refusal(const ServerFacts& facts, std::string_view address,
                                  std::string_view sink) {
  if (facts.mode == "cluster") {
    return fail(Errc::unsupported,
                fmt::format("{}: {} is a node of a Redis Cluster, which is not supported", sink,
                            address),
                "use a server without cluster mode, or a proxy that hides the cluster")
        .value();
  }
  if (facts.mode == "sentinel") {
    return fail(
               Errc::unsupported,
               fmt::format("{}: {} is a Sentinel, not a server with data", sink, address),
               fmt::format(
                   "name the servers themselves in {}.url, with commas: the one that is the master is used",
                   sink))
        .value();
  }
  if (facts.role == "slave") {
    return fail(
               Errc::unavailable, Remedy::reconnect,
               fmt::format("{}: {} is a replica, which takes no writes", sink, address),
               fmt::format("{}.url must lead to the master, or name all servers with commas", sink))
        .value();
  }
  return std::nullopt;
}

std::vector<Weakness> find_weaknesses(const ServerFacts& facts, bool waits,
                                      const Purpose& purpose) {
  std::vector<Weakness> found;
  const bool evicts = !facts.maxmemory_policy.empty() && facts.maxmemory_policy != "noeviction";
  if (evicts && facts.maxmemory != "0") {
    const bool any_key = facts.maxmemory_policy.starts_with("allkeys");
    found.push_back({"maxmemory-policy " + facts.maxmemory_policy,
                     any_key ? purpose.eviction.any_key : purpose.eviction.expiring_keys,
                     "maxmemory-policy noeviction"});
  }
  if (facts.aof_enabled == "0") {
    found.push_back({"appendonly no",
                     waits ? "events are lost when the server and its replicas fail together"
                           : "events since the last snapshot are lost when the server fails",
                     "appendonly yes and appendfsync always"});
  } else if (!waits && !facts.appendfsync.empty() && facts.appendfsync != "always") {
    found.push_back({"appendfsync " + facts.appendfsync,
                     facts.appendfsync == "everysec"
                         ? "the events of the last second or two are lost when the machine fails"
                         : "the events of the last seconds are lost when the machine fails",
                     "appendfsync always, or " + purpose.sink + ".wait_replicas"});
  }
  return found;
}

std::size_t limit_bytes(const ServerFacts& facts, std::size_t configured) {
  const std::size_t most = std::min({facts.bulk_limit.value_or(kBulkLimit),
                                     facts.query_limit.value_or(kQueryLimit), kQueryLimit});
  return configured == 0 ? most : std::min(most, configured);
}

std::optional<MessageLimit> own_limit(std::size_t configured, std::string_view sink) {
  if (configured == 0) return std::nullopt;
  const std::string setting = fmt::format("{}.max_message_bytes", sink);
  return MessageLimit{setting, static_cast<std::int64_t>(configured), "raise " + setting};
}

std::optional<MessageLimit> find_limit(const ServerFacts& facts, std::size_t configured,
                                       std::string_view sink) {
  std::optional<MessageLimit> least = own_limit(configured, sink);
  const auto take = [&](const std::optional<std::size_t>& bytes, const char* name) {
    if (!bytes || (least && static_cast<std::size_t>(least->bytes) <= *bytes)) return;
    least = MessageLimit{fmt::format("{} of the server", name), static_cast<std::int64_t>(*bytes),
                         fmt::format("raise {} of the server", name)};
  };
  take(facts.bulk_limit, "proto-max-bulk-len");
  take(facts.query_limit, "client-query-buffer-limit");
  return least;
}

}  // namespace outbox::sink::hiredis
