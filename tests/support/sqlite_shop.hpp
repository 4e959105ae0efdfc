// The shop on a SQLite file: one connection per writer, BEGIN IMMEDIATE, through the view and through the library.
#pragma once

#include <string>
#include <vector>

#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/shop_options.hpp"
#include "support/writer_team.hpp"

struct sqlite3;

namespace outbox::test {

/// sqlite3 with as little as possible around it. Throws std::runtime_error.
class SqliteFile {
 public:
  explicit SqliteFile(const std::string& path);
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;
  SqliteFile(SqliteFile&&) = delete;
  SqliteFile& operator=(SqliteFile&&) = delete;
  ~SqliteFile();
  /// Rows of text; null is empty.
  std::vector<std::vector<std::string>> exec(const std::string& sql,
                                             const std::vector<std::string>& parameters = {});
  [[nodiscard]] sqlite3* native() const { return db_; }

 private:
  sqlite3* db_{nullptr};
};

/// Makes the outbox's tables in the file.
void migrate_sqlite(const std::string& path);

class SqliteShop {
 public:
  /// `options.ways`: view, library and transaction; asynchronous commits and early ids do not exist here.
  SqliteShop(std::string path, ShopOptions options);
  void start();
  void join() { team_.join(); }
  void stop() { team_.stop(); }
  [[nodiscard]] std::string trouble() const { return team_.trouble(); }
  [[nodiscard]] std::vector<Attempt> attempts() const { return log_.all(); }
  [[nodiscard]] std::size_t tried() const { return log_.size(); }

 private:
  void one_transaction(SqliteFile& file, Random& random);

  const std::string path_;
  const ShopOptions options_;
  AttemptLog log_;
  WriterTeam team_;
};

}  // namespace outbox::test
