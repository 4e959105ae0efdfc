#include "conformance/store/sync_counter.hpp"

#include <sqlite3.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>

namespace outbox::conformance {
namespace {

std::atomic<int> wal_syncs{0};
std::atomic<int> database_syncs{0};

/// The methods of a kind of file, and a copy with another xSync. SQLite keeps pointers to the copy.
struct Counting {
  const sqlite3_io_methods* original;
  sqlite3_io_methods counting;
};

std::mutex mutex;
std::deque<Counting> kinds;
std::map<sqlite3_file*, std::pair<const sqlite3_io_methods*, bool>>
    files;  // The file's own methods, and whether it is a WAL.
sqlite3_vfs* real = nullptr;

int sync_and_count(sqlite3_file* file, int flags) {
  std::pair<const sqlite3_io_methods*, bool> known;
  {
    const std::scoped_lock lock(mutex);
    known = files.at(file);
  }
  ++(known.second ? wal_syncs : database_syncs);
  return known.first->xSync(file, flags);
}

const sqlite3_io_methods* counting_methods(const sqlite3_io_methods* original) {
  for (const Counting& kind : kinds) {
    if (kind.original == original) return &kind.counting;
  }
  kinds.push_back({original, *original});
  kinds.back().counting.xSync = sync_and_count;
  return &kinds.back().counting;
}

int open_and_watch(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags,
                   int* out_flags) {
  const int code = real->xOpen(vfs, name, file, flags, out_flags);
  if (code != SQLITE_OK || (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)) == 0) return code;
  const std::scoped_lock lock(mutex);
  files[file] = {file->pMethods, (flags & SQLITE_OPEN_WAL) != 0};
  file->pMethods = counting_methods(file->pMethods);
  return code;
}

}  // namespace

void count_syncs() {
  if (real != nullptr) return;
  real = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs counting = *real;
  counting.zName = "counting";
  counting.xOpen = open_and_watch;
  sqlite3_vfs_register(&counting, 1);
}

Syncs take_syncs() {
  return {.wal = wal_syncs.exchange(0), .database = database_syncs.exchange(0)};
}

}  // namespace outbox::conformance
