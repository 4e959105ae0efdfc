// The parts of the Kafka sink that need no broker: settings, error codes, the bookkeeping.
#include <gtest/gtest.h>

#include <set>

#include "conformance/sink/making.hpp"
#include "sink/kafka/client.hpp"
#include "sink/kafka/config.hpp"
#include "sink/kafka/error_map.hpp"
#include "sink/kafka/first_batches.hpp"
#include "sink/kafka/in_flight.hpp"
#include "sink/kafka/read_back.hpp"
#include "sink/suspects.hpp"

namespace outbox::test {
namespace {

using namespace sink::kafka;  // NOLINT(google-build-using-namespace)
using Given = std::map<std::string, std::string>;

std::string complaint(Given settings) {
  return find_complaint(make_spec("kafka", std::move(settings)));
}

std::string complaint_about(const std::string& name, const std::string& value) {
  return complaint({{"brokers", "a:9092"}, {name, value}});
}

TEST(KafkaSettings, brokers_are_all_that_is_needed) {
  EXPECT_EQ(complaint({{"brokers", "a:9092,b:9092"}}), "");
  EXPECT_NE(complaint({}).find("kafka.brokers: is missing"), std::string::npos);
}

TEST(KafkaSettings, properties_of_librdkafka_are_passed_on) {
  for (const auto& [name, value] : Given{{"security.protocol", "sasl_ssl"},
                                         {"sasl.mechanism", "PLAIN"},
                                         {"sasl.username", "u"},
                                         {"sasl.password", "p"},
                                         {"compression.type", "zstd"},
                                         {"message.max.bytes", "2000000"},
                                         {"client.id", "shop"},
                                         {"acks", "all"},
                                         {"max.in.flight", "1"},
                                         {"partitioner", "consistent"},
                                         {"sasl.kerberos.principal", "outbox/host@EXAMPLE.ORG"},
                                         {"topic.metadata.refresh.interval.ms", "60000"}}) {
    EXPECT_EQ(complaint_about(name, value), "") << name;
  }
}

TEST(KafkaSettings, words_of_the_shell_command_are_plain) {
  for (const char* name :
       {"sasl.kerberos.principal", "sasl.kerberos.keytab", "sasl.kerberos.service.name"}) {
    EXPECT_NE(complaint_about(name, "x; touch /tmp/y; #").find("shell command"), std::string::npos);
  }
}

TEST(KafkaSettings, times_must_leave_time_to_deliver) {
  EXPECT_NE(complaint_about("linger", "6s").find("half of delivery_deadline"), std::string::npos);
  EXPECT_NE(complaint_about("delivery_deadline", "1000000h").find("from 1s to 1h"),
            std::string::npos);
}

TEST(KafkaSettings, unsafe_ones_are_refused_with_the_reason) {
  for (const auto& [name, value] : Given{{"acks", "1"},
                                         {"request.required.acks", "0"},
                                         {"enable.idempotence", "false"},
                                         {"enable.gapless.guarantee", "false"},
                                         {"message.timeout.ms", "1000"},
                                         {"delivery.timeout.ms", "1000"},
                                         {"retries", "0"},
                                         {"max.in.flight", "6"},
                                         {"max.in.flight.requests.per.connection", "100"},
                                         {"delivery.report.only.error", "true"},
                                         {"transactional.id", "x"},
                                         {"bootstrap.servers", "b:9092"},
                                         {"linger.ms", "5"},
                                         {"plugin.library.paths", "/tmp/x.so"},
                                         {"sasl.kerberos.kinit.cmd", "rm"},
                                         {"partitioner", "random"},
                                         {"partitioner", "consistent_random"},
                                         {"topic.partitioner", "random"},
                                         {"topic.message.timeout.ms", "300"},
                                         {"topic.acks", "0"},
                                         {"queuing.strategy", "lifo"},
                                         {"ssl.providers", "/tmp/x.so"},
                                         {"enable.ssl.certificate.verification", "false"},
                                         {"ssl.endpoint.identification.algorithm", "none"}}) {
    EXPECT_NE(complaint_about(name, value).find("is refused: "), std::string::npos) << name;
  }
}

TEST(KafkaSettings, certificates_can_be_ignored_on_purpose_only) {
  EXPECT_EQ(complaint({{"brokers", "a"},
                       {"tls", "true"},
                       {"insecure_tls", "true"},
                       {"enable.ssl.certificate.verification", "false"}}),
            "");
}

TEST(KafkaSettings, without_tls_others_than_this_machine_can_listen_in) {
  const auto weak = [](const char* brokers, const char* protocol, bool insecure = false) {
    const Conf conf(rd_kafka_conf_new());
    EXPECT_FALSE(set_property(conf.get(), "security.protocol", protocol));
    const auto found = find_weaknesses({.brokers = brokers, .tls = {.insecure = insecure}}, *conf);
    return found.empty() ? std::string() : found.front().setting;
  };
  EXPECT_EQ(weak("10.0.0.1:9092", "plaintext"), "no TLS");
  EXPECT_EQ(weak("127.0.0.1:9092,kafka.example.com", "sasl_plaintext"), "no TLS");
  EXPECT_EQ(weak("localhost, 127.0.0.1:9092,[::1]:9092", "plaintext"), "");
  EXPECT_EQ(weak("kafka.example.com", "sasl_ssl"), "");
  EXPECT_EQ(weak("kafka.example.com", "ssl", true), "insecure_tls");
}

/// librdkafka's property as our settings make it; "?" if they are wrong.
std::string made(const KafkaSettings& settings, const char* property_name) {
  FieldErrors errors;
  const Conf conf = make_conf(settings, errors);
  return errors.empty() ? property(*conf, property_name) : "?";
}

TEST(KafkaSettings, of_tls_and_logins_become_properties) {
  KafkaSettings settings{.brokers = "a:9092"};
  EXPECT_EQ(made(settings, "security.protocol"), "plaintext");
  settings.encrypted = true;
  settings.tls = {.ca = "ca.pem", .certificate = "me.pem", .key = "me.key"};
  EXPECT_EQ(made(settings, "security.protocol"), "ssl");
  EXPECT_EQ(made(settings, "ssl.ca.location"), "ca.pem");
  EXPECT_EQ(made(settings, "ssl.certificate.location"), "me.pem");
  EXPECT_EQ(made(settings, "ssl.key.location"), "me.key");
  EXPECT_EQ(made(settings, "ssl.endpoint.identification.algorithm"), "https");
  EXPECT_EQ(made(settings, "enable.ssl.certificate.verification"), "true");
  settings.username = "u";
  settings.password = "p";
  EXPECT_EQ(made(settings, "security.protocol"), "sasl_ssl");
  EXPECT_EQ(made(settings, "sasl.mechanisms"), "SCRAM-SHA-512");
  EXPECT_EQ(made(settings, "sasl.username"), "u");
  EXPECT_EQ(made(settings, "sasl.password"), "p");
  settings.mechanism = "PLAIN";
  settings.encrypted = false;
  EXPECT_EQ(made(settings, "security.protocol"), "sasl_plaintext");
  EXPECT_EQ(made(settings, "sasl.mechanisms"), "PLAIN");
}

TEST(KafkaSettings, insecure_tls_checks_no_certificate_but_says_no_more_than_a_property) {
  KafkaSettings settings{.brokers = "a:9092", .encrypted = true, .tls = {.insecure = true}};
  EXPECT_EQ(made(settings, "enable.ssl.certificate.verification"), "false");
  settings.properties["ssl.endpoint.identification.algorithm"] = "none";
  EXPECT_EQ(made(settings, "enable.ssl.certificate.verification"), "true");
  EXPECT_EQ(made(settings, "ssl.endpoint.identification.algorithm"), "none");
}

TEST(KafkaSettings, leave_time_to_say_that_a_topic_is_missing) {
  KafkaSettings settings{.brokers = "a:9092"};
  EXPECT_EQ(made(settings, "topic.metadata.propagation.max.ms"), "3000");
  settings.delivery_deadline = std::chrono::seconds(3);
  EXPECT_EQ(made(settings, "topic.metadata.propagation.max.ms"), "1000");
  settings.properties["topic.metadata.propagation.max.ms"] = "2000";
  EXPECT_EQ(made(settings, "topic.metadata.propagation.max.ms"), "2000");
}

TEST(KafkaSettings, that_say_a_thing_twice_or_by_half_are_refused) {
  const auto expect = [](Given given, const std::string& says) {
    given.emplace("brokers", "a:9092");
    const std::string text = complaint(std::move(given));
    EXPECT_NE(text.find(says), std::string::npos) << text;
  };
  const Given login{{"tls", "true"}, {"username", "u"}, {"password", "p"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    Given all = login;
    all[name] = value;
    return all;
  };
  EXPECT_EQ(complaint(with("brokers", "a:9092")), "");
  expect(with("security.protocol", "sasl_ssl"), "kafka.security.protocol: is set beside");
  expect(with("sasl.mechanism", "PLAIN"), "kafka.sasl.mechanism: is set beside");
  expect(with("sasl.username", "other"), "kafka.sasl.username: is set beside");
  expect({{"tls", "true"}, {"tls_ca", "a"}, {"ssl.ca.location", "b"}},
         "kafka.ssl.ca.location: is set beside");
  expect({{"username", "u"}}, "kafka.password: is missing");
  expect({{"password", "hunter2"}}, "kafka.username: is missing");
  expect({{"tls", "true"}, {"tls_key", "k"}}, "kafka.tls_certificate: is missing");
  expect({{"tls_ca", "a"}}, "kafka.tls_ca: has no effect without TLS");
  EXPECT_EQ(complaint({{"brokers", "a"}, {"security.protocol", "ssl"}, {"tls_ca", "a"}}), "");
  expect(with("sasl_mechanism", "GSSAPI"), "SCRAM-SHA-512");
}

TEST(KafkaSettings, of_topics_that_are_made) {
  EXPECT_EQ(complaint({{"brokers", "a"}, {"create.partitions", "6"}, {"create.replication", "3"}}),
            "");
  EXPECT_EQ(complaint_about("create.partitions", "6"), "");
  EXPECT_NE(complaint_about("create.replication", "3").find("kafka.create.partitions: is missing"),
            std::string::npos);
  EXPECT_NE(complaint_about("create.partition", "3").find("did you mean create.partitions?"),
            std::string::npos);
}

TEST(KafkaSettings, an_unknown_one_names_the_nearest) {
  EXPECT_NE(complaint_about("compresion.type", "lz4").find("did you mean compression.type?"),
            std::string::npos);
  EXPECT_NE(complaint_about("delivery_deadlin", "1s").find("did you mean delivery_deadline?"),
            std::string::npos);
  EXPECT_NE(complaint_about("sasl.pasword", "secret").find("did you mean sasl.password?"),
            std::string::npos);
}

TEST(KafkaSettings, a_wrong_value_says_what_is_wrong_and_no_secret) {
  EXPECT_NE(complaint_about("compression.type", "rar").find("kafka.compression.type"),
            std::string::npos);
  EXPECT_NE(complaint_about("delivery_deadline", "10").find("duration"), std::string::npos);
  EXPECT_NE(complaint_about("delivery_deadline", "10ms").find("from 1s to 1h"), std::string::npos);
  EXPECT_NE(complaint_about("max_in_flight", "0").find("from 1 to 100000"), std::string::npos);
  EXPECT_EQ(complaint_about("ssl.key.pem", "hunter2").find("hunter2"), std::string::npos);
}

TEST(KafkaTopicName, is_what_brokers_accept) {
  for (const std::string& good : {std::string("a"), std::string("order.events"),
                                  std::string("A_b-9"), std::string(249, 'x')}) {
    EXPECT_TRUE(is_topic_name(good)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string("a b"), std::string("a/b"),
        std::string(250, 'x'), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(is_topic_name(bad)) << bad;
  }
}

TEST(KafkaErrors, say_who_is_at_fault) {
  const auto expect = [](Fault fault, std::initializer_list<rd_kafka_resp_err_t> codes) {
    for (const auto code : codes) EXPECT_EQ(find_fault(code), fault) << rd_kafka_err2name(code);
  };
  expect(Fault::message,
         {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE,
          RD_KAFKA_RESP_ERR_INVALID_RECORD});
  expect(Fault::destination,
         {RD_KAFKA_RESP_ERR_INVALID_MSG, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,
          RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
          RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
          RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR__AUTHENTICATION,
          RD_KAFKA_RESP_ERR__SSL, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
          RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN,
          RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
          RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, RD_KAFKA_RESP_ERR_INVALID_PARTITIONS,
          RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR, RD_KAFKA_RESP_ERR_POLICY_VIOLATION});
  expect(Fault::none, {RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT,
                       RD_KAFKA_RESP_ERR__FATAL, RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE,
                       RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER});
}

TEST(KafkaErrors, are_told_with_topic_code_and_hint) {
  const Error error = describe(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "order.events");
  EXPECT_EQ(error.code, Errc::not_found);
  EXPECT_EQ(error.origin, "kafka:3");
  EXPECT_EQ(error.message, "kafka: topic order.events: Broker: Unknown topic or partition");
  EXPECT_FALSE(error.hint.empty());
}

TEST(KafkaInFlight, gives_back_what_it_was_given) {
  InFlight in_flight;
  in_flight.begin_batch(TimePoint{});
  std::map<std::size_t, Token> slots;
  for (Token token = 1; token <= 100; ++token)
    slots.emplace(in_flight.add(token, static_cast<std::int64_t>(token) + 7, 1), token);
  EXPECT_EQ(slots.size(), 100U) << "each has a slot of its own";
  for (const auto& [slot, token] : slots) {
    const auto entry = in_flight.take(slot);
    EXPECT_EQ(entry.token, token);
    EXPECT_EQ(entry.seq, static_cast<std::int64_t>(token) + 7);
  }
  EXPECT_EQ(in_flight.size(), 0U);
}

TEST(KafkaInFlight, knows_the_oldest) {
  InFlight in_flight;
  EXPECT_FALSE(in_flight.oldest());
  const auto at = [](int second) { return TimePoint(std::chrono::seconds(second)); };
  in_flight.begin_batch(at(1));
  const auto first = in_flight.add(1, 1, 1);
  in_flight.begin_batch(at(2));
  const auto second = in_flight.add(2, 2, 1);
  in_flight.begin_batch(at(3));  // Nothing was taken.
  in_flight.begin_batch(at(4));
  const auto third = in_flight.add(3, 3, 1);
  EXPECT_EQ(in_flight.oldest(), at(1));
  (void)in_flight.take(second);
  EXPECT_EQ(in_flight.oldest(), at(1));
  (void)in_flight.take(first);
  EXPECT_EQ(in_flight.oldest(), at(4));
  (void)in_flight.take(third);
  EXPECT_FALSE(in_flight.oldest());
}

TEST(KafkaInFlight, gives_up_all_that_is_left) {
  InFlight in_flight;
  in_flight.begin_batch(TimePoint{});
  for (Token token = 1; token <= 10; ++token) (void)in_flight.take(in_flight.add(token, 1, 1));
  for (Token token = 11; token <= 20; ++token) (void)in_flight.add(token, 1, 1);
  std::set<Token> left;
  in_flight.take_all([&](const InFlight::Entry& entry) { left.insert(entry.token); });
  EXPECT_EQ(left.size(), 10U);
  EXPECT_EQ(*left.begin(), 11U);
  EXPECT_EQ(in_flight.size(), 0U);
}

TEST(KafkaSuspects, are_cleared_one_by_one) {
  sink::Suspects suspects(100);
  suspects.add(1, 10);
  suspects.add(2, 20);
  EXPECT_EQ(suspects.take_bytes(), 30U);
  EXPECT_EQ(suspects.take_bytes(), 0U);
  suspects.settled(1);
  EXPECT_TRUE(suspects.any());
  suspects.settled(2);
  EXPECT_FALSE(suspects.any());
}

TEST(KafkaSuspects, that_never_come_back_are_forgotten) {
  sink::Suspects suspects(100);
  suspects.add(1, 10);
  for (std::int64_t stranger = 1000; stranger < 1099; ++stranger) suspects.settled(stranger);
  EXPECT_TRUE(suspects.any());
  suspects.settled(1099);
  EXPECT_FALSE(suspects.any());
}

TEST(KafkaFirstBatches, one_message_goes_to_a_partition_until_it_is_acked) {
  sink::kafka::FirstBatches first;
  const auto now = std::chrono::steady_clock::now();
  ASSERT_TRUE(first.may_send(3, now));
  first.sent(3);
  EXPECT_FALSE(first.may_send(3, now));
  EXPECT_TRUE(first.may_send(2, now)) << "another partition";
  first.not_acked(3);
  ASSERT_TRUE(first.may_send(3, now));
  first.sent(3);
  EXPECT_FALSE(first.may_send(3, now)) << "a failure proves nothing";
  first.acked(3, now);
  first.sent(3);
  EXPECT_TRUE(first.may_send(3, now));
}

TEST(KafkaFirstBatches, a_partition_forgets_a_silent_producer_and_never_knew_a_new_one) {
  sink::kafka::FirstBatches first;
  const auto now = std::chrono::steady_clock::now();
  first.sent(0);
  first.acked(0, now);
  first.sent(0);
  EXPECT_TRUE(first.may_send(0, now));
  EXPECT_FALSE(first.may_send(0, now + sink::kafka::FirstBatches::kRemembered));
  first.clear();
  first.sent(0);
  EXPECT_FALSE(first.may_send(0, now));
}

TEST(KafkaPartitionRead, is_done_at_the_end_of_the_time_it_began) {
  PartitionRead read(3);
  for (int offset = 0; offset < 3; ++offset) {
    EXPECT_FALSE(read.done());
    read.record(offset, 100 + offset);
  }
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.removed(), 0);
  EXPECT_TRUE(PartitionRead(0).done()) << "an empty one";
}

TEST(KafkaPartitionRead, counts_what_retention_removed_and_knows_before_when) {
  PartitionRead read(12);
  read.record(10, 500);
  read.record(11, 600);
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.removed(), 10);
  EXPECT_EQ(read.removed_before_us(), 500);
}

TEST(KafkaPartitionRead, counts_what_compaction_removed) {
  PartitionRead read(10);
  read.record(0, 500);
  read.record(3, 700);
  read.record(4, 800);
  read.record(7, 600);
  read.record(9, 900);
  EXPECT_EQ(read.removed(), 5);
  EXPECT_EQ(read.removed_before_us(), 900);
}

TEST(KafkaPartitionRead, of_which_nothing_is_left) {
  PartitionRead read(10);
  read.at_end(10, 900);
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.removed(), 10);
  EXPECT_EQ(read.removed_before_us(), 900);
}

TEST(KafkaPartitionRead, what_came_since_is_not_counted) {
  PartitionRead read(4);
  read.record(0, 100);
  read.record(1, 200);
  read.at_end(9, 300);  // This is the first record behind the end; 2 and 3 are gone.
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.removed(), 2);
  EXPECT_EQ(read.removed_before_us(), 300);
}

TEST(KafkaPartitionRead, an_end_that_was_reached_too_early_is_not_the_end) {
  PartitionRead read(4);
  read.record(0, 100);
  read.at_end(1, 300);
  EXPECT_FALSE(read.done());
  EXPECT_EQ(read.removed(), 0);
}

}  // namespace
}  // namespace outbox::test
