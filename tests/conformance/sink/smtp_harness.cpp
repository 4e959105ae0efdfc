// Runs the suite over the SMTP sink, with a real server and a login. TLS is tested in
// smtp_sink_test.cpp, because the suite makes connections by the thousand.
#include "conformance/sink/server_harness.hpp"
#include "conformance/sink/smtp_server.hpp"

namespace outbox::test {
namespace {

/// Turns CR LF back into LF. In a mail every line break of a text is CR LF.
std::string with_lf(std::string text) {
  for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos; ++at)
    text.erase(at, 1);
  return text;
}

class SmtpHarness final : public ServerHarness {
 public:
  std::size_t scale(std::size_t usual) const override { return usual / 4; }
  std::string server() const override { return "smtp"; }
  bool may_kill() const override { return true; }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  std::string sink() const override { return "smtp"; }
  int port() const override { return server_.port(); }
  SinkSettings settings(int port) const override {
    return {{"url", "smtp://127.0.0.1:" + std::to_string(port)},
            {"username", "me"},
            {"password", "right"},
            {"tls", "off"},
            {"from", "Shop <shop@example.com>"},
            {"to", "ops@example.com"},
            {"x_headers", "*"},
            {"max_in_flight", "16"},
            {"deadline", "3s"},
            {"connect_timeout", "2s"}};
  }
  SinkSettings wrong_password(int port) const override {
    SinkSettings wrong = settings(port);
    wrong["password"] = "quite-wrong";
    return wrong;
  }
  std::size_t too_large() const override { return 2'000'001; }
  bool keeps_line_breaks() const override { return false; }
  bool is_dialogue() const override { return true; }
  bool block() override {
    server_.plan({{"mail", "452"}});
    return true;
  }
  void unblock() override { server_.plan({}); }
  std::vector<Arrived> delivered() override {
    std::vector<Arrived> arrived;
    for (ReceivedMail& mail : server_.mails(true)) {
      std::optional<std::string> key;
      if (mail.headers.contains("x-outbox-key")) key = mail.headers["x-outbox-key"];
      const bool text = mail.type.starts_with("text/");
      arrived.push_back({.id = std::move(mail.id),
                         .key = key,
                         .body = text ? with_lf(std::move(mail.body)) : std::move(mail.body)});
    }
    return arrived;
  }

 private:
  SmtpServer server_{{.login = true}};
};

}  // namespace

ServerHarnessKind server_harness_kind() {
  return {"smtp",
          []() -> std::unique_ptr<ServerHarness> {
            if (no_smtp_server()) return nullptr;
            return std::make_unique<SmtpHarness>();
          },
          kNoSmtpServer};
}

}  // namespace outbox::test
