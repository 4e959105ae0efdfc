// From the database A by a relay and Kafka to B, whose effects are events again, by a relay and
// RabbitMQ to C, while all four processes are killed at random: the three databases agree.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "conformance/source/place.hpp"
#include "store/store.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/kafka.hpp"
#include "support/postgres_database.hpp"
#include "support/random.hpp"
#include "support/relay_process.hpp"
#include "support/servers.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;

class Chain : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    OUTBOX_NEEDS_KAFKA();
    OUTBOX_NEEDS_RABBITMQ();
    topic_ = std::make_unique<KafkaTopic>(*environment("OUTBOX_TEST_KAFKA"), 3);
    queue_ = conformance::make_place();
    for (auto* const database : {&a_, &b_, &c_}) *database = std::make_unique<PostgresDatabase>();
    for (const auto* const database : {&b_, &c_})
      Pg((*database)->url())
          .run(
              "CREATE TABLE effect (n bigserial PRIMARY KEY, number int NOT NULL, key text NOT NULL)");
  }

  [[nodiscard]] std::string write_config(const std::string& name, const std::string& text) const {
    std::string path = folder_.file(name + ".toml");
    std::ofstream(path) << text;
    return path;
  }
  [[nodiscard]] std::string store_of(const PostgresDatabase& database) const {
    return "[store]\nurl = \"" + database.url() + "\"\n[relay]\nlease = \"2s\"\n";
  }
  [[nodiscard]] std::unique_ptr<ChildProcess> start_consumer(const PostgresDatabase& database,
                                                             const ConsumerSpec& spec) const {
    std::vector<std::string> command{OUTBOX_TEST_CONSUMER, database.url(),  "chain",
                                     spec.source,          spec.read.at(0), spec.name};
    for (const auto& [name, value] : spec.settings) command.push_back(name + "=" + value);
    return std::make_unique<ChildProcess>(ChildProcess::Options{
        .command = std::move(command), .environment = {}, .output = folder_.file("log")});
  }
  void write_events(int first, int last) const {
    const auto store = store::open_store({.url = a_->url()}).value();
    std::vector<Event> events;
    for (int i = first; i < last; ++i) {
      events.push_back({.aggregate_type = "order",
                        .aggregate_id = std::to_string(i % 20),
                        .event_type = "Number",
                        .payload = std::to_string(i),
                        .content_type = "text/plain"});
    }
    ASSERT_TRUE(store->writer().value()->write(events));
  }
  [[nodiscard]] static int effects(const PostgresDatabase& database) {
    return std::stoi(Pg(database.url()).value("SELECT count(DISTINCT number) FROM effect"));
  }
  /// Expects that `outbox verify` finds nothing between a subscription and an inbox.
  void expect_agreement(const PostgresDatabase& from, const std::string& subscription,
                        const PostgresDatabase& to) const {
    ChildProcess verify({.command = {"outbox", "verify", "--store", from.url(), "--subscription",
                                     subscription, "--inbox", to.url(), "--consumer", "chain"},
                         .program = outbox_program(),
                         .output = folder_.file("verify")});
    EXPECT_EQ(verify.wait(), 0) << std::ifstream(folder_.file("verify")).rdbuf();
  }

  const TempDir folder_;
  std::unique_ptr<KafkaTopic> topic_;
  std::unique_ptr<conformance::Place> queue_;
  std::unique_ptr<PostgresDatabase> a_;
  std::unique_ptr<PostgresDatabase> b_;
  std::unique_ptr<PostgresDatabase> c_;
};

TEST_F(Chain, three_databases_agree_whatever_is_killed) {
  const ConsumerSpec from_kafka{.name = unique_name("chain"),
                                .source = "kafka",
                                .read = {topic_->name()},
                                .settings = {{"brokers", topic_->brokers()}}};
  const ConsumerSpec from_rabbit = queue_->spec();
  const std::string first = write_config(
      "a", store_of(*a_) + "[subscription.numbers]\nsink = \"kafka\"\ntopic = \"" + topic_->name() +
               "\"\n[subscription.numbers.kafka]\nbrokers = \"" + topic_->brokers() + "\"\n");
  std::string rabbit = store_of(*b_) + "[subscription.effects]\nsink = \"rabbitmq\"\ntopic = \"" +
                       from_rabbit.read.at(0) +
                       "\"\naggregate_types = [\"effect\"]\n[subscription.effects.rabbitmq]\n";
  for (const auto& [name, value] : from_rabbit.settings) rabbit += name + " = '" + value + "'\n";
  const std::string second = write_config("b", rabbit);
  const std::string log = folder_.file("log");
  const std::vector<std::function<std::unique_ptr<ChildProcess>()>> starts{
      [&] { return start_outbox_relay(first, log); },
      [&] { return start_consumer(*b_, from_kafka); },
      [&] { return start_outbox_relay(second, log); },
      [&] { return start_consumer(*c_, from_rabbit); }};
  std::vector<std::unique_ptr<ChildProcess>> processes;
  for (const auto& start : starts) processes.push_back(start());
  Random random(std::random_device{}());
  constexpr int kEach = 40;
  const int rounds = 40 * soak_factor();
  for (int round = 0; round < rounds; ++round) {
    write_events(round * kEach, (round + 1) * kEach);
    random.dawdle(std::chrono::milliseconds(500));
    const std::size_t victim = random.below(processes.size());
    processes[victim]->kill();
    processes[victim] = starts[victim]();
  }
  const int all = rounds * kEach;
  EXPECT_TRUE(
      eventually([&] { return effects(*c_) == all; }, std::chrono::seconds(180 * soak_factor())))
      << effects(*b_) << " and " << effects(*c_) << " of " << all;
  for (const auto& process : processes) process->kill();
  for (const auto* const database : {&b_, &c_}) {
    EXPECT_EQ(effects(**database), all);
    EXPECT_EQ(Pg((*database)->url()).value("SELECT count(*) FROM effect"), std::to_string(all));
  }
  expect_agreement(*a_, "numbers", *b_);
  expect_agreement(*b_, "effects", *c_);
}

}  // namespace
}  // namespace outbox::test
