// The shop on a SQLite file. Each writer has a connection, begins with BEGIN IMMEDIATE, and writes
// through the view and through the library.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "support/ledger.hpp"
#include "support/random.hpp"
#include "support/shop_options.hpp"
#include "support/sqlite.hpp"
#include "support/writer_team.hpp"

namespace outbox::test {

/// Creates the tables of the outbox in the file.
void migrate_sqlite(const std::string& path);

class SqliteShop {
 public:
  /// `options.ways` is ignored: each event is written through the view or the transaction. SQLite
  /// has no asynchronous commits and no early transaction ids.
  SqliteShop(std::string path, ShopOptions options);
  void start();
  void join() { team_.join(); }
  void stop() { team_.stop(); }
  [[nodiscard]] std::string trouble() const { return team_.trouble(); }
  [[nodiscard]] std::vector<Attempt> attempts() const { return log_.all(); }
  [[nodiscard]] std::size_t tried() const { return log_.size(); }
  /// How many transactions SQLite refused. With the option `reconnect` the writers go on after
  /// them.
  [[nodiscard]] int refused() const { return refused_.load(); }

 private:
  void one_transaction(SqliteFile& file, Random& random);
  bool sell(SqliteFile& file, Random& random, std::vector<Attempt>& attempts);

  const std::string path_;
  const ShopOptions options_;
  AttemptLog log_;
  std::atomic<int> refused_{0};
  WriterTeam team_;
};

}  // namespace outbox::test
