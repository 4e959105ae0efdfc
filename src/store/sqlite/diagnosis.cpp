#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/path.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/schema.hpp"

namespace outbox::store::sqlite {
namespace {

/// It is long enough for the transactions of applications.
constexpr std::chrono::milliseconds kLookTimeout{1000};
/// The byte of the -shm file that a writer locks (https://sqlite.org/walformat.html).
constexpr std::uint64_t kWriteLock = 120;

tl::unexpected<Error> failed(const std::string& path, int error) {
  return fail(Errc::unavailable, "sqlite: " + path + ": " + std::generic_category().message(error),
              "");
}

Result<std::vector<FileFacts>> list_files(const std::string& path) {
  std::vector<FileFacts> files;
  for (const char* const suffix : {"", "-wal", "-shm", "-journal"}) {
    const std::string name = path + suffix;
    struct stat found {};
    if (::stat(name.c_str(), &found) != 0) {
      if (errno == ENOENT && *suffix != '\0') continue;
      return failed(name, errno);
    }
    files.push_back({.path = name,
                     .bytes = found.st_size,
                     .owner = found.st_uid,
                     .mode = found.st_mode & 07777U,
                     .links = found.st_nlink,
                     .writable = ::faccessat(AT_FDCWD, name.c_str(), W_OK, AT_EACCESS) == 0});
  }
  return files;
}

Result<DiskFacts> read_disk(const std::string& path) {
  struct statvfs found {};
  if (::statvfs(path.c_str(), &found) != 0) return failed(path, errno);
  const auto bytes = [&found](fsblkcnt_t blocks) {
    return static_cast<std::int64_t>(blocks) * static_cast<std::int64_t>(found.f_frsize);
  };
  return DiskFacts{.free_bytes = bytes(found.f_bavail), .all_bytes = bytes(found.f_blocks)};
}

/// The processes that hold the write lock, from /proc/locks (proc(5)), whose lines look like "2:
/// POSIX  ADVISORY  WRITE 4711 08:01:131 120 120".
std::vector<std::int64_t> list_writers(const std::string& path) {
  struct stat shm {};
  if (::stat((path + "-shm").c_str(), &shm) != 0) return {};
  std::vector<std::int64_t> pids;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    long long pid = 0;
    unsigned major_number = 0;
    unsigned minor_number = 0;
    unsigned long long inode = 0;
    unsigned long long first = 0;
    // NOLINTNEXTLINE(cert-err34-c): a line that does not fit is skipped
    const int found = std::sscanf(line.c_str(), "%*d: %*s %*s WRITE %lld %x:%x:%llu %llu", &pid,
                                  &major_number, &minor_number, &inode, &first);
    const bool same = found == 5 && inode == shm.st_ino && first == kWriteLock &&
                      major_number == major(shm.st_dev) && minor_number == minor(shm.st_dev);
    if (same && pid > 0) pids.push_back(pid);
  }
  return pids;
}

/// Takes the write lock and gives it back. Returns who holds it if it is not free.
Result<SqliteFacts::Busy> busy(Connection& connection, const std::string& path) {
  auto locked = WriteTransaction::begin(connection);
  if (locked) return SqliteFacts::Busy{};
  if (locked.error().remedy != Remedy::retry_call) return pass(locked);
  return SqliteFacts::Busy{.locked = true, .pids = list_writers(path)};
}

Result<std::int64_t> beyond_log(Connection& connection) {
  OUTBOX_TRY(const std::int64_t farthest, connection.integer(query::kFarthestPosition));
  OUTBOX_TRY(const std::int64_t newest, connection.integer(query::kNewestSeq));
  return farthest - newest;
}

Result<SchemaFacts> schema_facts(Connection& connection) {
  OUTBOX_TRY(Definitions wanted, read_definitions(connection, query::kWantedDefinitions));
  OUTBOX_TRY(Definitions found, read_definitions(connection, query::kFoundDefinitions));
  return SchemaFacts{.wanted = std::move(wanted), .found = std::move(found)};
}

SqliteFacts gather_facts(Connection& connection, const std::string& path) {
  // What another program left in the WAL stays there.
  sqlite3_db_config(connection.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  SqliteFacts facts{.path = path,
                    .library = sqlite3_libversion(),
                    .wal_reset_bug = has_wal_reset_bug(sqlite3_libversion_number()),
                    .files = list_files(path),
                    .disk = read_disk(path),
                    .version = schema_state(connection),
                    .journal_mode = connection.text(query::kJournalMode),
                    .busy = busy(connection, path)};
  if (facts.version && facts.version->version == facts.version->wanted) {
    facts.schema_facts = schema_facts(connection);
    facts.beyond_log = beyond_log(connection);
    facts.recent_payload = connection.integer(query::kRecentPayload);
  }
  return facts;
}

/// The facts about a file that cannot be opened, for example on a full disk.
SqliteFacts from_outside(const std::string& path) {
  return {.path = path,
          .library = sqlite3_libversion(),
          .wal_reset_bug = has_wal_reset_bug(sqlite3_libversion_number()),
          .files = list_files(path),
          .disk = read_disk(path)};
}

}  // namespace

// Nothing here waits for long, so `until` need not be checked.
Diagnosis diagnose(const StoreOptions& options, std::chrono::steady_clock::time_point /*until*/) {
  auto path = parse_path(options.url);
  if (!path) return {.reached = pass(path)};
  if (Status usable = check_path(*path, false); !usable) return {.reached = pass(usable)};
  auto connection = Connection::open(*path, {.busy_timeout = kLookTimeout});
  if (!connection) {
    Error error = std::move(connection.error());
    if (error.message.find(*path) == std::string::npos) error.message += ": " + *path;
    return {.reached = fail(std::move(error)), .sqlite = from_outside(*path)};
  }
  return {.reached = {}, .sqlite = gather_facts(*connection, *path)};
}

}  // namespace outbox::store::sqlite
