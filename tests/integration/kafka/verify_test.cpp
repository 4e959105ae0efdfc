// Tests `outbox verify --sink` with a real broker. The program delivers, the topics are changed,
// and the report names what differs.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "integration/kafka/broker.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/relay_process.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using nlohmann::json;
using std::chrono::hours;

std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Writes records as another program might.
class Forger {
 public:
  Forger(const std::string& brokers, std::string topic, const std::string& transactional = "")
      : topic_(std::move(topic)) {
    KafkaProperties properties;
    if (!transactional.empty()) properties["transactional.id"] = transactional;
    client_ = kafka_client(RD_KAFKA_PRODUCER, brokers, properties);
  }

  void write(const KafkaRecord& record, std::int64_t sent_ms = now_ms()) {
    rd_kafka_headers_t* headers = rd_kafka_headers_new(record.headers.size());
    for (const auto& [name, value] : record.headers)
      rd_kafka_header_add(headers, name.c_str(), -1, value.data(),
                          static_cast<ssize_t>(value.size()));
    const std::string body = record.value.value_or("");
    ASSERT_EQ(rd_kafka_producev(
                  client_.get(), RD_KAFKA_V_TOPIC(topic_.c_str()),
                  RD_KAFKA_V_PARTITION(record.partition), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                  RD_KAFKA_V_TIMESTAMP(sent_ms), RD_KAFKA_V_HEADERS(headers),
                  RD_KAFKA_V_VALUE(const_cast<char*>(body.data()), body.size()), RD_KAFKA_V_END),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void flush() { ASSERT_EQ(rd_kafka_flush(client_.get(), 30'000), RD_KAFKA_RESP_ERR_NO_ERROR); }
  [[nodiscard]] rd_kafka_t* client() { return client_.get(); }

 private:
  const std::string topic_;
  KafkaClient client_;
};

KafkaRecord with_id(const std::string& id) {
  return {.partition = 0, .key = {}, .value = "{}", .headers = {{"outbox-id", id}}};
}

/// Removes the records of the partition before this offset, as retention does.
void remove_before(const std::string& brokers, const std::string& topic, std::int64_t offset) {
  const auto client = kafka_client(RD_KAFKA_PRODUCER, brokers);
  const std::unique_ptr<rd_kafka_topic_partition_list_t,
                        KafkaDelete<rd_kafka_topic_partition_list_destroy>>
      offsets(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(offsets.get(), topic.c_str(), 0)->offset = offset;
  const std::unique_ptr<rd_kafka_DeleteRecords_t, KafkaDelete<rd_kafka_DeleteRecords_destroy>>
      request(rd_kafka_DeleteRecords_new(offsets.get()));
  const std::unique_ptr<rd_kafka_queue_t, KafkaDelete<rd_kafka_queue_destroy>> queue(
      rd_kafka_queue_new(client.get()));
  rd_kafka_DeleteRecords_t* all[] = {request.get()};
  rd_kafka_DeleteRecords(client.get(), all, 1, nullptr, queue.get());
  const std::unique_ptr<rd_kafka_event_t, KafkaDelete<rd_kafka_event_destroy>> answer(
      rd_kafka_queue_poll(queue.get(), 30'000));
  ASSERT_TRUE(answer);
  ASSERT_EQ(rd_kafka_event_error(answer.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
}

/// The base of tests that run the program on a SQLite file in a folder of its own.
class Verifying : public testing::Test {
 protected:
  struct Ran {
    int status{-1};
    std::string output;
  };

  [[nodiscard]] std::unique_ptr<ChildProcess> start(const std::vector<std::string>& arguments,
                                                    const std::string& output) const {
    ChildProcess::Options options{.command = {"outbox"}, .program = outbox_program()};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    options.command.insert(options.command.end(), {"-c", folder_.file("outbox.toml")});
    options.without = "OUTBOX_";
    options.output = output;
    return std::make_unique<ChildProcess>(options);
  }
  Ran run(const std::vector<std::string>& arguments) {
    const std::string output = folder_.file(fmt::format("output-{}", ++runs_));
    const auto status = start(arguments, output)->wait(std::chrono::minutes(2));
    return {.status = status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1,
            .output = read_text(output)};
  }
  void succeeds(const std::vector<std::string>& arguments) {
    const Ran ran = run(arguments);
    ASSERT_EQ(ran.status, 0) << ran.output;
  }

  void configure(const std::string& topic, const std::string& brokers,
                 const std::string& format = "raw") {
    std::ofstream(folder_.file("outbox.toml"))
        << fmt::format("[store]\nurl = \"sqlite:{}\"\n[subscription.orders]\nsink = \"kafka\"\n",
                       folder_.file("shop.db"))
        << fmt::format("topic = \"{}\"\nformat = \"{}\"\n", topic, format)
        << fmt::format("[subscription.orders.kafka]\nbrokers = \"{}\"\n", brokers);
    if (runs_ == 0) {
      ASSERT_NO_FATAL_FAILURE(succeeds({"migrate"}));
    }
    ASSERT_NO_FATAL_FAILURE(succeeds({"subscription", "apply"}));
  }
  void enqueue(int count, const std::string& type = "order") {
    const std::string file = folder_.file(fmt::format("events-{}", ++runs_));
    std::ofstream events(file);
    for (int i = 0; i < count; ++i) {
      events
          << fmt::format(
                 R"({{"aggregate_type":"{}","aggregate_id":"{}","event_type":"Placed","payload":{{}}}})",
                 type, i % 50)
          << "\n";
    }
    events.close();
    ASSERT_NO_FATAL_FAILURE(succeeds({"enqueue", "--jsonl", file}));
  }
  void deliver() { ASSERT_NO_FATAL_FAILURE(succeeds({"relay", "--once"})); }

  /// Verifies, expects this exit status, and returns the report on the subscription.
  json verify(int expected) {
    const Ran ran = run({"verify", "--json", "--sink", "--subscription", "orders"});
    EXPECT_EQ(ran.status, expected) << ran.output;
    // The report follows what was written to stderr, which says what is wrong.
    const std::size_t from = std::min(ran.output.find("{\n"), ran.output.size());
    const json report = json::parse(ran.output.substr(from), nullptr, false);
    EXPECT_FALSE(report.is_discarded()) << ran.output;
    return report.is_discarded() ? json() : report["subscriptions"][0];
  }
  [[nodiscard]] static std::string faults(const json& report) {
    std::string text;
    for (const json& fault : report["faults"])
      text += fault["kind"].get<std::string>() + ": " + fault["text"].get<std::string>() + "\n";
    return text;
  }

  const TempDir folder_;
  int runs_{0};
};

class KafkaVerify : public Verifying {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_KAFKA();
    brokers_ = kafka_brokers().value_or("");
  }

  /// Delivers so many events to a topic, and returns its records.
  std::vector<KafkaRecord> delivered(const BrokerTopic& topic, int count) {
    configure(topic.name(), brokers_);
    enqueue(count);
    deliver();
    return topic.read();
  }

  std::string brokers_;
};

TEST_F(KafkaVerify, all_that_was_delivered_is_there) {
  BrokerTopic topic(20);  // more partitions than are read at once
  configure(topic.name(), brokers_);
  json report = verify(0);
  EXPECT_EQ(report["sink"]["messages"], 0);
  enqueue(500);
  ASSERT_NO_FATAL_FAILURE(deliver());
  enqueue(7);
  report = verify(0);
  EXPECT_EQ(report["pending"], 7);
  EXPECT_EQ(report["sink"]["messages"], 500);
  EXPECT_EQ(report["sink"]["duplicates"], 0);
  EXPECT_EQ(report["sink"]["ghosts"], 0);
  EXPECT_EQ(report["sink"]["missing"], 0);
  EXPECT_EQ(report["sink"]["removed"], 0);
  const Ran text = run({"verify", "--sink"});
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.output.find("500 messages in the destination, 0 of them duplicates"),
            std::string::npos)
      << text.output;
}

TEST_F(KafkaVerify, each_format_has_the_id_in_its_own_header) {
  std::size_t formats = 0;
  for (const auto& [format, header] :
       std::vector<std::pair<std::string, std::string>>{{"json", "outbox-id"},
                                                        {"cloudevents", "ce_id"},
                                                        {"cloudevents-json", "outbox-id"},
                                                        {"debezium", "id"}}) {
    BrokerTopic topic(1);
    configure(topic.name(), brokers_, format);
    enqueue(10, "order" + std::to_string(++formats));
    ASSERT_NO_FATAL_FAILURE(deliver());
    const auto records = topic.read();
    ASSERT_EQ(records.size(), 10U) << format;
    for (const auto& record : records) EXPECT_EQ(record.headers.at(header).size(), 36U) << format;
    if (format == "debezium") {
      EXPECT_EQ(records[0].headers.size(), 1U) << "consumers of the event router know no others";
      EXPECT_EQ(records[0].value, "{}");
    }
    // What was delivered before went to other topics.
    const json report = verify(formats == 1 ? 0 : 3);
    EXPECT_EQ(report["sink"]["messages"], 10) << format;
    EXPECT_EQ(report["sink"]["without_id"], 0) << format;
    EXPECT_EQ(report["sink"]["ghosts"], 0) << format;
    EXPECT_EQ(report["sink"]["missing"], 10 * (formats - 1)) << format;
  }
}

TEST_F(KafkaVerify, one_missing_one_twice_one_never_committed_and_one_of_somebody_else) {
  BrokerTopic topic(1);
  const auto records = delivered(topic, 40);
  ASSERT_EQ(records.size(), 40U);
  BrokerTopic changed(1);
  Forger forger(brokers_, changed.name());
  const std::string missing = records[12].headers.at("outbox-id");
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i != 12) forger.write(records[i]);
  }
  forger.write(records[3]);
  const std::string ghost = EventId::generate().str();
  forger.write(with_id(ghost));
  forger.write({.partition = 0, .key = {}, .value = "hello", .headers = {}});
  forger.flush();
  configure(changed.name(), brokers_);
  const json report = verify(3);
  EXPECT_EQ(report["sink"]["messages"], 41);
  EXPECT_EQ(report["sink"]["duplicates"], 1);
  EXPECT_EQ(report["sink"]["ghosts"], 1);
  EXPECT_EQ(report["sink"]["missing"], 1);
  EXPECT_EQ(report["sink"]["without_id"], 1);
  EXPECT_EQ(report["fault_count"], 2);
  EXPECT_EQ(faults(report),
            "lost: 1 delivered event is not in the destination: " + missing +
                "\nghosts: 1 id in the destination is of no committed event: " + ghost + "\n");
  // Duplicates alone are no fault.
  configure(topic.name(), brokers_);
  Forger again(brokers_, topic.name());
  again.write(records[3]);
  again.flush();
  EXPECT_EQ(verify(0)["sink"]["duplicates"], 1);
}

TEST_F(KafkaVerify, what_a_transaction_did_not_commit_is_not_there) {
  BrokerTopic topic(1);
  ASSERT_EQ(delivered(topic, 5).size(), 5U);
  Forger forger(brokers_, topic.name(), unique_name("forger"));
  ASSERT_EQ(rd_kafka_init_transactions(forger.client(), 30'000), nullptr);
  ASSERT_EQ(rd_kafka_begin_transaction(forger.client()), nullptr);
  forger.write(with_id(EventId::generate().str()));
  forger.flush();
  // The check does not wait for the open transaction.
  EXPECT_EQ(verify(0)["sink"]["messages"], 5);
  ASSERT_EQ(rd_kafka_abort_transaction(forger.client(), 30'000), nullptr);
  EXPECT_EQ(verify(0)["sink"]["messages"], 5);
}

TEST_F(KafkaVerify, topics_of_a_template_and_one_of_another_outbox_that_fits_it) {
  const std::string suffix = unique_name("verify");
  KafkaTopic orders(brokers_, "order." + suffix);
  KafkaTopic carts(brokers_, "cart." + suffix);
  KafkaTopic others(brokers_, "invoice." + suffix);
  for (KafkaTopic* topic : {&orders, &carts, &others}) topic->create(2);
  Forger forger(brokers_, others.name());
  for (int i = 0; i < 3; ++i) forger.write(with_id(EventId::generate().str()));
  forger.flush();
  configure("{aggregate_type|lower}." + suffix, brokers_);
  enqueue(10, "Order");
  enqueue(20, "Cart");
  deliver();
  json report = verify(0);
  EXPECT_EQ(report["sink"]["messages"], 30);
  EXPECT_EQ(report["sink"]["others"], json::array({others.name()}));
  // A ghost in one of this outbox's own topics is reported.
  Forger close(brokers_, carts.name());
  const std::string ghost = EventId::generate().str();
  close.write(with_id(ghost));
  close.flush();
  report = verify(3);
  EXPECT_EQ(faults(report),
            "ghosts: 1 id in the destination is of no committed event: " + ghost + "\n");
}

TEST_F(KafkaVerify, what_the_topics_retention_removed_is_not_called_lost) {
  BrokerTopic topic(1);
  ASSERT_EQ(delivered(topic, 30).size(), 30U);
  remove_before(brokers_, topic.name(), 10);
  const json report = verify(0);
  EXPECT_EQ(report["sink"]["messages"], 20);
  EXPECT_EQ(report["sink"]["missing"], 10);
  EXPECT_EQ(report["sink"]["removed"], 10);
  EXPECT_EQ(report["sink"]["uncompared"], 10);
  const Ran text = run({"verify", "--sink"});
  EXPECT_NE(text.output.find("10 delivered events are not there; perhaps among the 10 messages "
                             "removed there, of before 20"),
            std::string::npos)
      << text.output;
  EXPECT_NE(text.output.find("(hint: "), std::string::npos) << text.output;
  remove_before(brokers_, topic.name(), 30);
  EXPECT_EQ(verify(0)["sink"]["uncompared"], 30);
}

TEST_F(KafkaVerify, an_event_created_after_what_retention_removed_is_lost) {
  BrokerTopic topic(1);
  const auto records = delivered(topic, 30);
  ASSERT_EQ(records.size(), 30U);
  BrokerTopic aged(1);
  Forger forger(brokers_, aged.name());
  const auto long_ago =
      now_ms() - std::chrono::duration_cast<std::chrono::milliseconds>(hours(2)).count();
  for (int i = 0; i < 100; ++i) forger.write(with_id(EventId::generate().str()), long_ago);
  forger.write(with_id(records[0].headers.at("outbox-id")), long_ago + 1);
  for (std::size_t i = 2; i < records.size(); ++i) forger.write(records[i]);
  forger.flush();
  remove_before(brokers_, aged.name(), 100);
  configure(aged.name(), brokers_);
  const json report = verify(3);
  EXPECT_EQ(report["sink"]["removed"], 100);
  EXPECT_EQ(report["sink"]["uncompared"], 0);
  EXPECT_EQ(faults(report), "lost: 1 delivered event is not in the destination: " +
                                records[1].headers.at("outbox-id") + "\n");
}

TEST_F(KafkaVerify, more_are_missing_than_were_removed) {
  BrokerTopic topic(1);
  const auto records = delivered(topic, 30);
  ASSERT_EQ(records.size(), 30U);
  BrokerTopic changed(1);
  Forger forger(brokers_, changed.name());
  for (std::size_t i = 0; i < records.size() - 3; ++i) forger.write(records[i]);
  forger.flush();
  remove_before(brokers_, changed.name(), 10);
  configure(changed.name(), brokers_);
  const json report = verify(3);
  EXPECT_EQ(report["sink"]["missing"], 13);
  EXPECT_EQ(report["sink"]["uncompared"], 10);
  EXPECT_EQ(faults(report),
            "lost: 3 delivered events are not in the destination, nor among the messages "
            "that it removed\n");
}

TEST_F(KafkaVerify, a_topic_that_does_not_exist) {
  BrokerTopic topic;
  configure(topic.name(), brokers_);
  enqueue(3);
  const Ran ran = run({"verify", "--sink"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_NE(ran.output.find("there is no topic to read back"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find(topic.name()), std::string::npos) << ran.output;
}

TEST_F(KafkaVerify, beside_a_relay_that_delivers) {
  BrokerTopic topic(4);
  configure(topic.name(), brokers_);
  const auto relay = start({"relay"}, folder_.file("relay.log"));
  for (int round = 0; round < 5; ++round) {
    enqueue(2000);
    const json report = verify(0);
    EXPECT_EQ(report["sink"]["ghosts"], 0);
  }
  ASSERT_TRUE(eventually([&] { return topic.count() >= 10'000; }));
  relay->signal(SIGTERM);
  ASSERT_TRUE(relay->wait());
  const json report = verify(0);
  EXPECT_EQ(report["delivered"], 10'000);
  EXPECT_EQ(report["sink"]["messages"], 10'000);
}

TEST_F(KafkaVerify, ends_at_a_signal_while_a_broker_is_silent) {
  TcpGate gate(std::stoi(brokers_.substr(brokers_.rfind(':') + 1)));
  gate.set(TcpGate::Mode::blackhole);
  configure("orders", fmt::format("127.0.0.1:{}", gate.port()));
  const auto running = start({"verify", "--sink"}, folder_.file("output"));
  ASSERT_TRUE(eventually([&] { return gate.connections() > 0; }));
  running->signal(SIGINT);
  const auto status = running->wait();
  ASSERT_TRUE(status && WIFEXITED(*status)) << running->ended_with();
  EXPECT_EQ(WEXITSTATUS(*status), 4);
}

TEST_F(KafkaVerify, a_broker_that_becomes_silent_while_a_topic_is_read) {
  OUTBOX_NEEDS("OUTBOX_TEST_KAFKA_GATE", "a broker that names a gate to its clients");
  BrokerTopic topic(1);
  Forger forger(brokers_, topic.name());
  // The topic holds more than passes a slow gate before it is shut.
  for (int i = 0; i < 4000; ++i) {
    KafkaRecord record = with_id(EventId::generate().str());
    record.value->clear();
    while (record.value->size() < 3000) *record.value += EventId::generate().str();
    forger.write(record);
  }
  forger.flush();
  TcpGate gate(std::stoi(*environment("OUTBOX_TEST_KAFKA_BEHIND_GATE")),
               std::stoi(*environment("OUTBOX_TEST_KAFKA_GATE")));
  gate.set(TcpGate::Mode::slow);
  configure(topic.name(), fmt::format("127.0.0.1:{}", gate.port()));
  const auto running = start({"verify", "--sink"}, folder_.file("output"));
  // The first connection and the one that fetches are there.
  ASSERT_TRUE(eventually([&] { return gate.connections() >= 2; }));
  gate.set(TcpGate::Mode::blackhole);
  const auto status = running->wait(std::chrono::minutes(2));
  ASSERT_TRUE(status && WIFEXITED(*status)) << running->ended_with();
  const std::string said = read_text(folder_.file("output"));
  EXPECT_EQ(WEXITSTATUS(*status), 5) << said;
  EXPECT_NE(said.find("subscription orders: kafka: "), std::string::npos) << said;
  EXPECT_NE(said.find("(hint: check kafka.brokers"), std::string::npos) << said;
}

class VerifyWithoutBroker : public Verifying {};

TEST_F(VerifyWithoutBroker, says_that_no_broker_answers) {
  configure("orders", "127.0.0.1:1");
  const Ran ran = run({"verify", "--sink"});
  EXPECT_EQ(ran.status, 5) << ran.output;
  EXPECT_NE(ran.output.find("subscription orders: kafka: no broker answers: "), std::string::npos)
      << ran.output;
  EXPECT_NE(ran.output.find("127.0.0.1:1"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("(hint: "), std::string::npos) << ran.output;
}

}  // namespace
}  // namespace outbox::test
