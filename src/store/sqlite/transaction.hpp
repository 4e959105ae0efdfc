// What an outbox::sqlite::Transaction keeps.
#pragma once

#include <sqlite3.h>

#include <outbox/sqlite.hpp>

namespace outbox::sqlite {

struct Transaction::State {
  sqlite3* db{nullptr};
  sqlite3_stmt* insert{nullptr};  ///< Prepared by the first enqueue, for those that follow in this transaction.
  bool open{false};

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State() { finish(); }

  /// Lets go of the statement: sqlite3_close() fails while there is one.
  void finish() noexcept {
    sqlite3_finalize(insert);
    insert = nullptr;
  }
};

}  // namespace outbox::sqlite
