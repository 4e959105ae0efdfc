// A PostgreSQL server as the destination of the sink. It has a login that needs a password, and a
// table for each test. One server serves a test program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/sink/suite.hpp"
#include "support/own_postgres.hpp"
#include "support/pg.hpp"

namespace outbox::test {

class PostgresDestination {
 public:
  /// The password has characters that URLs and connection strings escape.
  static constexpr const char* kPassword = R"(p@ss/w:rd'?#& %41\"ü)";

  PostgresDestination();

  [[nodiscard]] OwnPostgres& server() { return server_; }
  [[nodiscard]] int port() const { return server_.port(); }
  /// The URL of the login "app", without its password.
  [[nodiscard]] std::string url(int port) const;
  [[nodiscard]] std::string url() const { return url(port()); }
  /// A connection as the superuser.
  [[nodiscard]] Pg admin() const { return Pg(server_.url()); }

  /// Makes new transactions read-only until allow_writes().
  void refuse_writes() { set_read_only(true); }
  void allow_writes() { set_read_only(false); }

  /// Returns a name that no other test of this program uses.
  [[nodiscard]] static std::string new_name(const std::string& prefix);
  /// Makes a table with the columns n (order of arrival), id, seq, key, type, payload bytea (at
  /// most 1 MiB), headers, occurred_at.
  void make_table(const std::string& name) const;
  [[nodiscard]] std::vector<Arrived> arrived(const std::string& table) const;

 private:
  void set_read_only(bool on);

  OwnPostgres server_;
};

/// The destination; null if the programs of the server are missing (OUTBOX_TEST_PGBIN).
[[nodiscard]] PostgresDestination* shared_destination();

}  // namespace outbox::test
