#include "store/sqlite/kept_statements.hpp"

#include <memory>
#include <new>
#include <string_view>
#include <unordered_map>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "store/sqlite/error_map.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr const char* kModuleName = "outbox_statements";

/// The statements of each connection. SQLite removes an entry with the module, and so with its
/// connection: a later connection at the same address gets a new one.
struct Registry {
  Mutex mutex;
  std::unordered_map<sqlite3*, std::unique_ptr<KeptStatements>> entries OUTBOX_GUARDED_BY(mutex);

  // Never destroyed: connections may be closed by destructors of static objects.
  static Registry& instance() {
    static auto* const registry = new Registry;
    return *registry;
  }
};

bool is_open(sqlite3* db, const sqlite3_stmt* wanted) {
  for (sqlite3_stmt* stmt = sqlite3_next_stmt(db, nullptr); stmt != nullptr;
       stmt = sqlite3_next_stmt(db, stmt)) {
    if (stmt == wanted) return true;
  }
  return false;
}

}  // namespace

/// The virtual table: it has no rows and exists only to be disconnected.
struct KeptTable {
  sqlite3_vtab base{};  // first: SQLite sees only this
  KeptStatements* kept{nullptr};

  static int connect(sqlite3* db, void* kept, int, const char* const*, sqlite3_vtab** table,
                     char**) noexcept {
    const int code = sqlite3_declare_vtab(db, "CREATE TABLE outbox_statements (unused)");
    if (code != SQLITE_OK) return code;
    auto* made = new (std::nothrow) KeptTable;
    if (made == nullptr) return SQLITE_NOMEM;
    made->kept = static_cast<KeptStatements*>(kept);
    made->kept->connected_ = true;
    *table = &made->base;
    return SQLITE_OK;
  }
  static int disconnect(sqlite3_vtab* table) noexcept {
    auto* const ours = reinterpret_cast<KeptTable*>(table);
    ours->kept->disconnect();
    delete ours;
    return SQLITE_OK;
  }
  static int best_index(sqlite3_vtab*, sqlite3_index_info*) noexcept { return SQLITE_OK; }
  static int open(sqlite3_vtab*, sqlite3_vtab_cursor**) noexcept { return SQLITE_ERROR; }

  static void forget(void* kept) noexcept {
    Registry& registry = Registry::instance();
    const MutexLock lock(registry.mutex);
    registry.entries.erase(static_cast<KeptStatements*>(kept)->db_);
  }

  static const sqlite3_module* module() {
    static const sqlite3_module module = [] {
      sqlite3_module made{};
      made.xConnect = connect;
      made.xDisconnect = disconnect;
      made.xBestIndex = best_index;
      made.xOpen = open;
      return made;
    }();
    return &module;
  }
};

Result<KeptStatements*> KeptStatements::of(sqlite3* db) {
  Registry& registry = Registry::instance();
  KeptStatements* kept = nullptr;
  {
    const MutexLock lock(registry.mutex);
    if (const auto found = registry.entries.find(db); found != registry.entries.end())
      return found->second.get();
    kept = new KeptStatements(db);
    registry.entries.emplace(db, std::unique_ptr<KeptStatements>(kept));
  }
  // sqlite3_create_module_v2() calls forget() itself when it fails.
  const int code =
      sqlite3_create_module_v2(db, kModuleName, KeptTable::module(), kept, KeptTable::forget);
  if (code != SQLITE_OK) return fail(map_error(db, code, "sqlite: enqueue"));
  return kept;
}

Result<sqlite3_stmt*> KeptStatements::get(std::string_view sql) {
  // The table must be connected again after a sqlite3_close() that failed because of the
  // application's own statements.
  if (!connected_) {
    OUTBOX_TRY(connect());
  }
  for (const auto& [known, stmt] : statements_) {
    if (known == sql.data()) return stmt;
  }
  sqlite3_stmt* stmt = nullptr;
  const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &stmt, nullptr);
  if (code != SQLITE_OK) return fail(map_error(db_, code, "sqlite: enqueue"));
  statements_.emplace_back(sql.data(), stmt);
  return stmt;
}

Status KeptStatements::run(std::string_view sql, const char* what) {
  OUTBOX_TRY(sqlite3_stmt* const stmt, get(sql));
  const int code = sqlite3_step(stmt);
  Status status = code == SQLITE_DONE ? Status{} : fail(map_error(db_, code, what));
  sqlite3_reset(stmt);
  return status;
}

/// A statement that names the table makes SQLite connect it.
Status KeptStatements::connect() {
  sqlite3_stmt* stmt = nullptr;
  const std::string_view sql = query::kConnectStatements;
  const int code =
      sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &stmt, nullptr);
  sqlite3_finalize(stmt);
  if (code != SQLITE_OK) return fail(map_error(db_, code, "sqlite: enqueue"));
  OUTBOX_CHECK(connected_);
  return {};
}

// Some wrappers finalize every statement of a connection before they close it, including ours.
void KeptStatements::disconnect() noexcept {
  for (const auto& [sql, stmt] : statements_) {
    if (is_open(db_, stmt)) sqlite3_finalize(stmt);
  }
  statements_.clear();
  connected_ = false;
}

}  // namespace outbox::store::sqlite
