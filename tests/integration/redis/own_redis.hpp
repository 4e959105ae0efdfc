// A private Redis server in a temporary folder, which a test may kill, stop and restart.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "integration/redis/redis_client.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {

class OwnRedis {
 public:
  /// Starts the server, and returns when it answers. `arguments` are those of redis-server
  /// ("--cluster-enabled", "yes").
  explicit OwnRedis(std::vector<std::string> arguments = {});

  /// Makes a replica of the server behind this port of the loopback interface. Returns when the
  /// replica has the server's data.
  [[nodiscard]] static std::unique_ptr<OwnRedis> start_replica(int port);

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] RedisClient client() const { return RedisClient(port_); }
  [[nodiscard]] std::string run(const Words& command) const { return client().run(command); }
  [[nodiscard]] std::string url() const;

  /// Kills the server with SIGKILL.
  void kill() { process_->kill(); }
  /// Starts the server with the same data and port, and returns when it answers.
  void start();
  /// Stops and continues the process with SIGSTOP and SIGCONT. While it is stopped it answers
  /// nothing, and its connections stay.
  void freeze() const;
  void thaw() const;
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  TempDir folder_;
  const std::vector<std::string> arguments_;
  const int port_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace outbox::test
