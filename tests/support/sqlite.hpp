// A thin wrapper of sqlite3. Throws Exception.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace outbox::test {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const noexcept;
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

using SqliteRow = std::vector<std::optional<std::string>>;

/// A database file in WAL mode. What is committed survives a loss of power (synchronous = FULL).
class SqliteFile {
 public:
  explicit SqliteFile(const std::string& path);

  /// Executes one statement.
  std::vector<SqliteRow> exec(const std::string& sql,
                              const std::vector<std::string>& parameters = {});
  /// The first value of the first row.
  [[nodiscard]] std::string value(const std::string& sql,
                                  const std::vector<std::string>& parameters = {}) {
    return exec(sql, parameters).at(0).at(0).value();
  }
  /// Executes several statements that return no rows.
  void run(const std::string& sql);
  [[nodiscard]] SqliteStatement prepare(const std::string& sql);
  [[nodiscard]] sqlite3* native() const { return db_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* db) const noexcept;
  };
  [[noreturn]] void failed(const std::string& what) const;

  std::unique_ptr<sqlite3, Close> db_;
};

/// Removes a database with the files that SQLite and a relay make beside it.
void remove_sqlite_files(const std::string& path);

}  // namespace outbox::test
