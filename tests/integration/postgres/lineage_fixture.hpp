// Makes dumps, restores and roles for the tests of lineage.
#pragma once

#include <string>
#include <vector>

#include "integration/postgres/harness.hpp"
#include "support/own_postgres.hpp"

namespace outbox::test {

/// Runs a program of the server's version.
inline void run_program(std::vector<std::string> command, const std::string& output) {
  command[0] = *environment("OUTBOX_TEST_PGBIN") + "/" + command[0];
  ChildProcess process({.command = std::move(command), .output = output});
  ASSERT_EQ(process.wait(), 0) << "see " << output;
}

inline void dump_to(const std::string& file, const std::string& url) {
  run_program({"pg_dump", "--no-owner", "--file=" + file, url}, file + ".log");
}

inline void restore_from(const std::string& file, const std::string& url,
                         bool one_transaction = false) {
  std::vector<std::string> command{"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"};
  if (one_transaction) command.emplace_back("--single-transaction");
  command.insert(command.end(), {"-f", file, url});
  run_program(std::move(command), file + ".log");
}

inline void make_roles(const OwnPostgres& server) {
  for (const char* role :
       {"outbox_owner", "outbox_app", "outbox_relay", "outbox_reader", "outbox_console"})
    (void)Pg(server.url()).exec(std::string("CREATE ROLE ") + role);
}

inline std::int64_t next_xid(Pg& connection) {
  return std::stoll(connection.value("SELECT pg_snapshot_xmax(pg_current_snapshot())"));
}

/// Uses up transaction ids until this one is next.
inline void advance(Pg& connection, std::int64_t xid) {
  const std::int64_t count = xid - next_xid(connection);
  ASSERT_GE(count, 0);
  (void)connection.exec("DO $$ BEGIN FOR i IN 1.." + std::to_string(count) +
                        " LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$");
  ASSERT_EQ(next_xid(connection), xid);
}

}  // namespace outbox::test
