// Tests the Kafka sink with TLS and logins on a real broker. Right settings deliver; anything else
// blocks, says why and shows no secret.
#include <gtest/gtest.h>

#include "base/log.hpp"
#include "conformance/sink/suite.hpp"
#include "integration/kafka/broker.hpp"
#include "integration/kafka/sink_maker.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

using Settings = KafkaProperties;

class KafkaTls : public testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS("OUTBOX_TEST_KAFKA_LOGIN", "a Kafka broker with its other listeners");
  }

  [[nodiscard]] static std::string file(const std::string& name) {
    return *environment("OUTBOX_TEST_KAFKA_TLS_FOLDER") + "/" + name;
  }
  [[nodiscard]] static Settings tls(const char* listener, Settings more = {}) {
    more.insert({{"brokers", *environment(listener)}, {"tls", "true"}, {"tls_ca", file("ca.pem")}});
    return more;
  }
  [[nodiscard]] static Settings login(Settings more = {}) {
    more.merge(kafka_login());
    return more;
  }
  /// Expects that the sink delivers several batches.
  static void expect_delivers(const Settings& settings) {
    BrokerTopic topic(2);
    Load load(topic.name());
    load.add_many(500, 20);
    const auto sink = make_kafka_sink(settings);
    MiniRelay relay(*sink, load);
    ASSERT_TRUE(relay.deliver());
    EXPECT_TRUE(relay.failures().empty());
    expect_complete_and_ordered(places(topic.arrived(), load), load);
  }
  /// The error of open(), which must fail. The relay treats it as it does `blocked`.
  static Error refusal(const Settings& settings) {
    const auto sink = make_kafka_sink(settings);
    const Status opened = sink->open();
    if (!opened) return opened.error();
    ADD_FAILURE() << "was accepted";
    return {};
  }
  static void expect_refused(const Settings& settings, const std::string& hint) {
    const Error error = refusal(settings);
    EXPECT_EQ(error.code, Errc::permission_denied) << error.text();
    EXPECT_NE(error.hint.find(hint), std::string::npos) << error.text();
    EXPECT_NE(error.message.find("localhost"), std::string::npos)
        << "not the broker's: " << error.text();
  }
};

TEST_F(KafkaTls, the_right_authority_delivers) { expect_delivers(tls("OUTBOX_TEST_KAFKA_TLS")); }

TEST_F(KafkaTls, a_certificate_of_an_unknown_authority_is_refused) {
  expect_refused(tls("OUTBOX_TEST_KAFKA_TLS", {{"tls_ca", file("client.pem")}}), "tls_ca");
  expect_refused({{"brokers", *environment("OUTBOX_TEST_KAFKA_TLS")}, {"tls", "true"}}, "tls_ca");
}

TEST_F(KafkaTls, a_certificate_of_another_name_is_refused) {
  const std::string listener = *environment("OUTBOX_TEST_KAFKA_TLS");
  const std::string address = "127.0.0.1" + listener.substr(listener.find(':'));
  const Error error = refusal(tls("OUTBOX_TEST_KAFKA_TLS", {{"brokers", address}}));
  EXPECT_EQ(error.code, Errc::permission_denied) << error.text();
  EXPECT_NE(error.hint.find("the names in the brokers' certificates"), std::string::npos);
  EXPECT_NE(error.message.find(address), std::string::npos) << error.text();
}

TEST_F(KafkaTls, certificates_are_not_checked_if_that_is_asked_for) {
  expect_delivers({{"brokers", *environment("OUTBOX_TEST_KAFKA_TLS")},
                   {"tls", "true"},
                   {"insecure_tls", "true"}});
}

TEST_F(KafkaTls, a_client_certificate_is_sent) {
  expect_delivers(tls("OUTBOX_TEST_KAFKA_MTLS",
                      {{"tls_certificate", file("client.pem")}, {"tls_key", file("client.key")}}));
  const Error error = refusal(tls("OUTBOX_TEST_KAFKA_MTLS"));
  EXPECT_NE(error.message.find("certificate"), std::string::npos) << error.text();
  EXPECT_EQ(error.code, Errc::permission_denied) << error.text();
}

TEST_F(KafkaTls, the_wrong_kind_of_port_is_hinted_at) {
  Settings clear = tls("OUTBOX_TEST_KAFKA_TLS");
  clear.erase("tls");
  clear.erase("tls_ca");
  for (Settings settings : {clear, Settings{{"tls", "true"}}}) {
    settings["connect_timeout"] = "1s";
    const Error error = refusal(settings);
    EXPECT_NE(error.hint.find("tls"), std::string::npos) << error.text();
  }
}

TEST_F(KafkaTls, the_right_login_delivers) { expect_delivers(login()); }

TEST_F(KafkaTls, scram_delivers) {
  if (rd_kafka_version() < 0x02060100)
    GTEST_SKIP() << "librdkafka " << rd_kafka_version_str()
                 << " cannot log in with SCRAM at brokers of Kafka 4, 2.6.1 can";
  expect_delivers(login({{"sasl_mechanism", "SCRAM-SHA-256"}}));
  expect_delivers(login({{"sasl_mechanism", "SCRAM-SHA-512"}}));
}

TEST_F(KafkaTls, properties_of_librdkafka_say_the_same) {
  const Settings ours = login();
  expect_delivers({{"brokers", ours.at("brokers")},
                   {"security.protocol", "sasl_ssl"},
                   {"ssl.ca.location", ours.at("tls_ca")},
                   {"sasl.mechanism", "PLAIN"},
                   {"sasl.username", ours.at("username")},
                   {"sasl.password", ours.at("password")}});
}

TEST_F(KafkaTls, a_wrong_login_is_refused) {
  expect_refused(login({{"username", "nobody"}}), "username");
  for (const char* mechanism : {"SCRAM-SHA-512", "PLAIN"}) {
    SCOPED_TRACE(mechanism);
    expect_refused(login({{"sasl_mechanism", mechanism}, {"password", "hunter2"}}), "password");
  }
}

TEST_F(KafkaTls, no_secret_is_in_errors_and_logs) {
  log::configure("debug", log::Format::text);
  testing::internal::CaptureStderr();
  expect_delivers(login({{"debug", "all"}}));
  std::string said;
  for (const char* mechanism : {"SCRAM-SHA-512", "PLAIN"}) {
    said +=
        refusal(
            login({{"sasl_mechanism", mechanism}, {"password", "hunter2-wrong"}, {"debug", "all"}}))
            .text();
  }
  said += testing::internal::GetCapturedStderr();
  log::configure("warn", log::Format::text);
  EXPECT_NE(said.find("SASL"), std::string::npos) << "the log was not captured";
  EXPECT_EQ(said.find("hunter2-wrong"), std::string::npos);
  EXPECT_EQ(said.find(*environment("OUTBOX_TEST_KAFKA_PASSWORD")), std::string::npos);
}

}  // namespace
}  // namespace outbox::test
