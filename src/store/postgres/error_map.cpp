#include "store/postgres/error_map.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace outbox::store::postgres {
namespace {

struct Row {
  /// Of the SQLSTATE; the first row that fits counts, so longer ones come first.
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

// A transaction whose connection is lost during COMMIT may have happened, so every loss is Effect::unknown.
constexpr std::array kRows{
    Row{"08P01", Errc::internal, Remedy::reconnect, Effect::unknown,
        "is something other than PostgreSQL or a pooler listening there?"},
    Row{"08", Errc::unavailable, Remedy::reconnect, Effect::unknown, ""},
    Row{"57P01", Errc::unavailable, Remedy::reconnect, Effect::unknown, ""},
    Row{"57P02", Errc::unavailable, Remedy::reconnect, Effect::unknown, ""},
    Row{"57P03", Errc::unavailable, Remedy::reconnect, Effect::none, ""},
    Row{"57P04", Errc::not_found, Remedy::fix, Effect::unknown, "the database was dropped"},
    Row{"57P05", Errc::unavailable, Remedy::reconnect, Effect::none, ""},
    Row{"57014", Errc::deadline_exceeded, Remedy::retry_transaction, Effect::none, ""},
    Row{"25006", Errc::unavailable, Remedy::reconnect, Effect::none, kPrimary},
    Row{"25P02", Errc::internal, Remedy::retry_transaction, Effect::none, ""},
    Row{"25P03", Errc::unavailable, Remedy::reconnect, Effect::none, ""},
    Row{"25P04", Errc::unavailable, Remedy::reconnect, Effect::none, ""},
    Row{"26000", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    Row{"42P05", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    Row{"40002", Errc::invalid_argument, Remedy::fix, Effect::none, ""},
    Row{"40003", Errc::unavailable, Remedy::retry_transaction, Effect::unknown, ""},
    Row{"40", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    Row{"55P03", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    Row{"55006", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    Row{"55000", Errc::unsupported, Remedy::fix, Effect::none, ""},
    Row{"53300", Errc::unavailable, Remedy::reconnect, Effect::none,
        "raise max_connections, or connect through a pooler"},
    Row{"53", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    Row{"58", Errc::unavailable, Remedy::retry_transaction, Effect::none, ""},
    Row{"28", Errc::permission_denied, Remedy::fix, Effect::none,
        "check user, password and pg_hba.conf"},
    Row{"3D000", Errc::not_found, Remedy::fix, Effect::none, ""},
    Row{"3F000", Errc::not_found, Remedy::fix, Effect::none, kMigrate},
    Row{"42P01", Errc::not_found, Remedy::fix, Effect::none, kMigrate},
    Row{"42703", Errc::not_found, Remedy::fix, Effect::none, kMigrate},
    Row{"42883", Errc::not_found, Remedy::fix, Effect::none, kMigrate},
    Row{"42501", Errc::permission_denied, Remedy::fix, Effect::none, kGrant},
    Row{"42", Errc::internal, Remedy::fix, Effect::none, ""},
    Row{"23505", Errc::already_exists, Remedy::fix, Effect::none, ""},
    Row{"23", Errc::invalid_argument, Remedy::fix, Effect::none, ""},
    Row{"22001", Errc::too_large, Remedy::fix, Effect::none, ""},
    Row{"22", Errc::invalid_argument, Remedy::fix, Effect::none, ""},
    Row{"54", Errc::too_large, Remedy::fix, Effect::none, ""},
    Row{"0A", Errc::unsupported, Remedy::fix, Effect::none, ""},
    Row{"P0001", Errc::invalid_argument, Remedy::fix, Effect::none, ""},
    Row{kOtherServer, Errc::unavailable, Remedy::reconnect, Effect::none,
        "reading starts again from the settlements"},
    Row{kOtherOwner, Errc::lease_lost, Remedy::reconnect, Effect::none, ""},
    Row{kGoneFromLog, Errc::not_found, Remedy::reconnect, Effect::none,
        "reading starts again from the settlements, without what was deleted"},
    Row{"XX001", Errc::corrupt, Remedy::fix, Effect::none, ""},
    Row{"XX002", Errc::corrupt, Remedy::fix, Effect::none, ""},
    Row{"", Errc::internal, Remedy::fix, Effect::none, ""},
};

std::string compose(std::string_view what, std::string_view said) {
  std::string message{what};
  if (!message.empty() && !said.empty()) message += ": ";
  return message += said;
}

std::string_view field(const PGresult* result, int code) {
  const char* value = PQresultErrorField(result, code);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

}  // namespace

std::string one_line(std::string_view message) {
  std::string line;
  while (!message.empty()) {
    const auto end = message.find('\n');
    auto part = message.substr(0, end);
    message = end == std::string_view::npos ? std::string_view{} : message.substr(end + 1);
    while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
    if (part.empty()) continue;
    if (!line.empty()) line += "; ";
    line += part;
  }
  return line;
}

Error map_sqlstate(std::string_view sqlstate, std::string_view what, std::string_view said) {
  const Row& row = *std::find_if(kRows.begin(), kRows.end(),
                                 [&](const Row& one) { return sqlstate.starts_with(one.prefix); });
  return {.code = row.code,
          .remedy = row.remedy,
          .effect = row.effect,
          .message = compose(what, one_line(said)),
          .hint = std::string(row.hint),
          .origin = "pg:" + std::string(sqlstate)};
}

Error map_result(const PGresult* result, const PGconn* connection, std::string_view what) {
  const auto sqlstate = field(result, PG_DIAG_SQLSTATE);
  // Without a SQLSTATE the message is libpq's own: the connection is lost.
  if (sqlstate.empty()) return lost_connection(connection, what);
  Error error = map_sqlstate(sqlstate, what, field(result, PG_DIAG_MESSAGE_PRIMARY));
  if (const auto hint = field(result, PG_DIAG_MESSAGE_HINT); !hint.empty())
    error.hint = one_line(hint);
  // FATAL ends the session whatever the code says.
  if (PQstatus(connection) == CONNECTION_BAD && error.remedy != Remedy::fix)
    error.remedy = Remedy::reconnect;
  return error;
}

Error lost_connection(const PGconn* connection, std::string_view what) {
  std::string said = one_line(PQerrorMessage(connection));
  if (said.empty()) said = "the connection is lost";
  return Error{.code = Errc::unavailable,
               .remedy = Remedy::reconnect,
               .effect = Effect::unknown,
               .message = compose(what, said),
               .hint = {},
               .origin = "pg:08006"};
}

Error failed_connect(const PGconn* connection) {
  std::string said = one_line(connection == nullptr ? "out of memory" : PQerrorMessage(connection));
  Error error{.code = Errc::unavailable,
              .remedy = Remedy::reconnect,
              .effect = Effect::none,
              .message = compose("cannot connect to PostgreSQL", said),
              .hint = "check host, port and that the server runs",
              .origin = "pg:08001"};
  // libpq has no SQLSTATE for a failed connect; its own texts are not translated in this respect.
  const auto says = [&said](std::string_view text) { return said.find(text) != std::string::npos; };
  if (says("password") || says("authentication") || says("pg_hba.conf") ||
      says("FATAL:  role \"")) {
    error.code = Errc::permission_denied;
    error.remedy = Remedy::fix;
    error.hint = "check user, password and pg_hba.conf";
  } else if (says("database \"") && says("does not exist")) {
    error.code = Errc::not_found;
    error.remedy = Remedy::fix;
    error.hint = "create the database, or correct its name in the URL";
  }
  return error;
}

}  // namespace outbox::store::postgres
