// A kind of sink with a real server, under the suite of server_suite_test.cpp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <outbox/subscription.hpp>
#include <string>
#include <vector>

#include "conformance/sink/suite.hpp"
#include "support/servers.hpp"

namespace outbox::test {

using SinkSettings = std::map<std::string, std::string>;

class ServerHarness : public Harness {
 public:
  /// The server's name for scripts/servers, such as "redis".
  [[nodiscard]] virtual std::string server() const = 0;
  /// Whether the tests may end the server.
  [[nodiscard]] virtual bool may_kill() const {
    return environment("OUTBOX_TEST_SERVERS").has_value();
  }
  /// How often the tests end the server.
  [[nodiscard]] virtual std::size_t kills() const { return 3; }
  /// Ends the server without warning.
  virtual void kill() { kill_server(server()); }
  /// Starts the server again, with the same data and port.
  virtual void start() { start_server(server()); }
  [[nodiscard]] virtual std::string sink() const = 0;
  /// The server's port on 127.0.0.1.
  [[nodiscard]] virtual int port() const = 0;
  /// The port for clients that come through a gate, and the port of that gate (0: any). They differ
  /// for servers that name their own address to clients.
  [[nodiscard]] virtual int behind_gate() const { return port(); }
  [[nodiscard]] virtual int gate_port() const { return 0; }
  /// What a sink needs to deliver topic() through this port, with deadline 3s and connect_timeout
  /// 2s.
  [[nodiscard]] virtual SinkSettings settings(int port) const = 0;
  /// The same settings with a wrong password.
  [[nodiscard]] virtual SinkSettings wrong_password(int port) const = 0;
  /// The setting that has the password.
  [[nodiscard]] virtual std::string password_setting() const { return "password"; }

  /// A topic that has no place at the destination, if sending to it does not make one.
  [[nodiscard]] virtual std::optional<std::string> missing_topic() const { return std::nullopt; }
  /// Topics that no destination of this kind can have.
  [[nodiscard]] virtual std::vector<std::string> illegal_topics() const { return {}; }
  /// The size of a body that the server refuses, as it is set up here.
  [[nodiscard]] virtual std::size_t too_large() const = 0;
  /// Whether the server keeps headers with CR and LF; otherwise such a message is rejected.
  [[nodiscard]] virtual bool keeps_line_breaks() const { return true; }
  /// Whether the server must answer several times before it has a message. If all answers are lost,
  /// the message was then not delivered.
  [[nodiscard]] virtual bool is_dialogue() const { return false; }
  /// Whether the server becomes slow when nobody takes messages out, as delivered() does.
  [[nodiscard]] virtual bool must_be_emptied() const { return false; }
  /// Makes the destination take nothing until unblock(). Returns false if it has no such state.
  [[nodiscard]] virtual bool block() { return false; }
  virtual void unblock() {}

  std::unique_ptr<Sink> make() final { return make(settings(port())); }
  [[nodiscard]] std::unique_ptr<Sink> make(const SinkSettings& settings) const;
};

struct ServerHarnessKind {
  const char* name;
  /// Null if the server is missing.
  std::unique_ptr<ServerHarness> (*make)();
  const char* needs;
  bool can_fail{false};  ///< Whether it has spoil().
};

inline std::ostream& operator<<(std::ostream& out, const ServerHarnessKind& kind) {
  return out << kind.name;
}

/// The harness that is linked into this program.
[[nodiscard]] ServerHarnessKind server_harness_kind();

}  // namespace outbox::test
