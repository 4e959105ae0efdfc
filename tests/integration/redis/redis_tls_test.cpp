// Tests rediss://, with which the server's certificate and its name are checked.
#include <filesystem>

#include "integration/redis/redis_fixture.hpp"
#include "support/free_port.hpp"

namespace outbox::test {
namespace {

class RedisTls : public RedisSinkTest {
 protected:
  void SetUp() override {
    RedisSinkTest::SetUp();
    if (IsSkipped()) return;
    if (!std::filesystem::exists("/usr/bin/openssl"))
      GTEST_SKIP() << "needs openssl to make certificates";
    make_certificate("server", "DNS:localhost");
    make_certificate("other", "DNS:localhost");
    port_ = free_port();
    (void)server({"--tls-port", std::to_string(port_), "--tls-cert-file", file("server.pem"),
                  "--tls-key-file", file("server.key"), "--tls-ca-cert-file", file("server.pem"),
                  "--tls-auth-clients", "optional"});
  }

  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
  void make_certificate(const std::string& name, const std::string& names) const {
    ChildProcess openssl(ChildProcess::Options{
        .command = {"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-addext", "subjectAltName=" + names, "-keyout", file(name + ".key"), "-out",
                    file(name + ".pem")}});
    ASSERT_EQ(openssl.wait(), 0);
  }
  [[nodiscard]] std::string url(const std::string& host) const {
    return "rediss://" + host + ":" + std::to_string(port_);
  }

  TempDir folder_;
  int port_{0};
};

TEST_F(RedisTls, events_arrive_also_large_ones) {
  open({{"url", url("localhost")}, {"tls_ca", file("server.pem")}});
  Load load(kStream);
  load.add_many(2000, 100);
  load.add("big", std::string(20'000'000, 'x'), "text/plain");
  load.add_many(2000, 100);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  expect_each_once(load);
}

TEST_F(RedisTls, the_certificate_is_checked) {
  for (const auto& settings :
       {Settings{{"url", url("localhost")}},
        Settings{{"url", url("localhost")}, {"tls_ca", file("other.pem")}},
        Settings{{"url", url("127.0.0.1")}, {"tls_ca", file("server.pem")}}}) {
    const std::string error = error_of_open(settings);
    EXPECT_TRUE(contains(error, "redis.tls_ca")) << error;
  }
  EXPECT_EQ(error_of_open({{"url", url("127.0.0.1")}, {"insecure_tls", "true"}}), "");
}

TEST_F(RedisTls, a_client_certificate_is_sent) {
  (void)server().run({"CONFIG", "SET", "tls-auth-clients", "yes"});
  EXPECT_NE(error_of_open({{"url", url("localhost")}, {"tls_ca", file("server.pem")}}), "");
  EXPECT_EQ(error_of_open({{"url", url("localhost")},
                           {"tls_ca", file("server.pem")},
                           {"tls_certificate", file("server.pem")},
                           {"tls_key", file("server.key")}}),
            "");
}

TEST_F(RedisTls, the_wrong_kind_of_port_is_named) {
  const std::string clear = "redis://localhost:" + std::to_string(port_);
  EXPECT_NE(error_of_open({{"url", clear}, {"connect_timeout", "2s"}}), "");
  const std::string secure = "rediss://localhost:" + std::to_string(server().port());
  EXPECT_TRUE(contains(error_of_open({{"url", secure}, {"connect_timeout", "2s"}}), "TLS"));
}

}  // namespace
}  // namespace outbox::test
