// Findings about a SQLite file.
#include <fmt/format.h>

#include <algorithm>

#include "health/doctor/store.hpp"

namespace outbox::health {
namespace {

using store::FileFacts;
using store::SqliteFacts;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kLargeWal = 256 * kMiB;
constexpr std::int64_t kLittleDisk = 1024 * kMiB;
constexpr std::int64_t kNoDisk = 64 * kMiB;
constexpr std::int64_t kFullDisk = kMiB;
constexpr std::uint32_t kOthersWrite = 02;
constexpr std::uint32_t kOthersRead = 04;

/// Judges a file beside the database. If a program of another user left it, it may keep others out.
void judge_companion(const FileFacts& database, const FileFacts& file, Findings& findings) {
  if (file.path.ends_with("-journal")) {
    if (file.bytes == 0) return;
    return findings.add(
        Severity::error, "files", "", fmt::format("there is a rollback journal: {}", file.path),
        "a program uses this file without WAL, or died while it did; what SQLite finds in a journal it writes back "
        "into the database",
        "stop all programs that use the database; then sqlite3 " + shell_word(database.path) +
            " 'PRAGMA journal_mode = WAL'");
  }
  if (file.writable && file.owner == database.owner) return;
  findings.add(
      file.writable ? Severity::warning : Severity::error, "files", "",
      fmt::format("{} belongs to user {}, the database to user {}{}", file.path, file.owner,
                  database.owner, file.writable ? "" : ", and this user cannot write it"),
      "a program ran as another user: those that run as the database's owner cannot write, and enqueue nothing",
      fmt::format("chown --reference={0} {1}", shell_word(database.path), shell_word(file.path)));
}

void judge_files(const std::vector<FileFacts>& files, Findings& findings) {
  const FileFacts& database = files.front();
  const std::string name = shell_word(database.path);
  if ((database.mode & kOthersWrite) != 0) {
    findings.add(Severity::warning, "files", "", database.path + " can be written by every user",
                 "any of them can change or delete events that were not delivered",
                 "chmod o-w " + name);
  } else if ((database.mode & kOthersRead) != 0) {
    findings.add(Severity::note, "files", "", database.path + " can be read by every user",
                 "payloads of events can be read on this machine", "chmod o-rwx " + name);
  }
  if (database.links > 1) {
    findings.add(
        Severity::error, "files", "",
        fmt::format("{} has {} names (hard links)", database.path, database.links),
        "programs that open it by another name use another -wal: the file is corrupted, and events are lost",
        fmt::format("find / -xdev -samefile {} 2>/dev/null, and keep one of them", name));
  }
  for (std::size_t i = 1; i < files.size(); ++i) judge_companion(database, files[i], findings);
  if (!findings.complains("files")) findings.ok("files", "only its owner writes the database");
}

void judge_wal(const SqliteFacts& facts, Findings& findings) {
  if (facts.wal_reset_bug) {
    findings.add(
        Severity::note, "library", "",
        fmt::format("SQLite {} can corrupt a file when two connections checkpoint at once",
                    facts.library),
        "relays leave checkpoints to the application because of it; the application's own SQLite counts, too",
        "install SQLite 3.51.3 or newer");
  } else {
    findings.ok("library", "SQLite " + facts.library);
  }
  if (!facts.files) return;
  for (const FileFacts& file : *facts.files) {
    if (!file.path.ends_with("-wal") || file.bytes < kLargeWal) continue;
    findings.add(
        Severity::warning, "wal", "",
        fmt::format("the WAL has {}: {}", about_bytes(file.bytes), file.path),
        "reads become slow and the disk fills: a reader stays open for long, or no program makes checkpoints",
        (facts.wal_reset_bug ? "stop all programs that use the database; then " : "") +
            fmt::format("sqlite3 {} 'PRAGMA wal_checkpoint(TRUNCATE)'", shell_word(facts.path)));
  }
  if (!findings.complains("wal")) findings.ok("wal", "small");
}

void judge_busy(const SqliteFacts& facts, Findings& findings) {
  if (!facts.busy) return findings.not_checked("busy", facts.busy.error());
  if (!facts.busy->locked) return findings.ok("busy", "the write lock could be had");
  const auto& pids = facts.busy->pids;
  const std::string who =
      pids.empty() ? "a process that cannot be seen" : fmt::format("pid {}", fmt::join(pids, ", "));
  findings.add(
      Severity::warning, "busy", "",
      fmt::format("the write lock is held for more than 1 s, by {}", who),
      "no other program can write: enqueueing waits or fails, and deliveries are not settled",
      pids.empty() ? "fuser " + shell_word(facts.path)
                   : fmt::format("ps -fp {}", fmt::join(pids, ",")));
}

void judge_journal(const SqliteFacts& facts, Findings& findings) {
  if (!facts.journal_mode) return findings.not_checked("journal", facts.journal_mode.error());
  if (*facts.journal_mode == "wal")
    return findings.ok("journal", "WAL: readers and the writer do not wait for each other");
  findings.add(Severity::error, "journal", "", "journal_mode is " + *facts.journal_mode,
               "the relay and the application block each other: no relay starts",
               fmt::format("outbox migrate --store {}", shell_word("sqlite:" + facts.path)));
}

/// Judges only a log that this program can read.
void judge_sequence(const SqliteFacts& facts, Findings& findings) {
  if (!facts.version || facts.version->version != facts.version->wanted) return;
  if (!facts.beyond_log) return findings.not_checked("sequence", facts.beyond_log.error());
  if (*facts.beyond_log <= 0)
    return findings.ok("sequence", "no subscription stands beyond the log");
  findings.add(
      Severity::error, "sequence", "",
      fmt::format("a subscription stands {} beyond the end of the log", *facts.beyond_log),
      "new events get numbers that count as delivered, and are lost to it",
      fmt::format(
          "sqlite3 {} \"UPDATE sqlite_sequence SET seq = seq + {} WHERE name = 'outbox_event'\"",
          shell_word(facts.path), *facts.beyond_log));
}

}  // namespace

void judge_disk(const SqliteFacts& facts, Findings& findings) {
  if (!facts.disk) return findings.not_checked("disk", facts.disk.error());
  const std::int64_t free = facts.disk->free_bytes;
  const std::int64_t size = facts.files && !facts.files->empty() ? facts.files->front().bytes : 0;
  const std::string left =
      fmt::format("{} are free where the database has {}", about_bytes(free), about_bytes(size));
  const std::string command = "free or add space; df -h " + shell_word(facts.path);
  if (free >= kLittleDisk) return findings.ok("disk", left);
  if (free < kFullDisk) {
    return findings.add(
        Severity::error, "disk", "", "the disk is full: " + left,
        "every transaction fails as a whole: no event is enqueued, and what is delivered cannot be noted, so that it comes "
        "again; none is lost",
        command);
  }
  findings.add(
      free < kNoDisk ? Severity::error : Severity::warning, "disk", "", left,
      "when the disk is full every transaction fails, and the relay cannot write what it delivered",
      command);
}

void judge(const SqliteFacts& facts, const StoreName& name, Findings& findings) {
  findings.ok("store", facts.path + " can be read and written");
  judge_version(facts.version, name, findings);
  if (facts.version && facts.version->version == facts.version->wanted) {
    judge_schema(
        facts.schema_facts, name,
        [&](const std::string& statements, bool) {
          return fmt::format("sqlite3 {} {}", shell_word(facts.path), shell_word(statements));
        },
        findings);
  }
  judge_journal(facts, findings);
  judge_sequence(facts, findings);
  findings.check("files", facts.files, [&](const auto& files) { judge_files(files, findings); });
  judge_wal(facts, findings);
  judge_busy(facts, findings);
  judge_disk(facts, findings);
}

}  // namespace outbox::health
