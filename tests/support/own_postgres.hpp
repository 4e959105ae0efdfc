// A private PostgreSQL server in a temporary folder, which tests can kill and restart.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/free_port.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {

class OwnPostgres {
 public:
  /// Creates the cluster (OUTBOX_TEST_PGBIN) and starts it. `settings` are lines for
  /// postgresql.conf.
  explicit OwnPostgres(const std::vector<std::string>& settings = {},
                       std::map<std::string, std::string> environment = {});

  /// Makes a standby of the server behind this port of the loopback interface with pg_basebackup.
  [[nodiscard]] static std::unique_ptr<OwnPostgres> start_standby(int port);

  /// Starts it on the same port. Returns when it answers.
  void start();
  /// Stops it like pg_ctl stop -m immediate, without a checkpoint, so that the next start does
  /// recovery.
  void stop_immediate();
  /// Stops it like pg_ctl stop -m fast, with a checkpoint, so that the next start does no recovery.
  void stop();
  /// The folder of its data, and a folder in which it may write.
  [[nodiscard]] std::string data() const { return folder_.file("data"); }
  [[nodiscard]] std::string folder() const { return folder_.path().string(); }
  /// The URL of the superuser for the database "postgres".
  [[nodiscard]] std::string url() const;
  [[nodiscard]] int port() const { return port_; }
  /// The end of the server's log, for messages of failing tests.
  [[nodiscard]] std::string log() const;

 private:
  struct Copy {};
  OwnPostgres(Copy copy, int primary_port);
  void run(const std::string& name, const std::vector<std::string>& arguments) const;
  void configure(const std::vector<std::string>& settings) const;

  TempDir folder_;
  const std::map<std::string, std::string> environment_;  ///< Variables in addition to ours.
  int port_;
  std::unique_ptr<ChildProcess> server_;
};

}  // namespace outbox::test
