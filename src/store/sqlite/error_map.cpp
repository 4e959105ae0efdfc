#include "store/sqlite/error_map.hpp"

#include <array>
#include <string>

namespace outbox::store::sqlite {
namespace {

struct Rule {
  int code;
  Errc errc;
  Remedy remedy;
  Effect effect;
  const char* hint;
};

constexpr const char* kBusyHint =
    "another connection holds the write lock longer than the busy timeout";
constexpr const char* kReadOnlyHint = "the file and its directory must be writable";

// Extended codes come before their primary code, since the first match counts.
constexpr std::array kRules{
    Rule{
        SQLITE_BUSY_SNAPSHOT, Errc::unavailable, Remedy::retry_transaction, Effect::none,
        "the transaction read before it wrote, and another connection committed in between; begin it with BEGIN IMMEDIATE"},
    Rule{SQLITE_BUSY, Errc::unavailable, Remedy::retry_call, Effect::none, kBusyHint},
    Rule{SQLITE_LOCKED, Errc::unavailable, Remedy::retry_call, Effect::none,
         "another statement of the same connection or shared cache holds the lock"},
    Rule{SQLITE_READONLY_DBMOVED, Errc::unavailable, Remedy::reconnect, Effect::none,
         "the file was moved or deleted while it was open"},
    Rule{SQLITE_READONLY, Errc::permission_denied, Remedy::fix, Effect::none, kReadOnlyHint},
    Rule{SQLITE_PERM, Errc::permission_denied, Remedy::fix, Effect::none, kReadOnlyHint},
    Rule{SQLITE_AUTH, Errc::permission_denied, Remedy::fix, Effect::none,
         "the connection's authorizer refused it"},
    Rule{SQLITE_CANTOPEN, Errc::unavailable, Remedy::reconnect, Effect::none,
         "the file, its -wal and its -shm must be there or be creatable"},
    Rule{SQLITE_NOTADB, Errc::invalid_argument, Remedy::fix, Effect::none,
         "the path must name a SQLite database"},
    Rule{SQLITE_CORRUPT, Errc::corrupt, Remedy::fix, Effect::none,
         "run PRAGMA integrity_check and restore a backup"},
    Rule{SQLITE_FULL, Errc::unavailable, Remedy::retry_transaction, Effect::none,
         "the disk is full"},
    Rule{SQLITE_TOOBIG, Errc::too_large, Remedy::fix, Effect::none, ""},
    Rule{SQLITE_CONSTRAINT, Errc::invalid_argument, Remedy::fix, Effect::none, ""},
    Rule{SQLITE_INTERRUPT, Errc::cancelled, Remedy::retry_transaction, Effect::none, ""},
    Rule{SQLITE_ABORT, Errc::cancelled, Remedy::retry_transaction, Effect::none, ""},
    Rule{SQLITE_NOMEM, Errc::unavailable, Remedy::retry_transaction, Effect::none, "out of memory"},
    Rule{SQLITE_PROTOCOL, Errc::unavailable, Remedy::retry_call, Effect::none,
         "the locks of the file are contended"},
    Rule{SQLITE_SCHEMA, Errc::unavailable, Remedy::retry_call, Effect::none, ""},
    // SQLite enlarges the file before it writes anything to the database.
    Rule{SQLITE_IOERR_SHMSIZE, Errc::unavailable, Remedy::reconnect, Effect::none,
         "the -shm file cannot be made larger: is the disk full?"},
    // A failed write or sync may have reached the disk.
    Rule{SQLITE_IOERR, Errc::unavailable, Remedy::reconnect, Effect::unknown,
         "check the disk and the system's log"},
};

bool matches(const Rule& rule, int code) { return rule.code == code || rule.code == (code & 0xff); }

}  // namespace

Error map_code(int code, std::string_view what, std::string_view said) {
  Error error{.code = Errc::internal,
              .remedy = Remedy::fix,
              .effect = Effect::none,
              .message = std::string(what) + ": " + std::string(said),
              .hint = {},
              .origin = "sqlite:" + std::to_string(code)};
  for (const Rule& rule : kRules) {
    if (!matches(rule, code)) continue;
    error.code = rule.errc;
    error.remedy = rule.remedy;
    error.effect = rule.effect;
    error.hint = rule.hint;
    return error;
  }
  if (code == SQLITE_ERROR && (said.starts_with("no such table: outbox_") ||
                               said.starts_with("no such table: main.outbox_"))) {
    error.code = Errc::not_found;
    error.hint = "create the outbox in this file: outbox migrate";
  }
  return error;
}

Error map_error(sqlite3* db, int code, std::string_view what) {
  // The connection remembers only its last error: a call that was refused before that (misuse) has
  // another code. On a connection of the application, calls may return primary codes only.
  const int remembered = db == nullptr ? SQLITE_OK : sqlite3_extended_errcode(db);
  if ((remembered & 0xff) != (code & 0xff)) return map_code(code, what, sqlite3_errstr(code));
  return map_code(remembered, what, sqlite3_errmsg(db));
}

}  // namespace outbox::store::sqlite
