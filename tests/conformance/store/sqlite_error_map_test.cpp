// Tests the error map with one row for each SQLite code that a caller acts on.
#include <gtest/gtest.h>

#include "store/sqlite/error_map.hpp"

namespace outbox::store::sqlite {
namespace {

struct Row {
  int code;
  Errc errc;
  Remedy remedy;
  Effect effect;
};

class SqliteErrorMap : public ::testing::TestWithParam<Row> {};

TEST_P(SqliteErrorMap, says_what_the_caller_can_do) {
  const Error error = map_code(GetParam().code, "sqlite: enqueue", "it said so");
  EXPECT_STREQ(to_string(error.code), to_string(GetParam().errc));
  EXPECT_EQ(error.remedy, GetParam().remedy);
  EXPECT_EQ(error.effect, GetParam().effect);
  EXPECT_EQ(error.origin, "sqlite:" + std::to_string(GetParam().code));
  EXPECT_EQ(error.message, "sqlite: enqueue: it said so");
}

INSTANTIATE_TEST_SUITE_P(
    Codes, SqliteErrorMap,
    ::testing::Values(
        Row{SQLITE_BUSY, Errc::unavailable, Remedy::retry_call, Effect::none},
        Row{SQLITE_BUSY_RECOVERY, Errc::unavailable, Remedy::retry_call, Effect::none},
        Row{SQLITE_BUSY_SNAPSHOT, Errc::unavailable, Remedy::retry_transaction, Effect::none},
        Row{SQLITE_LOCKED, Errc::unavailable, Remedy::retry_call, Effect::none},
        Row{SQLITE_LOCKED_SHAREDCACHE, Errc::unavailable, Remedy::retry_call, Effect::none},
        Row{SQLITE_READONLY, Errc::permission_denied, Remedy::fix, Effect::none},
        Row{SQLITE_READONLY_DIRECTORY, Errc::permission_denied, Remedy::fix, Effect::none},
        Row{SQLITE_READONLY_DBMOVED, Errc::unavailable, Remedy::reconnect, Effect::none},
        Row{SQLITE_CANTOPEN, Errc::unavailable, Remedy::reconnect, Effect::none},
        Row{SQLITE_NOTADB, Errc::invalid_argument, Remedy::fix, Effect::none},
        Row{SQLITE_CORRUPT, Errc::corrupt, Remedy::fix, Effect::none},
        Row{SQLITE_CORRUPT_VTAB, Errc::corrupt, Remedy::fix, Effect::none},
        Row{SQLITE_FULL, Errc::unavailable, Remedy::retry_transaction, Effect::none},
        Row{SQLITE_TOOBIG, Errc::too_large, Remedy::fix, Effect::none},
        Row{SQLITE_CONSTRAINT_CHECK, Errc::invalid_argument, Remedy::fix, Effect::none},
        Row{SQLITE_CONSTRAINT_TRIGGER, Errc::invalid_argument, Remedy::fix, Effect::none},
        Row{SQLITE_INTERRUPT, Errc::cancelled, Remedy::retry_transaction, Effect::none},
        Row{SQLITE_ABORT_ROLLBACK, Errc::cancelled, Remedy::retry_transaction, Effect::none},
        Row{SQLITE_NOMEM, Errc::unavailable, Remedy::retry_transaction, Effect::none},
        Row{SQLITE_PROTOCOL, Errc::unavailable, Remedy::retry_call, Effect::none},
        Row{SQLITE_AUTH, Errc::permission_denied, Remedy::fix, Effect::none},
        Row{SQLITE_IOERR_SHMSIZE, Errc::unavailable, Remedy::reconnect, Effect::none},
        Row{SQLITE_IOERR_FSYNC, Errc::unavailable, Remedy::reconnect, Effect::unknown},
        Row{SQLITE_IOERR, Errc::unavailable, Remedy::reconnect, Effect::unknown},
        Row{SQLITE_MISUSE, Errc::internal, Remedy::fix, Effect::none},
        Row{SQLITE_ERROR, Errc::internal, Remedy::fix, Effect::none}),
    [](const auto& row) { return "code_" + std::to_string(row.param.code); });

TEST(SqliteErrorMapText, a_missing_outbox_is_not_found) {
  const Error error = map_code(SQLITE_ERROR, "sqlite: enqueue", "no such table: outbox_event");
  EXPECT_EQ(error.code, Errc::not_found);
  EXPECT_EQ(map_code(SQLITE_ERROR, "x", "no such table: orders").code, Errc::internal);
}

}  // namespace
}  // namespace outbox::store::sqlite
