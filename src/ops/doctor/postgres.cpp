// Findings about a PostgreSQL server: what the promises rest on.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/doctor/store.hpp"

namespace outbox::ops {
namespace {

using store::PostgresFacts;
using store::RoleFacts;

const char* to_string(RoleFacts::Kind kind) {
  switch (kind) {
    case RoleFacts::Kind::app: return "writes events";
    case RoleFacts::Kind::relay: return "delivers";
    case RoleFacts::Kind::reader: return "only reads";
    case RoleFacts::Kind::everybody: return "is every login";
  }
  return "";
}

/// "DELETE ON outbox.event, ..."
std::string joined(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, ", "));
}

/// The statements for rights, which differ in their object.
std::string statements(const char* verb, const char* to, const std::vector<std::string>& rights,
                       const std::string& role) {
  std::string text;
  for (const std::string& right : rights)
    text += fmt::format("{}{} {} {} {};", text.empty() ? "" : " ", verb, right, to, role);
  return text;
}

/// A login must keep what it is for other uses, and a relay gets one of its own.
constexpr const char* kOwnLogin = "CREATE ROLE outbox_relay1 LOGIN IN ROLE outbox_relay;";

std::string less_mighty(const RoleFacts& role) {
  if (role.owner && role.quoted != role.tables_owner)
    return fmt::format("REVOKE {} FROM {};", role.tables_owner, role.quoted);
  return role.login ? kOwnLogin : fmt::format("ALTER ROLE {} NOSUPERUSER;", role.quoted);
}

/// One with all rights, which the rights of its role cannot limit.
void judge_mighty(const RoleFacts& role, Findings& findings) {
  const char* const who = role.superuser ? "is a superuser" : "owns the tables of the outbox";
  findings.add(
      {.severity = Severity::warning,
       .check = "roles",
       .subject = role.name,
       .what = fmt::format("{} {} {}", role.login ? "login" : "role", role.name, who),
       .reason =
           "a mistake, or whoever takes it over, can change and delete events that were not delivered; a "
           "relay needs outbox_relay, a writer outbox_app",
       .command = less_mighty(role)});
}

/// True: something is wrong with it.
bool judge_role(const RoleFacts& role, Findings& findings) {
  if (!role.exists) {
    findings.add({.severity = Severity::note,
                  .check = "roles",
                  .subject = role.name,
                  .what = fmt::format("there is no role {}", role.name),
                  .reason = "rights must be given to each login by hand",
                  .command = fmt::format("CREATE ROLE {} NOLOGIN;", role.quoted)});
    return true;
  }
  if (role.superuser || role.owner) {
    judge_mighty(role, findings);
    return true;
  }
  if (!role.lacks.empty()) {
    findings.add(
        {.severity = Severity::error,
         .check = "roles",
         .subject = role.name,
         .what = fmt::format("{} lacks {}", role.name, joined(role.lacks)),
         .reason = fmt::format("it {}, and fails where it needs that", to_string(role.kind)),
         .command = statements("GRANT", "TO", role.lacks, role.quoted)});
  }
  if (!role.too_many.empty()) {
    findings.add(
        {.severity = Severity::warning,
         .check = "roles",
         .subject = role.name,
         .what = fmt::format("{} has {}", role.name, joined(role.too_many)),
         .reason = fmt::format(
             "it {}: it does not need that, and a mistake can read, change or delete events",
             to_string(role.kind)),
         .command = statements("REVOKE", "FROM", role.too_many, role.quoted)});
  }
  return !role.lacks.empty() || !role.too_many.empty();
}

}  // namespace

void judge(const store::ServerFacts& server, const StoreName& name, Findings& findings) {
  const auto add = [&](Severity severity, std::string check, std::string what, std::string reason,
                       std::string command) {
    findings.add(
        {severity, std::move(check), {}, std::move(what), std::move(reason), std::move(command)});
  };
  if (server.standby) {
    add(Severity::error, "store", "the server is a standby, which cannot be written to",
        "a relay that connects here does not start",
        "add target_session_attrs=read-write to store.url");
  } else {
    findings.ok("store", fmt::format("{} answers: PostgreSQL {}, login {}", name.shown,
                                     server.version, server.login));
  }
  if (!server.fsync || !server.full_page_writes) {
    add(Severity::error, "durability",
        fmt::format("{} is off", server.fsync ? "full_page_writes" : "fsync"),
        "when the machine fails, committed events are lost or the whole database is",
        fmt::format("ALTER SYSTEM SET {} = on; SELECT pg_reload_conf();",
                    server.fsync ? "full_page_writes" : "fsync"));
  } else if (server.synchronous_commit == "off") {
    add(Severity::note, "durability", "synchronous_commit is off",
        "a crash of the server takes back the last commits, with their events: none of them was delivered",
        fmt::format("ALTER DATABASE {} SET synchronous_commit = on;", identifier(server.database)));
  } else {
    findings.ok("durability", "commits are on disk: fsync, full_page_writes, synchronous_commit");
  }
  if (server.superuser) {
    add(Severity::note, "roles", fmt::format("this login, {}, is a superuser", server.login),
        "as a relay's it can change and delete events; give relays a login with the role outbox_relay",
        kOwnLogin);
  }
}

