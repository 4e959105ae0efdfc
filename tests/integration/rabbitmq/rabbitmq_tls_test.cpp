// Tests amqps://, with which the server's certificate and its name are checked, and logging in.
#include "integration/rabbitmq/rabbit_fixture.hpp"

namespace outbox::test {
namespace {

class RabbitTls : public RabbitSinkTest {
 protected:
  [[nodiscard]] static std::string file(const std::string& name) {
    return server().tls + "/" + name;
  }
  [[nodiscard]] static std::string secure_port() {
    return server().secure_url.substr(server().secure_url.rfind(':') + 1);
  }
};

TEST_F(RabbitTls, events_arrive_also_large_ones) {
  RabbitQueue queue(server());
  sink_ = make({{"url", server().secure_url}, {"tls_ca", file("ca.pem")}});
  Load load(queue.name());
  load.add_many(1000, 100);
  load.add("big", std::string(2'000'000, 'x'), "text/plain");
  load.add_many(1000, 100);
  MiniRelay relay(*sink_, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  expect_each_once(queue, load);
}

TEST_F(RabbitTls, the_certificate_is_checked) {
  const std::string by_address = "amqps://127.0.0.1:" + secure_port();
  for (const auto& settings :
       {Settings{{"url", server().secure_url}},
        Settings{{"url", server().secure_url}, {"tls_ca", file("client.pem")}},
        Settings{{"url", by_address}, {"tls_ca", file("ca.pem")}}}) {
    const std::string error = error_of_open(settings);
    EXPECT_TRUE(contains(error, "rabbitmq.tls_ca")) << error;
  }
  EXPECT_EQ(error_of_open({{"url", by_address}, {"insecure_tls", "true"}}), "");
}

TEST_F(RabbitTls, a_client_certificate_is_a_login) {
  const Settings settings{{"url", server().secure_url},
                          {"username", "-"},
                          {"password", "-"},
                          {"tls_ca", file("ca.pem")},
                          {"tls_certificate", file("client.pem")},
                          {"tls_key", file("client.key")}};
  EXPECT_EQ(error_of_open(settings), "");
  Settings another = settings;  // of nobody whom the server knows
  another["tls_certificate"] = file("server.pem");
  another["tls_key"] = file("server.key");
  const std::string error = error_of_open(another);
  EXPECT_TRUE(contains(error, "ACCESS_REFUSED")) << error;
}

TEST_F(RabbitTls, the_wrong_kind_of_port_is_named) {
  const std::string clear =
      error_of_open({{"url", "amqp://localhost:" + secure_port()}, {"connect_timeout", "2s"}});
  EXPECT_TRUE(contains(clear, "rabbitmq.url")) << clear;
  const std::string secure = error_of_open(
      {{"url", "amqps://localhost:" + std::to_string(server().port)}, {"connect_timeout", "2s"}});
  EXPECT_TRUE(contains(secure, "TLS")) << secure;
}

TEST_F(RabbitSinkTest, a_wrong_password_is_named_and_not_shown) {
  const std::string error = error_of_open({{"password", "hunter2"}});
  EXPECT_TRUE(contains(error, "ACCESS_REFUSED")) << error;
  EXPECT_TRUE(contains(error, "rabbitmq.password")) << error;
  EXPECT_FALSE(contains(error, "hunter2")) << error;
}

TEST_F(RabbitSinkTest, a_wrong_virtual_host_is_named) {
  const std::string error = error_of_open({{"url", url(server().port, "/no-such-host")}});
  EXPECT_TRUE(contains(error, "no-such-host")) << error;
  EXPECT_TRUE(contains(error, "virtual host in rabbitmq.url")) << error;
}

TEST_F(RabbitSinkTest, a_user_who_may_not_write_to_the_exchange_is_blocked) {
  const std::string user = unique_rabbit_name();
  (void)rabbitmqctl({"add_user", user, "secret"});
  (void)rabbitmqctl({"set_permissions", user, "", "", "^test"});
  RabbitExchange exchange(server());
  open({{"username", user}, {"password", "secret"}, {"exchange", exchange.name()}});
  Load load("order.placed");
  load.add_many(1, 1);
  const Outcome outcome = find_outcome(load);
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked);
  EXPECT_TRUE(contains(outcome.error.text(), "ACCESS_REFUSED")) << outcome.error.text();
  EXPECT_TRUE(contains(outcome.error.text(), "set_permissions")) << outcome.error.text();
  (void)rabbitmqctl({"delete_user", user});
}

}  // namespace
}  // namespace outbox::test
