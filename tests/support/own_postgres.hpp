// A private PostgreSQL server in a temporary folder, to be killed and restarted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/testkit.hpp"

namespace outbox::test {

/// An unused port of the loopback interface.
[[nodiscard]] int free_port();

class OwnPostgres {
 public:
  /// Creates the cluster (OUTBOX_TEST_PGBIN) and starts it. `settings`: lines for postgresql.conf.
  explicit OwnPostgres(const std::vector<std::string>& settings = {});

  /// Starts it on the same port. Returns when it answers.
  void start();
  /// Like pg_ctl stop -m immediate: no checkpoint, and recovery at the next start.
  void stop_immediate();
  /// URL of the superuser, database "postgres".
  [[nodiscard]] std::string url() const;
  [[nodiscard]] int port() const { return port_; }
  /// The end of the server's log, for messages of failing tests.
  [[nodiscard]] std::string log() const;

 private:
  TempDir folder_;
  int port_;
  std::unique_ptr<ChildProcess> server_;
};

}  // namespace outbox::test
