// The statements that enqueue, compiled once per connection of the application: compiling them each
// time would be most of the cost of an event (10 us warm, twice that after a sync).
//
// A statement of ours must not make the application's sqlite3_close() fail, which refuses to close
// a connection with open statements. So they belong to a hidden virtual table of ours on that
// connection: SQLite disconnects virtual tables before it checks for open statements, as it must
// for full-text search, whose tables keep statements too.
#pragma once

#include <sqlite3.h>

#include <outbox/error.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox::store::sqlite {

class KeptStatements {
 public:
  /// The statements of this connection; they are created on first use and valid until the
  /// connection is closed.
  [[nodiscard]] static Result<KeptStatements*> of(sqlite3* db);

  KeptStatements(const KeptStatements&) = delete;
  KeptStatements& operator=(const KeptStatements&) = delete;
  KeptStatements(KeptStatements&&) = delete;
  KeptStatements& operator=(KeptStatements&&) = delete;
  ~KeptStatements() = default;

  /// The statement, reset and without bindings. `sql` is one of the constants of queries.hpp; its
  /// address is the key.
  [[nodiscard]] Result<sqlite3_stmt*> get(std::string_view sql);
  /// Runs a statement without parameters and rows.
  [[nodiscard]] Status run(std::string_view sql, const char* what);

 private:
  friend struct KeptTable;
  explicit KeptStatements(sqlite3* db) : db_(db) {}
  [[nodiscard]] Status connect();
  void disconnect() noexcept;

  sqlite3* const db_;
  bool connected_{false};  ///< Whether SQLite will call disconnect() before it closes the
                           ///< connection.
  std::vector<std::pair<const char*, sqlite3_stmt*>> statements_;
};

}  // namespace outbox::store::sqlite
