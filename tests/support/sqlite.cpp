#include "support/sqlite.hpp"

#include <sqlite3.h>

#include <filesystem>

#include "support/failure.hpp"

namespace outbox::test {

void FinalizeStatement::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

void SqliteFile::Close::operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }

SqliteFile::SqliteFile(const std::string& path) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open(path.c_str(), &raw);
  db_.reset(raw);
  if (code != SQLITE_OK) failed("open " + path);
  sqlite3_busy_timeout(raw, 60000);
  run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
}

void SqliteFile::failed(const std::string& what) const {
  const int code = sqlite3_extended_errcode(native());
  give_up(Errc::unavailable, what + ": " + sqlite3_errmsg(native()), {},
          "sqlite:" + std::to_string(code));
}

void SqliteFile::run(const std::string& sql) {
  if (sqlite3_exec(native(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) failed(sql);
}

SqliteStatement SqliteFile::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(native(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement,
                         nullptr) != SQLITE_OK)
    failed(sql);
  return SqliteStatement(statement);
}

std::vector<SqliteRow> SqliteFile::exec(const std::string& sql,
                                        const std::vector<std::string>& parameters) {
  const SqliteStatement owner = prepare(sql);
  sqlite3_stmt* const statement = owner.get();
  int number = 0;
  for (const std::string& value : parameters) {
    sqlite3_bind_text(statement, ++number, value.c_str(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
  }
  std::vector<SqliteRow> rows;
  int step = sqlite3_step(statement);
  for (; step == SQLITE_ROW; step = sqlite3_step(statement)) {
    auto& row = rows.emplace_back();
    for (int column = 0; column < sqlite3_column_count(statement); ++column) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      row.push_back(text == nullptr ? std::nullopt : std::optional<std::string>(text));
    }
  }
  if (step != SQLITE_DONE) failed(sql);
  return rows;
}

void remove_sqlite_files(const std::string& path) {
  std::error_code ignored;
  for (const char* const suffix : {"", "-wal", "-shm"})
    std::filesystem::remove(path + suffix, ignored);
  // There is one lock file for each group that had a relay.
  const std::filesystem::path file = std::filesystem::absolute(path);
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(file.filename().string() + ".") && name.ends_with(".relay.lock"))
      std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace outbox::test
