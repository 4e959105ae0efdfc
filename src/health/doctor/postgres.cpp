// Findings about a PostgreSQL server: what the promises rest on.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "health/doctor/store.hpp"

namespace outbox::health {
namespace {

using store::PostgresFacts;
using store::RoleFacts;

/// The login is left as it is, since it may have other uses; a relay gets a login of its own.
constexpr const char* kOwnLogin = "CREATE ROLE outbox_relay1 LOGIN IN ROLE outbox_relay;";

}  // namespace

void judge(const store::ServerFacts& server, const StoreName& name, Findings& findings) {
  if (server.standby) {
    findings.add(Severity::error, "store", "",
                 "the server is a standby, which cannot be written to",
                 "a relay that connects here does not start",
                 "add target_session_attrs=read-write to store.url");
  } else {
    findings.ok("store", fmt::format("{} answers: PostgreSQL {}, login {}", name.shown,
                                     server.version, server.login));
  }
  if (!server.fsync || !server.full_page_writes) {
    findings.add(Severity::error, "durability", "",
                 fmt::format("{} is off", server.fsync ? "full_page_writes" : "fsync"),
                 "when the machine fails, committed events are lost or the whole database is",
                 fmt::format("ALTER SYSTEM SET {} = on; SELECT pg_reload_conf();",
                             server.fsync ? "full_page_writes" : "fsync"));
  } else if (server.synchronous_commit == "off") {
    findings.add(
        Severity::note, "durability", "", "synchronous_commit is off",
        "a crash of the server takes back the last commits, with their events: none of them was delivered",
        fmt::format("ALTER DATABASE {} SET synchronous_commit = on;", identifier(server.database)));
  } else {
    findings.ok("durability", "commits are on disk: fsync, full_page_writes, synchronous_commit");
  }
  if (server.superuser) {
    findings.add(
        Severity::note, "roles", "", fmt::format("this login, {}, is a superuser", server.login),
        "as a relay's it can change and delete events; give relays a login with the role outbox_relay",
        kOwnLogin);
  }
}

void judge(const PostgresFacts&, const store::LogFacts& log, Findings& findings) {
  if (log.own_lineage) {
    findings.ok("lineage", "transaction ids and snapshots are of this database");
  } else {
    findings.add(
        Severity::error, "lineage", "",
        "its transaction ids and snapshots are of another database (dump and restore, logical replication)",
        "nothing can be delivered from this copy",
        "once the relays of the original are stopped for good: outbox doctor --repair-lineage");
  }
}

void judge(const PostgresFacts&, const std::vector<store::SequenceFacts>& behind,
           Findings& findings) {
  for (const store::SequenceFacts& one : behind) {
    findings.add(
        Severity::error, "sequence", one.name,
        fmt::format("stands at {}, and {} is in use", one.last, one.used),
        "numbers come twice: what gets an old one is taken for delivered or for older than it is",
        fmt::format("SELECT setval({}, {});", one.quoted_name, one.used));
  }
  if (behind.empty()) findings.ok("sequence", "no number can come twice");
}

void judge(const PostgresFacts&, const std::vector<RoleFacts>& roles, Findings& findings) {
  for (const RoleFacts& role : roles) {
    findings.add(
        role.exists ? Severity::warning : Severity::note, "roles", role.name, role.what,
        role.exists
            ? "it does not need that: a mistake, or whoever takes it over, can read, change or "
              "delete events that were not delivered"
            : "its rights must be given to each login by hand: those that grant_to() gives in "
              "`outbox migrate --print`",
        role.statement + ";");
  }
  if (!findings.complains("roles"))
    findings.ok("roles",
                "none is a superuser or has further rights, itself or as a member of another one");
}

void judge(const PostgresFacts& facts, const store::WakeFacts& wake, Findings& findings) {
  if (wake.queue_permille > 500) {
    findings.add(
        Severity::warning, "wake_up", "",
        fmt::format("the server's queue of notifications is {} % full", wake.queue_permille / 10),
        "when it is full, commits that notify fail, those of writers among them; a session that listens is in a long "
        "transaction",
        "SELECT pid, application_name, xact_start FROM pg_stat_activity WHERE xact_start IS NOT NULL ORDER BY "
        "xact_start;");
  }
  if (facts.server && facts.server->pooler) {
    return findings.add(
        Severity::note, "wake_up", "",
        "a pooler between this program and the server forbids the armed wake-up",
        "relays poll instead: an event may wait for relay.idle_poll, and an idle relay asks more often",
        "give relays a store.url with the address of the server itself");
  }
  if (facts.server && facts.server->standby) return;
  if (!wake.notified) {
    return findings.add(
        Severity::warning, "wake_up", "", "a notification did not come back within 3 s",
        "relays learn of events by polling only: an event may wait for relay.idle_poll",
        "SELECT * FROM pg_stat_activity WHERE wait_event = 'NotifyQueue';");
  }
  findings.ok("wake_up", wake.armed ? "a relay is armed, and is woken by commits"
                                    : "notifications work; no relay sleeps at the moment");
}

void judge_standbys(const RelayOptions& relay, const PostgresFacts& facts, Findings& findings) {
  if (relay.publish_after != PublishAfter::replicated) return;
  if (!facts.standbys) return findings.not_checked("standbys", facts.standbys.error());
  const auto& names = relay.replicated_by;
  std::size_t streaming = 0;
  std::string seen;
  bool hidden = false;
  for (const store::StandbyFacts& one : *facts.standbys) {
    hidden = hidden || one.state.empty();
    const bool counts =
        names.empty() || std::find(names.begin(), names.end(), one.name) != names.end();
    if (counts && one.state == "streaming") ++streaming;
    seen += fmt::format("{}{} ({}, {} bytes behind)", seen.empty() ? "" : ", ", one.name, one.state,
                        one.behind);
  }
  if (hidden) {
    return findings.add(
        Severity::error, "standbys", "", "this login may not see how far standbys are",
        "with relay.publish_after = \"replicated\" a relay that has no more rights delivers nothing",
        "GRANT pg_monitor TO outbox_relay;");
  }
  const std::size_t wanted = names.empty() ? relay.replicated : names.size();
  if (streaming < wanted) {
    return findings.add(
        relay.replicated_timeout.count() > 0 ? Severity::warning : Severity::error, "standbys", "",
        fmt::format("events wait for {} of them, and {} of those are connected: {}", wanted,
                    streaming, seen.empty() ? "none is" : seen),
        relay.replicated_timeout.count() > 0
            ? "after relay.replicated_timeout events go out without them, and a failover may take them back"
            : "no event is delivered until they are",
        "SELECT application_name, state, sync_state, flush_lsn FROM pg_stat_replication;");
  }
  findings.ok("standbys", fmt::format("events wait for {} of them: {}", wanted, seen));
}

void judge(const PostgresFacts& facts, const store::ConnectionFacts& connections,
           Findings& findings) {
  struct Limit {
    const char* name;
    std::int64_t allowed;
    std::int64_t used;
    std::string command;
  };
  const auto& [allowed, used, role_limit, role_used, database_limit, database_used] = connections;
  const std::string login = identifier(facts.server ? facts.server->login : "");
  const std::string database = identifier(facts.server ? facts.server->database : "");
  const std::array limits{
      Limit{"max_connections, which a restart of the server changes", allowed, used,
            fmt::format("ALTER SYSTEM SET max_connections = {};", allowed * 2)},
      Limit{"the limit of this login", role_limit, role_used,
            fmt::format("ALTER ROLE {} CONNECTION LIMIT -1;", login)},
      Limit{"the limit of this database", database_limit, database_used,
            fmt::format("ALTER DATABASE {} CONNECTION LIMIT -1;", database)}};
  bool roomy = true;
  for (const Limit& limit : limits) {
    constexpr std::int64_t kRelay = 10;
    const std::int64_t left = limit.allowed - limit.used;
    if (limit.allowed < 0 || left >= std::max(kRelay, limit.allowed / 10)) continue;
    roomy = false;
    findings.add(
        Severity::warning, "connections", "",
        fmt::format("{} of {} connections are in use ({})", limit.used, limit.allowed, limit.name),
        "a relay that has to connect again, or to take over, may get none; one uses about ten",
        limit.command);
  }
  if (roomy)
    findings.ok("connections",
                fmt::format("{} of {} are in use", connections.used, connections.allowed));
}

}  // namespace outbox::health
