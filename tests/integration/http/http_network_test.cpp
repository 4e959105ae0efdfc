// Tests where the sink connects to, and how: addresses, proxies, TLS, HTTP/2.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "integration/http/fixture.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

using Kind = Outcome::Kind;

// ---- addresses

class HttpAddress : public testing::Test {
 protected:
  [[nodiscard]] Status open(const std::string& host, const std::string& allowed) {
    const auto sink = make_http_sink(fmt::format("http://{}:{}/", host, gate_.port()),
                                     {{"allow_networks", allowed}});
    return sink->open();
  }

  HttpServer server_;
  TcpGate gate_{server_.port()};
};

TEST_F(HttpAddress, inside_ones_are_refused_however_they_are_written) {
  for (const char* host :
       {"127.0.0.1", "localhost", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.1", "0", "[::1]",
        "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]"}) {
    const Status refused = open(host, "");
    ASSERT_FALSE(refused) << host;
    EXPECT_TRUE(contains(refused.error().text(), "must not connect to"))
        << host << ": " << refused.error().text();
    EXPECT_TRUE(contains(refused.error().hint, "http.allow_networks")) << host;
  }
  EXPECT_EQ(gate_.connections(), 0);
}

TEST_F(HttpAddress, those_that_the_settings_name_are_not) {
  for (const char* host : {"127.0.0.1", "2130706433", "0177.0.0.1", "127.1"})
    EXPECT_TRUE(open(host, "127.0.0.1")) << host;
  EXPECT_TRUE(eventually([&] { return gate_.connections() > 0; }));
  EXPECT_FALSE(open("127.0.0.1", "10.0.0.0/8"));
}

/// The sink decides for each connection, and not once at the opening.
TEST_F(HttpAddress, a_sink_that_may_not_connect_delivers_nothing) {
  Load load;
  load.add_many(1, 1);
  const auto sink = make_http_sink(fmt::format("http://127.0.0.1:{}/", gate_.port()),
                                   {{"allow_networks", "::1"}});
  EXPECT_FALSE(sink->open());
  const Message message = load.message(0, 1);
  EXPECT_EQ(sink->send({&message, 1}), 0U);
  EXPECT_EQ(gate_.connections(), 0);
}

// ---- proxies

