// A private PgBouncer in transaction mode, before a private server.
#pragma once

#include <memory>
#include <string>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {

class OwnPgBouncer {
 public:
  /// Before the server on this port of the loopback interface. Returns when it answers.
  explicit OwnPgBouncer(int server_port);

  /// SIGKILL, and a new one on the same port.
  void restart();
  /// URL of the superuser for this database of the server.
  [[nodiscard]] std::string url(const std::string& database) const;

 private:
  void start();

  TempDir folder_;
  int port_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace outbox::test
