// A PgBouncer of the test's own, in transaction mode, before a server of the test's own.
#pragma once

#include <memory>
#include <string>

#include "support/testkit.hpp"

namespace outbox::test {

class OwnPgBouncer {
 public:
  /// Before the server on this port of the loopback interface. Starts it and waits until it answers.
  explicit OwnPgBouncer(int server_port);

  /// URL of the superuser; the database is the one of this name behind it.
  [[nodiscard]] std::string url(const std::string& database) const;

 private:
  TempDir folder_;
  int port_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace outbox::test
