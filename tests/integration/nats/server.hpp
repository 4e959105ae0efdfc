// A NATS server for the tests, which is the shared one or one of a test's own, and streams on it.
// They are made and read by requests to JetStream's API, without the sink's code.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "conformance/sink/suite.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {

using Json = nlohmann::json;

struct NatsServer {
  int port{0};
  std::string user{};
  std::string password{};
  bool tls{false};  ///< Requests of the tests use TLS, without checks.
};

/// The shared server; nullopt if there is none.
[[nodiscard]] std::optional<NatsServer> shared_nats();

/// A server for one test, with JetStream in a temporary folder.
class OwnNats {
 public:
  /// `settings` are more lines of the configuration, in which {DIR} is the server's folder. The
  /// user is root, with the password root, unless they say otherwise.
  explicit OwnNats(const std::string& settings = "", bool jetstream = true);

  [[nodiscard]] NatsServer server(const std::string& user = "root",
                                  const std::string& password = "root") const {
    return {.port = port_, .user = user, .password = password};
  }

 private:
  [[nodiscard]] std::string ports_file() const;

  TempDir folder_;
  std::unique_ptr<ChildProcess> process_;
  int port_{0};
};

/// A message as JetStream has it.
struct NatsStored {
  std::string subject;
  std::map<std::string, std::string> headers;
  std::string body;
};

/// Answers on a subject with replies that are not JetStream's.
class NatsResponder {
 public:
  NatsResponder(const NatsServer& server, const std::string& subject);
  NatsResponder(const NatsResponder&) = delete;
  NatsResponder& operator=(const NatsResponder&) = delete;
  ~NatsResponder();

 private:
  struct Client;
  const std::unique_ptr<Client> client_;
};

/// A stream with a unique name and subjects, which is removed at the end. Throws if the server
/// refuses it.
class NatsStream {
 public:
  /// `config` has what differs from a stream in files that refuses what does not fit.
  explicit NatsStream(NatsServer server, Json config = Json::object());
  NatsStream(const NatsStream&) = delete;
  NatsStream& operator=(const NatsStream&) = delete;
  ~NatsStream();

  [[nodiscard]] const std::string& name() const { return name_; }
  /// A subject that the stream takes.
  [[nodiscard]] std::string subject(const std::string& rest = "order.events") const {
    return name_ + "." + rest;
  }
  [[nodiscard]] const NatsServer& server() const { return server_; }

  void create();
  void change(const Json& config);
  void purge();
  void remove();
  /// Publishes the messages in their order, and returns when the stream has them.
  void send(const std::vector<NatsStored>& messages) const;
  /// Asks JetStream's API: "CONSUMER.INFO.{stream}.x". Throws if the answer is an error.
  Json api(const std::string& subject, const Json& body = {}) const;
  /// All messages of the stream, in its order.
  [[nodiscard]] std::vector<NatsStored> read() const;
  [[nodiscard]] std::vector<Arrived> arrived() const;

 private:
  const NatsServer server_;
  const std::string name_;
  Json config_;
};

}  // namespace outbox::test
