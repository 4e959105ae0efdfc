#include "pg/errors.hpp"

namespace outbox::pg {

std::string in_words(std::string_view what, std::string_view said) {
  std::string message{what};
  if (!message.empty() && !said.empty()) message += ": ";
  return message += said;
}

std::string_view field(const PGresult* result, int code) {
  const char* value = PQresultErrorField(result, code);
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

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

Error lost_connection(const PGconn* connection, std::string_view what) {
  std::string said = one_line(PQerrorMessage(connection));
  if (said.empty()) said = "the connection is lost";
  return Error{.code = Errc::unavailable,
               .remedy = Remedy::reconnect,
               .effect = Effect::unknown,
               .message = in_words(what, said),
               .hint = {},
               .origin = "pg:08006"};
}

Error failed_connect(const PGconn* connection) {
  std::string said = one_line(connection == nullptr ? "out of memory" : PQerrorMessage(connection));
  Error error{.code = Errc::unavailable,
              .remedy = Remedy::reconnect,
              .effect = Effect::none,
              .message = in_words("cannot connect to PostgreSQL", said),
              .hint = "check host, port and that the server runs",
              .origin = "pg:08001"};
  // libpq has no SQLSTATE for a failed connect, but its own texts for it are not translated.
  const auto says = [&said](std::string_view text) { return said.find(text) != std::string::npos; };
  if (says("password") || says("authentication") || says("pg_hba.conf") ||
      says("FATAL:  role \"")) {
    error.code = Errc::permission_denied;
    error.remedy = Remedy::fix;
    error.hint = says("no password supplied")
                     ? "give a password: in the URL as ${env:NAME}, in PGPASSWORD or in ~/.pgpass"
                     : "check user and password (URL, PGPASSWORD, ~/.pgpass) and pg_hba.conf; the "
                       "server's log says why it refused";
  } else if (says("database \"") && says("does not exist")) {
    error.code = Errc::not_found;
    error.remedy = Remedy::fix;
    error.hint = "create the database, or correct its name in the URL";
  }
  return error;
}

}  // namespace outbox::pg
