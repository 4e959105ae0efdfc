// What an outbox::sqlite::Transaction keeps.
#pragma once

#include <sqlite3.h>

#include <outbox/sqlite.hpp>

namespace outbox::sqlite {

struct Transaction::State {
  sqlite3* db{nullptr};
  bool open{false};
};

}  // namespace outbox::sqlite
