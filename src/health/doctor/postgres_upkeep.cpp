// Findings about a PostgreSQL server: what becomes worse with time.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "health/doctor/store.hpp"

namespace outbox::health {
namespace {

using store::HolderFacts;
using store::PostgresFacts;

constexpr std::int64_t kMinuteUs = 60'000'000;
/// A transaction that reaches this age is rarely meant to be so old.
constexpr std::int64_t kLongUs = 15 * kMinuteUs;
constexpr std::int64_t kManyXids = 10'000'000;
/// The server refuses to write at 2^31 less 3 million.
constexpr std::int64_t kWraparound = (std::int64_t{1} << 31) - 3'000'000;
constexpr std::int64_t kManyDead = 100'000;
constexpr std::int64_t kMuchWal = std::int64_t{10} << 30;
/// The limit for a slot that nobody reads is lower: the WAL that it keeps can only grow.
constexpr std::int64_t kMuchUnusedWal = std::int64_t{1} << 30;

/// The login as a statement names it.
std::string describe_login(const PostgresFacts& facts) {
  return facts.server ? identifier(facts.server->login) : "CURRENT_USER";
}

std::string describe_age(const HolderFacts& holder) {
  const std::string xids = fmt::format("{} transaction ids ago", holder.xids);
  if (!holder.age_us) return xids;
  return fmt::format("{} ago ({})", about(std::chrono::microseconds(*holder.age_us)), xids);
}

std::string who(const HolderFacts& holder) {
  switch (holder.kind) {
    case HolderFacts::Kind::session:
      return fmt::format("pid {} (application {}, login {}{}{})", holder.pid,
                         holder.name.empty() ? "unnamed" : holder.name, holder.login,
                         holder.state.empty() ? "" : ", ", holder.state);
    case HolderFacts::Kind::standby:
      return fmt::format("a standby by hot_standby_feedback (pid {}, application {})", holder.pid,
                         holder.name);
    case HolderFacts::Kind::prepared:
      return fmt::format("prepared transaction {} of {} in database {}", holder.quoted_name,
                         holder.login, holder.state);
    case HolderFacts::Kind::slot:
      return fmt::format("{} replication slot {}", holder.active ? "the" : "the unused",
                         holder.name);
  }
  return "";
}

/// A consumer that only stands still goes on where it stopped, as long as its slot is there.
std::string drop_unused(const std::string& quoted_name) {
  return fmt::format("if its consumer is gone for good: SELECT pg_drop_replication_slot({});",
                     quoted_name);
}

std::string describe_end(const HolderFacts& holder) {
  switch (holder.kind) {
    case HolderFacts::Kind::session:
      return fmt::format("SELECT pg_terminate_backend({});", holder.pid);
    case HolderFacts::Kind::standby:
      return "on the standby, end its long query: SELECT pg_cancel_backend(PID);";
    case HolderFacts::Kind::prepared:
      // Only its transaction manager, or a person, knows which of the two is right. Either works
      // only in the database of the transaction.
      return fmt::format(
          "in database {0}, as was decided: COMMIT PREPARED {1}; or ROLLBACK PREPARED {1};",
          holder.state, holder.quoted_name);
    case HolderFacts::Kind::slot: return drop_unused(holder.quoted_name);
  }
  return "";
}

bool is_old(const HolderFacts& holder) {
  return holder.age_us.value_or(0) >= kLongUs || holder.xids >= kManyXids ||
         (holder.kind == HolderFacts::Kind::slot && !holder.active);
}

void judge_wraparound(const store::VacuumFacts& vacuum, Findings& findings) {
  const std::int64_t age = std::max(vacuum.database_age, vacuum.database_multi_age);
  const std::int64_t left = kWraparound - age;
  // A database that autovacuum cares for stays a little above the age at which it begins.
  const std::int64_t limit = std::max<std::int64_t>(vacuum.freeze_max_age * 2, 400'000'000);
  const bool error = left < 100'000'000;
  if (age < limit && !error) {
    return findings.ok("wraparound",
                       fmt::format("{} million transactions are left", left / 1'000'000));
  }
  findings.add(
      error ? Severity::error : Severity::warning, "wraparound", "",
      fmt::format(
          "the oldest transaction id of this database is {} million old: {} million are left",
          age / 1'000'000, std::max<std::int64_t>(left, 0) / 1'000'000),
      "when none is left the server takes no writes: no event can be enqueued or settled. Something "
      "keeps VACUUM from freezing rows: see the finding about snapshots",
      "VACUUM (FREEZE);");
}

/// Judges how much WAL a replication slot keeps.
void judge_slot(const store::SlotFacts& slot, Findings& findings) {
  if (slot.wal_status == "lost") {
    return findings.add(
        Severity::warning, "wal", slot.name,
        fmt::format("replication slot {} has lost WAL that it needed", slot.name),
        "events are not affected: it keeps nothing any more, and its consumer must begin anew",
        fmt::format("SELECT pg_drop_replication_slot({});", slot.quoted_name));
  }
  const bool unused = !slot.active;
  const bool much = slot.bytes >= (unused ? kMuchUnusedWal : kMuchWal);
  if (slot.bytes == 0 || (!much && !unused)) return;
  findings.add(
      much ? Severity::warning : Severity::note, "wal", slot.name,
      fmt::format("replication slot {} keeps {} of WAL{}", slot.name, about_bytes(slot.bytes),
                  unused ? ", and nobody uses it" : ""),
      unused && !much
          ? "it keeps all that is written from now on; when the disk of the WAL is full the server stops, and no event can be "
            "enqueued or delivered"
          : "when the disk of the WAL is full the server stops: no event can be enqueued or delivered",
      unused ? drop_unused(slot.quoted_name)
             : "let its consumer catch up, or limit max_slot_wal_keep_size");
}

}  // namespace

void judge(const PostgresFacts& facts, const store::PartitionFacts& partitions,
           Findings& findings) {
  const std::string command = fmt::format("SELECT {}.make_partitions();", facts.schema);
  const std::int64_t ahead = partitions.end.value_or(0) - partitions.next_xid;
  const double hours = static_cast<double>(ahead) /
                       static_cast<double>(std::max<std::int64_t>(partitions.xids_per_h, 1));
  if (ahead <= 0) {
    findings.add(
        Severity::error, "partitions", "",
        "there is no partition for the events of new transactions",
        "they go to the default partition, which is never removed as a whole and is read under a lock for each "
        "partition that is added: writers then wait. Relays add partitions: does none run?",
        command);
  } else if (ahead < partitions.width) {
    findings.add(
        Severity::warning, "partitions", "",
        fmt::format("the partitions that are there suffice for {:.1f} h ({} transaction ids)",
                    hours, ahead),
        "relays add some for a day ahead each minute: either none runs, or something blocks them (see their log)",
        command);
  } else {
    findings.ok("partitions",
                fmt::format("{} of them, enough for {:.0f} h", partitions.count, hours));
  }
  if (partitions.default_used) {
    findings.add(
        Severity::warning, "partitions", "", "events are in the default partition",
        "they are removed by deleting rows, and each new partition has to look at all of them under a lock; this "
        "passes once they are delivered and removed (outbox prune)",
        command);
  }
}

void judge(const PostgresFacts& facts, const store::VacuumFacts& vacuum, Findings& findings) {
  const char* const kGrows =
      "rows that relays update are never cleaned: their tables grow without end, and reads become slow";
  if (!vacuum.autovacuum || !vacuum.track_counts) {
    const char* const off = vacuum.autovacuum ? "track_counts" : "autovacuum";
    findings.add(Severity::warning, "autovacuum", "", fmt::format("{} is off in this server", off),
                 kGrows, fmt::format("ALTER SYSTEM SET {} = on; SELECT pg_reload_conf();", off));
  }
  for (const store::TableFacts& table : vacuum.tables) {
    const std::string name = fmt::format("{}.{}", facts.schema, identifier(table.name));
    if (!table.autovacuum) {
      findings.add(Severity::warning, "autovacuum", table.name,
                   fmt::format("autovacuum is off for the table {}", table.name), kGrows,
                   fmt::format("ALTER TABLE {} RESET (autovacuum_enabled);", name));
    } else if (table.dead > kManyDead && table.dead > table.live * 4) {
      findings.add(
          Severity::warning, "autovacuum", table.name,
          fmt::format("the table {} has {} dead rows beside {} live ones", table.name, table.dead,
                      table.live),
          "it grows, and reads become slow: an old snapshot or too slow an autovacuum keeps them",
          fmt::format("VACUUM {};", name));
    }
  }
  if (!findings.complains("autovacuum"))
    findings.ok("autovacuum", "on for every table of the outbox");
  judge_wraparound(vacuum, findings);
}

void judge(const PostgresFacts& facts, const std::vector<HolderFacts>& holders,
           Findings& findings) {
  const bool sees = facts.server && facts.server->sees_sessions;
  if (!sees) {
    findings.add(Severity::note, "snapshot", "",
                 "since when other logins' transactions are open is not known",
                 "this login has not the right to ask; their age in transaction ids is known",
                 fmt::format("GRANT pg_read_all_stats TO {};", describe_login(facts)));
  }
  bool any = false;
  for (const HolderFacts& holder : holders) {
    if (!is_old(holder)) continue;
    any = true;
    findings.add(
        Severity::warning, "snapshot",
        holder.pid > 0 ? fmt::format("pid {}", holder.pid) : holder.name,
        fmt::format("{} holds a snapshot or transaction that began {}", who(holder),
                    describe_age(holder)),
        "VACUUM keeps every row that was deleted or changed since: the tables of the outbox grow; history "
        "cannot be removed while it writes, and its own events are delivered only after its commit",
        describe_end(holder));
  }
  if (any) return;
  if (holders.empty()) return findings.ok("snapshot", "no transaction is open");
  findings.ok("snapshot", fmt::format("the oldest is that of {}, begun {}", who(holders.front()),
                                      describe_age(holders.front())));
}

void judge_disk(const PostgresFacts& facts, Findings& findings) {
  if (facts.sizes) {
    const auto& [events, progress, parked, rest] = *facts.sizes;
    findings.ok("disk", fmt::format("events {}, settlements {}, parked events {}, the rest {}",
                                    about_bytes(events), about_bytes(progress), about_bytes(parked),
                                    about_bytes(rest)));
  } else if (facts.version && facts.version->version == facts.version->wanted) {
    findings.not_checked("disk", facts.sizes.error());
  }
  if (!facts.wal_bytes) {
    Error error = facts.wal_bytes.error();
    if (error.code == Errc::permission_denied)
      error.hint = fmt::format("GRANT pg_monitor TO {};", describe_login(facts));
    findings.not_checked("wal", error);
  } else {
    findings.ok("wal", fmt::format("the write-ahead log has {}", about_bytes(*facts.wal_bytes)));
  }
  if (!facts.slots) return findings.not_checked("wal", facts.slots.error());
  for (const store::SlotFacts& slot : *facts.slots) judge_slot(slot, findings);
}

}  // namespace outbox::health
