// Runs the suite over the HTTP sink, with a real server and TLS.
#include "conformance/sink/http_server.hpp"
#include "conformance/sink/server_harness.hpp"

namespace outbox::test {
namespace {

class HttpHarness final : public ServerHarness {
 public:
  explicit HttpHarness(std::unique_ptr<TempDir> folder, Certificate certificate)
      : folder_(std::move(folder)), certificate_(std::move(certificate)), server_(certificate_) {}

  std::string server() const override { return "http"; }
  bool may_kill() const override { return true; }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  std::string sink() const override { return "http"; }
  int port() const override { return server_.port(); }
  SinkSettings settings(int port) const override {
    return {{"url", "https://127.0.0.1:" + std::to_string(port) + "/hooks/{aggregate_type}"},
            {"allow_networks", "127.0.0.0/8"},
            {"tls_ca", certificate_.file},
            {"concurrency", "128"},
            {"deadline", "3s"},
            {"connect_timeout", "2s"}};
  }
  SinkSettings wrong_password(int port) const override {
    SinkSettings wrong = settings(port);
    wrong["url"] = "https://127.0.0.1:" + std::to_string(port) + "/login";
    wrong["username"] = "me";
    wrong["password"] = "quite-wrong";
    return wrong;
  }
  std::size_t too_large() const override { return 2'000'001; }
  bool keeps_line_breaks() const override { return false; }
  bool block() override {
    server_.answer_all(503);
    return true;
  }
  void unblock() override { server_.answer_all(0); }
  std::vector<Arrived> delivered() override {
    std::vector<Arrived> arrived;
    for (Received& request : server_.received()) {
      // A request without an answer may be delivered again, so it does not count.
      if (request.status != 200) continue;
      std::optional<std::string> key;
      if (request.headers.contains("outbox-key")) key = request.header("outbox-key");
      arrived.push_back(
          {.id = request.header("outbox-id"), .key = key, .body = std::move(request.body)});
    }
    return arrived;
  }

 private:
  std::unique_ptr<TempDir> folder_;
  Certificate certificate_;
  HttpServer server_;
};

}  // namespace

ServerHarnessKind server_harness_kind() {
  return {"http",
          []() -> std::unique_ptr<ServerHarness> {
            auto folder = std::make_unique<TempDir>();
            auto certificate = make_certificate(*folder);
            if (!certificate) return nullptr;
            return std::make_unique<HttpHarness>(std::move(folder), std::move(*certificate));
          },
          "needs openssl, to make a certificate"};
}

}  // namespace outbox::test