/// Sets a variable of the environment, and restores its former value at the end.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    EXPECT_EQ(::setenv(name, value.c_str(), 1), 0);
  }
  ~Variable() { before_ ? (void)::setenv(name_, before_->c_str(), 1) : (void)::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  Variable(Variable&&) = delete;
  Variable& operator=(Variable&&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(HttpEnvironment, is_as_before_after_a_variable_was_set) {
  const char* const name = "OUTBOX_TEST_HTTP_VARIABLE";
  {
    const Variable outer(name, "outer");
    { const Variable inner(name, "inner"); }
    EXPECT_STREQ(std::getenv(name), "outer");
  }
  EXPECT_EQ(std::getenv(name), nullptr);
}

TEST(HttpEnvironment, names_no_proxy) {
  HttpServer server;
  TcpGate proxy(server.port());
  const std::string address = fmt::format("http://127.0.0.1:{}", proxy.port());
  const Variable http("http_proxy", address);
  const Variable https("https_proxy", address);
  const Variable all("ALL_PROXY", address);
  Load load;
  load.add_many(3, 3);
  EXPECT_EQ(Sending(make_http_sink(server.origin() + "/", {}), load).outcome().kind, Kind::acked);
  EXPECT_EQ(proxy.connections(), 0);
}

class HttpTls : public testing::Test {
 protected:
  void SetUp() override {
    certificate_ = make_certificate(folder_);
    if (!certificate_) GTEST_SKIP() << "needs openssl, to make a certificate";
    server_.emplace(certificate_);
    load_.add_many(3, 3);
  }
  [[nodiscard]] std::unique_ptr<Sink> make(SinkSettings settings) const {
    return make_http_sink(server_->origin() + "/", std::move(settings));
  }
  [[nodiscard]] std::string refusal(SinkSettings settings) const {
    const Status opened = make(std::move(settings))->open();
    return opened ? "" : opened.error().text();
  }

  TempDir folder_;
  std::optional<Certificate> certificate_;
  std::optional<HttpServer> server_;
  Load load_;
};

class HttpProxy : public HttpTls {};

TEST_F(HttpProxy, a_proxy_from_the_settings_is_asked_for_a_tunnel) {
  HttpServer proxy;
  const Variable none("no_proxy", "*");  // the environment has no say in it
  EXPECT_EQ(
      Sending(
          make({{"tls_ca", certificate_->file}, {"proxy", proxy.origin()}, {"allow_networks", ""}}),
          load_)
          .outcome()
          .kind,
      Kind::acked);
  EXPECT_EQ(server_->received().size(), 3U);
  ASSERT_FALSE(proxy.received().empty());
  for (const Received& request : proxy.received()) {
    EXPECT_EQ(request.method, "CONNECT");
    for (const char* ours : {"webhook-id", "outbox-id", "authorization"})
      EXPECT_FALSE(request.headers.contains(ours)) << ours;
  }
}

TEST_F(HttpProxy, without_tls_it_gets_the_request_itself) {
  HttpServer proxy;
  EXPECT_EQ(
      Sending(make_http_sink("http://receiver.invalid/in", {{"proxy", proxy.origin()}}), load_)
          .outcome()
          .kind,
      Kind::acked);
  std::size_t posts = 0;
  for (const Received& request : proxy.received()) {
    if (request.method == "POST" && request.path == "http://receiver.invalid/in") ++posts;
  }
  EXPECT_EQ(posts, 3U);
}

TEST_F(HttpProxy, one_that_refuses_is_named) {
  HttpServer proxy;
  proxy.answer_all(407);
  const std::string text = refusal(
      {{"tls_ca", certificate_->file}, {"proxy", "http://me:hush@" + proxy.origin().substr(7)}});
  EXPECT_TRUE(contains(text, "the proxy answered 407")) << text;
  EXPECT_TRUE(contains(text, "http.proxy")) << text;
  EXPECT_FALSE(contains(text, "hush")) << text;
}

TEST_F(HttpProxy, one_that_refuses_later_blocks) {
  HttpServer proxy;
  const auto sink = make({{"tls_ca", certificate_->file}, {"proxy", proxy.origin()}});
  ASSERT_TRUE(sink->open());
  proxy.answer_all(403);
  MiniRelay relay(*sink, load_);
  relay.offer_all();
  ASSERT_TRUE(relay.drain());
  ASSERT_FALSE(relay.failures().empty());
  for (const auto& failure : relay.failures())
    EXPECT_EQ(failure.outcome.kind, Kind::blocked) << failure.outcome.error.text();
  sink->close();
}

TEST_F(HttpProxy, a_receiver_that_fails_behind_one_is_in_doubt) {
  HttpServer proxy;
  const auto sink = make_http_sink(server_->origin() + "/close",
                                   {{"tls_ca", certificate_->file}, {"proxy", proxy.origin()}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load_);
  relay.offer(1);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 1U);
  EXPECT_EQ(relay.failures()[0].outcome.kind, Kind::unknown)
      << relay.failures()[0].outcome.error.text();
  sink->close();
}

// ---- TLS

TEST_F(HttpTls, only_a_trusted_certificate_will_do) {
  EXPECT_EQ(refusal({{"tls_ca", certificate_->file}}), "");
  const std::string text = refusal({});
  EXPECT_TRUE(contains(text, "certificate")) << text;
  EXPECT_TRUE(contains(text, "http.tls_ca")) << text;
  EXPECT_EQ(refusal({{"insecure_tls", "true"}}), "");
}

TEST_F(HttpTls, files_that_are_missing_or_wrong_are_named) {
  EXPECT_TRUE(contains(refusal({{"tls_ca", folder_.file("none.pem")}}), "http.tls_ca"));
  const SinkSettings wrong{{"tls_ca", certificate_->file},
                           {"tls_certificate", certificate_->key},
                           {"tls_key", certificate_->key}};
  EXPECT_TRUE(contains(refusal(wrong), "http.tls_certificate")) << refusal(wrong);
}

TEST_F(HttpTls, a_receiver_may_want_a_certificate_of_ours) {
  HttpServer strict(certificate_, true);
  const SinkSettings ours{{"tls_ca", certificate_->file},
                          {"tls_certificate", certificate_->file},
                          {"tls_key", certificate_->key}};
  EXPECT_EQ(Sending(make_http_sink(strict.origin() + "/", ours), load_).outcome().kind,
            Kind::acked);
  EXPECT_EQ(strict.received().size(), 3U);
}

TEST_F(HttpTls, a_port_that_speaks_no_tls_is_named) {
  HttpServer plain;
  const auto sink = make_http_sink(fmt::format("https://127.0.0.1:{}/", plain.port()), {});
  const Status opened = sink->open();
  ASSERT_FALSE(opened);
  EXPECT_TRUE(contains(opened.error().text(), fmt::format("https://127.0.0.1:{}", plain.port())));
}

// ---- HTTP/2

/// Runs nghttpd, which is in Debian's nghttp2-server.
class Http2 : public HttpTls {
 protected:
  void SetUp() override {
    HttpTls::SetUp();
    if (IsSkipped()) return;
    if (!std::filesystem::exists("/usr/sbin/nghttpd"))
      GTEST_SKIP() << "needs nghttpd (nghttp2-server)";
    log_ = folder_.file("nghttpd.log");
    TcpGate free(1);  // a free port
    port_ = free.port();
  }
  [[nodiscard]] bool start() {
    process_ = std::make_unique<ChildProcess>(ChildProcess::Options{
        .command = {"/usr/sbin/nghttpd", "--verbose", "--echo-upload", "--address=127.0.0.1",
                    std::to_string(port_), certificate_->key, certificate_->file},
        .output = log_});
    return eventually([&] { return contains(log(), "listen"); });
  }
  [[nodiscard]] std::string log() const {
    std::stringstream text;
    text << std::ifstream(log_).rdbuf();
    return text.str();
  }

  std::string log_;
  int port_{0};
  std::unique_ptr<ChildProcess> process_;
};

TEST_F(Http2, requests_share_a_connection) {
  ASSERT_TRUE(start());
  TcpGate gate(port_);
  Load load;
  load.add_many(300, 100);
  const auto sink = make_http_sink(fmt::format("https://127.0.0.1:{}/", gate.port()),
                                   {{"tls_ca", certificate_->file}, {"concurrency", "50"}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  relay.offer_all();
  EXPECT_EQ(relay.in_flight(), 50U);
  ASSERT_TRUE(relay.drain());
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  EXPECT_LE(gate.connections(), 4) << "two to open it, and two for the requests";
  EXPECT_TRUE(contains(log(), ":method: POST"));
  EXPECT_TRUE(contains(log(), "webhook-id: " + load.item(299).id_text));
  sink->close();
}

TEST_F(Http2, a_server_that_dies_leaves_all_in_doubt_or_unsent) {
  ASSERT_TRUE(start());
  TcpGate gate(port_);
  Load load;
  load.add_many(200, 200);
  const auto sink = make_http_sink(fmt::format("https://127.0.0.1:{}/", gate.port()),
                                   {{"tls_ca", certificate_->file}, {"concurrency", "50"}});
  ASSERT_TRUE(sink->open());
  MiniRelay relay(*sink, load);
  ASSERT_EQ(relay.offer(1), 1U);
  ASSERT_TRUE(relay.drain());
  gate.set(TcpGate::Mode::answers_lost);
  relay.offer_all();
  ASSERT_TRUE(eventually([&] { return gate.lost_answers() > 0; }));
  process_->kill();
  gate.set(TcpGate::Mode::refused);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 1U);
  for (const auto& failure : relay.failures()) {
    EXPECT_NE(failure.outcome.kind, Kind::rejected) << failure.outcome.error.text();
    EXPECT_NE(failure.outcome.kind, Kind::acked);
  }
  const auto in_doubt = [](const auto& failure) { return failure.outcome.kind == Kind::unknown; };
  EXPECT_TRUE(std::any_of(relay.failures().begin(), relay.failures().end(), in_doubt));
  sink->close();
}

}  // namespace
}  // namespace outbox::test
