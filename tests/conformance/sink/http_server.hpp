// A receiver of webhooks in a process of its own (http_server.py), with or without TLS.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/certificate.hpp"
#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {

/// What the receiver got.
struct Received {
  int status{0};  ///< The status of the answer; 0 if it did not answer.
  std::string method;
  std::string path;
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;
  int active{0};  ///< How many requests were in progress, this one included.

  /// The header's value; empty if there is none.
  [[nodiscard]] std::string header(const std::string& name) const;
};

class HttpServer {
 public:
  /// With a certificate the server speaks TLS, and if `clients` is true, only to clients that have
  /// the same certificate. `script` may name another file in the folder of http_server.py.
  explicit HttpServer(std::optional<Certificate> certificate = std::nullopt, bool clients = false,
                      std::string script = "http_server.py");

  [[nodiscard]] int port() const { return port_; }
  /// The origin "https://127.0.0.1:PORT".
  [[nodiscard]] std::string origin() const;
  void kill() { process_->kill(); }
  /// Starts again with the same port; earlier requests are kept.
  void start();
  /// Answers everything with this status; with 0 the paths decide again.
  void answer_all(int status);
  [[nodiscard]] std::vector<Received> received() const;
  /// The file with the requests, one JSON object per line.
  [[nodiscard]] std::string record() const { return folder_.file("requests"); }

 private:
  TempDir folder_;
  std::optional<Certificate> certificate_;
  bool clients_{false};
  std::string script_;
  int port_{0};
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace outbox::test
