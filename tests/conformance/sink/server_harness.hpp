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
  /// Its name for scripts/servers ("redis").
  [[nodiscard]] virtual std::string server() const = 0;
  /// Whether the tests may end it.
  [[nodiscard]] virtual bool may_kill() const {
    return environment("OUTBOX_TEST_SERVERS").has_value();
  }
  /// How often.
  [[nodiscard]] virtual std::size_t kills() const { return 3; }
  /// Ends it without warning.
  virtual void kill() { kill_server(server()); }
  /// Starts it again, same data and port.
  virtual void start() { start_server(server()); }
  [[nodiscard]] virtual std::string sink() const = 0;
  /// Where it listens on 127.0.0.1.
  [[nodiscard]] virtual int port() const = 0;
  /// Where it listens for clients that come through a gate, and the port of that gate; 0: any. For servers that name their own address to
  /// clients.
  [[nodiscard]] virtual int behind_gate() const { return port(); }
  [[nodiscard]] virtual int gate_port() const { return 0; }
  /// What a sink needs to deliver topic() through this port, with short limits: deadline 3s, connect_timeout 2s.
  [[nodiscard]] virtual SinkSettings settings(int port) const = 0;
  /// The same with a password that is wrong.
  [[nodiscard]] virtual SinkSettings wrong_password(int port) const = 0;
  /// The setting that has it.
  [[nodiscard]] virtual std::string password_setting() const { return "password"; }

  /// A topic that has no place at the destination, if sending to it does not make one.
  [[nodiscard]] virtual std::optional<std::string> missing_topic() const { return std::nullopt; }
  /// Topics that no destination of this kind can have.
  [[nodiscard]] virtual std::vector<std::string> illegal_topics() const { return {}; }
  /// A body that the server refuses, as it is set up here.
  [[nodiscard]] virtual std::size_t too_large() const = 0;
  /// Whether it keeps headers with CR and LF as they are. Else such a message is rejected.
  [[nodiscard]] virtual bool keeps_line_breaks() const { return true; }
  /// The server must answer several times before it has a message: when all answers are lost, the message was not delivered.
  [[nodiscard]] virtual bool is_dialogue() const { return false; }
  /// It becomes slow when nobody takes messages out; delivered() does.
  [[nodiscard]] virtual bool must_be_emptied() const { return false; }
  /// Makes the destination take nothing until unblock(): full, an alarm. False: it has no such state.
  [[nodiscard]] virtual bool block() { return false; }
  virtual void unblock() {}

  std::unique_ptr<Sink> make() final { return make(settings(port())); }
  [[nodiscard]] std::unique_ptr<Sink> make(const SinkSettings& settings) const;
};

struct ServerHarnessKind {
  const char* name;
  /// Null: the server is missing.
  std::unique_ptr<ServerHarness> (*make)();
  const char* needs;
  bool can_fail{false};  ///< It has spoil().
};

inline std::ostream& operator<<(std::ostream& out, const ServerHarnessKind& kind) {
  return out << kind.name;
}

/// The one linked into this program.
[[nodiscard]] ServerHarnessKind server_harness_kind();

}  // namespace outbox::test
