#include "store/postgres/error_map.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "pg/errors.hpp"

namespace outbox::store::postgres {
namespace {

struct StateRow {
  /// A prefix of the SQLSTATE. The first row that fits counts, so longer prefixes come first.
  std::string_view prefix;
  Errc code;
  Remedy remedy;
  Effect effect;
  std::string_view hint;
};

constexpr std::string_view kMigrate = "run: outbox migrate";
constexpr std::string_view kGrant =
    "the login needs the role outbox_app (writing), outbox_relay or outbox_reader";
constexpr std::string_view kPrimary =
    "connect to the primary: add target_session_attrs=read-write to the URL";

/// Raised by same_server() of the schema.
constexpr std::string_view kOtherServer = "OX001";
/// Raised by hold_lanes().
constexpr std::string_view kOtherOwner = "OX002";
/// Raised by park_events().
constexpr std::string_view kGoneFromLog = "OX003";

// A transaction whose connection is lost during COMMIT may have happened, so every loss is
// Effect::unknown.
constexpr std::array kStateRows{
    StateRow{"08P01", Errc::internal, Remedy::reconnect, Effect::unknown,
             "is something other than PostgreSQL or a pooler listening there?"},
    StateRow{"08", Errc::unavailable, Remedy::reconnect, Effect::unknown, ""},
    StateRow{"57P01", Errc::unavailable, Remedy::reconnect, Effect::unknown, ""},
    StateRow{"57P02", Errc::unavailable, Remedy::reconnect, Effect::unknown, ""},
    StateRow{"57P03", Errc::unavailable, Remedy::reconnect, Effect::none, ""},
    StateRow{"57P04", Errc::not_found, Remedy::fix, Effect::unknown, "the database was dropped"},
    StateRow{"57P05", Errc::unavailable, Remedy::reconnect, Effect::none, ""},
    StateRow{"57014", Errc::deadline_exceeded, Remedy::retry_transaction, Effect::none, ""},
    StateRow{"25006", Errc::unavailable, Remedy::reconnect, Effect::none, kPrimary},
    StateRow{"25P02", Errc::internal, Remedy::retry_transaction, Effect::none, ""},
    StateRow{"25P03", Errc::unavailable, Remedy::reconnect, Effect::none, ""},
    StateRow{"25P04", Errc::unavailable, Remedy::reconnect, Effect::none, ""},
    StateRow{"26000", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    StateRow{"42P05", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    StateRow{"40002", Errc::invalid_argument, Remedy::fix, Effect::none, ""},
    StateRow{"40003", Errc::unavailable, Remedy::retry_transaction, Effect::unknown, ""},
    StateRow{"40", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    StateRow{"55P03", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    StateRow{"55006", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    StateRow{"55000", Errc::unsupported, Remedy::fix, Effect::none, ""},
    StateRow{"53300", Errc::unavailable, Remedy::reconnect, Effect::none,
             "raise max_connections, or connect through a pooler"},
    StateRow{"53", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    StateRow{"58", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    StateRow{"28", Errc::permission_denied, Remedy::fix, Effect::none,
             "check user, password and pg_hba.conf"},
    StateRow{"3D000", Errc::not_found, Remedy::fix, Effect::none, ""},
    StateRow{"3F000", Errc::not_found, Remedy::fix, Effect::none, kMigrate},
    StateRow{"42P01", Errc::not_found, Remedy::fix, Effect::none, kMigrate},
    StateRow{"42703", Errc::not_found, Remedy::fix, Effect::none, kMigrate},
    StateRow{"42883", Errc::not_found, Remedy::fix, Effect::none, kMigrate},
    StateRow{"42501", Errc::permission_denied, Remedy::fix, Effect::none, kGrant},
    StateRow{"42", Errc::internal, Remedy::fix, Effect::none, ""},
    StateRow{"23505", Errc::already_exists, Remedy::fix, Effect::none, ""},
    StateRow{"23", Errc::invalid_argument, Remedy::fix, Effect::none, ""},
    StateRow{"22001", Errc::too_large, Remedy::fix, Effect::none, ""},
    StateRow{"22", Errc::invalid_argument, Remedy::fix, Effect::none, ""},
    StateRow{"54", Errc::too_large, Remedy::fix, Effect::none, ""},
    StateRow{"0A", Errc::unsupported, Remedy::fix, Effect::none, ""},
    StateRow{"P0001", Errc::invalid_argument, Remedy::fix, Effect::none, ""},
    StateRow{kOtherServer, Errc::unavailable, Remedy::reconnect, Effect::none,
             "reading starts again from the settlements"},
    StateRow{kOtherOwner, Errc::lease_lost, Remedy::reconnect, Effect::none, ""},
    StateRow{kGoneFromLog, Errc::not_found, Remedy::reconnect, Effect::none,
             "reading starts again from the settlements, without what was deleted"},
    StateRow{"XX001", Errc::corrupt, Remedy::fix, Effect::none, ""},
    StateRow{"XX002", Errc::corrupt, Remedy::fix, Effect::none, ""},
    StateRow{"", Errc::internal, Remedy::fix, Effect::none, ""},
};

}  // namespace

Error map_sqlstate(std::string_view sqlstate, std::string_view what, std::string_view said) {
  const StateRow& row =
      *std::find_if(kStateRows.begin(), kStateRows.end(),
                    [&](const StateRow& one) { return sqlstate.starts_with(one.prefix); });
  return {.code = row.code,
          .remedy = row.remedy,
          .effect = row.effect,
          .message = pg::in_words(what, pg::one_line(said)),
          .hint = std::string(row.hint),
          .origin = "pg:" + std::string(sqlstate)};
}

Error map_result(const PGresult* result, const PGconn* connection, std::string_view what) {
  const auto sqlstate = pg::field(result, PG_DIAG_SQLSTATE);
  // Without a SQLSTATE the message is libpq's own: the connection is lost.
  if (sqlstate.empty()) return pg::lost_connection(connection, what);
  Error error = map_sqlstate(sqlstate, what, pg::field(result, PG_DIAG_MESSAGE_PRIMARY));
  if (const auto hint = pg::field(result, PG_DIAG_MESSAGE_HINT); !hint.empty())
    error.hint = pg::one_line(hint);
  // FATAL ends the session whatever the code says.
  if (PQstatus(connection) == CONNECTION_BAD && error.remedy != Remedy::fix)
    error.remedy = Remedy::reconnect;
  return error;
}

bool is_locked(const Error& error) noexcept { return error.origin == "pg:55P03"; }

}  // namespace outbox::store::postgres