void judge(const PostgresFacts& facts, const store::LogFacts& log, Findings& findings) {
  const auto complain = [&](std::string check, std::string what, std::string reason,
                            std::string command) {
    findings.add({Severity::error,
                  std::move(check),
                  {},
                  std::move(what),
                  std::move(reason),
                  std::move(command)});
  };
  if (log.own_lineage) {
    findings.ok("lineage", "transaction ids and snapshots are of this database");
  } else {
    complain(
        "lineage",
        "its transaction ids and snapshots are of another database (dump and restore, logical replication)",
        "nothing can be delivered from this copy",
        "outbox doctor --repair-lineage, once the relays of the original are stopped for good");
  }
  if (log.indexes) {
    findings.ok("indexes", "event_by_seq and event_by_xid are there");
  } else {
    complain(
        "indexes",
        "the index event_by_seq or event_by_xid of the table event is missing or invalid",
        "no relay starts: each of its reads would be of the whole log. An invalid one must be dropped first",
        fmt::format(
            "CREATE INDEX IF NOT EXISTS event_by_seq ON {0}.event (seq); CREATE INDEX IF NOT EXISTS event_by_xid ON {0}.event "
            "(xid, seq);",
            facts.schema));
  }
  if (log.row_security) {
    complain(
        "row_security", "row level security is on for a table of the outbox",
        "it may hide events, which would not be delivered",
        fmt::format(
            "DO $$ DECLARE t regclass; BEGIN FOR t IN SELECT oid FROM pg_class WHERE relnamespace = '{}'::regnamespace "
            "AND relrowsecurity LOOP EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', t); END LOOP; END $$;",
            facts.schema));
  }
}

void judge(const PostgresFacts& facts, const store::SequenceFacts& sequence, Findings& findings) {
  if (sequence.cache == 1 && sequence.increment > 0 && !sequence.cycles)
    return findings.ok("sequence", "event_seq numbers in order");
  std::string what = "event_seq does not number in order";
  if (sequence.cache != 1) what = fmt::format("event_seq has CACHE {}", sequence.cache);
  if (sequence.increment <= 0) what = fmt::format("event_seq has INCREMENT {}", sequence.increment);
  findings.add(
      {.severity = Severity::error,
       .check = "sequence",
       .subject = {},
       .what = std::move(what),
       .reason =
           "sessions number their events out of order: those of one key are delivered in the wrong order, "
           "and some can be passed over",
       .command =
           fmt::format("ALTER SEQUENCE {}.event_seq INCREMENT 1 NO CYCLE CACHE 1;", facts.schema)});
}

void judge(const PostgresFacts&, const std::vector<RoleFacts>& roles, Findings& findings) {
  bool sound = true;
  for (const RoleFacts& role : roles) sound = !judge_role(role, findings) && sound;
  if (sound)
    findings.ok("roles",
                "outbox_app, outbox_relay and outbox_reader have the rights that they need");
}

void judge(const PostgresFacts& facts, const store::WakeFacts& wake, Findings& findings) {
  const auto add = [&](Severity severity, std::string what, std::string reason,
                       std::string command) {
    findings.add({severity, "wake_up", {}, std::move(what), std::move(reason), std::move(command)});
  };
  if (wake.queue_permille > 500) {
    add(Severity::warning,
        fmt::format("the server's queue of notifications is {} % full", wake.queue_permille / 10),
        "when it is full, commits that notify fail, those of writers among them; a session that listens is in a long "
        "transaction",
        "SELECT pid, application_name, xact_start FROM pg_stat_activity WHERE xact_start IS NOT NULL ORDER BY "
        "xact_start;");
  }
  if (facts.server && facts.server->pooler) {
    return add(
        Severity::note, "a pooler between this program and the server forbids the armed wake-up",
        "relays poll instead: an event may wait for relay.idle_poll, and an idle relay asks more often",
        "give relays a store.url with the address of the server itself");
  }
  if (facts.server && facts.server->standby) return;
  if (!wake.notified) {
    return add(Severity::warning, "a notification did not come back within 3 s",
               "relays learn of events by polling only: an event may wait for relay.idle_poll",
               "SELECT * FROM pg_stat_activity WHERE wait_event = 'NotifyQueue';");
  }
  findings.ok("wake_up", wake.armed ? "a relay is armed, and is woken by commits"
                                    : "notifications work; no relay sleeps at the moment");
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
        {.severity = Severity::warning,
         .check = "connections",
         .subject = {},
         .what = fmt::format("{} of {} connections are in use ({})", limit.used, limit.allowed,
                             limit.name),
         .reason =
             "a relay that has to connect again, or to take over, may get none; one uses about ten",
         .command = limit.command});
  }
  if (roomy)
    findings.ok("connections",
                fmt::format("{} of {} are in use", connections.used, connections.allowed));
}

}  // namespace outbox::ops
