// A private PgBouncer in transaction mode in front of a private server.
#pragma once

#include <memory>
#include <string>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {

class OwnPgBouncer {
 public:
  /// Starts it in front of the server on this port of the loopback interface. Returns when it
  /// answers.
  explicit OwnPgBouncer(int server_port);

  /// Kills it with SIGKILL, and starts a new one on the same port.
  void restart();
  /// The URL of the superuser for this database of the server.
  [[nodiscard]] std::string url(const std::string& database) const;

 private:
  void start();

  TempDir folder_;
  int port_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace outbox::test
