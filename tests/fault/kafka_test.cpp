// Tests failures of Kafka: the broker dies under load, and a message in the middle of a batch is
// too large.
#include <map>
#include <set>

#include "integration/relay/harness.hpp"
#include "store/store.hpp"
#include "support/eventually.hpp"
#include "support/kafka_deliveries.hpp"
#include "support/postgres_database.hpp"
#include "support/shop.hpp"

namespace outbox::test {
namespace {

class KafkaFault : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    OUTBOX_NEEDS_KAFKA();
    brokers_ = *environment("OUTBOX_TEST_KAFKA");
    database_ = std::make_unique<PostgresDatabase>();
  }

  [[nodiscard]] std::unique_ptr<Relay> relay_to(const KafkaTopic& topic,
                                                OnReject on_reject = OnReject::park) const {
    RelayOptions options;
    options.store_url = database_->url();
    options.page_rows = 200;
    SubscriptionSpec spec;
    spec.name = "orders";
    spec.sink = "kafka";
    spec.topic = topic.name();
    spec.sink_settings["brokers"] = brokers_;
    spec.on_reject = on_reject;
    options.subscriptions = {spec};
    return make_relay(options);
  }
  [[nodiscard]] std::unique_ptr<store::Catalog> catalog() const {
    auto store = store::open_store(
        {.url = database_->url(), .schema = "outbox", .application = "outbox test"});
    return std::move((*store)->catalog().value());
  }
  [[nodiscard]] store::SubscriptionRow subscription() const {
    return catalog()->subscriptions()->at(0);
  }

  std::string brokers_;
  std::unique_ptr<PostgresDatabase> database_;
};

TEST_F(KafkaFault, a_broker_that_is_killed_under_load_loses_and_reorders_nothing) {
  OUTBOX_NEEDS("OUTBOX_TEST_SERVERS", "a broker that may be killed");
  const KafkaTopic topic(brokers_, 4);
  const auto relay = relay_to(topic);
  ASSERT_TRUE(relay->start());
  Shop shop(database_->url(),
            {.writers = 6, .transactions = 0, .longest_pause = std::chrono::milliseconds(4)});
  shop.start();
  for (int round = 0; round < 4 * soak_factor(); ++round) {
    const std::uint64_t delivered = read_report(*relay, "orders").delivered;
    ASSERT_TRUE(
        eventually([&] { return read_report(*relay, "orders").delivered > delivered + 200; },
                   std::chrono::seconds(120)))
        << read_report(*relay, "orders").reason;
    kill_server("kafka");
    start_server("kafka");
  }
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_on(topic)).lost == 0; },
                         std::chrono::seconds(180)))
      << read_report(*relay, "orders").reason;
  EXPECT_EQ(subscription().state, store::SubscriptionState::active);
  EXPECT_TRUE(relay->stop(std::chrono::seconds(60)).drained);
  const Verdict verdict = judge(attempts, deliveries_on(topic));
  EXPECT_TRUE(verdict.kept()) << verdict;
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
}

TEST_F(KafkaFault, after_an_event_too_large_for_the_topic_nothing_of_its_key_is_there) {
  KafkaTopic topic(brokers_, 2, {{"max.message.bytes", "20000"}});
  // All events are in one transaction and become one batch, with the culprit in the middle.
  Pg connection(database_->url());
  std::vector<Attempt> attempts;
  connection.exec("BEGIN");
  for (int n = 0; n < 400; ++n) {
    Attempt attempt;
    attempt.id = EventId::generate().str();
    attempt.key = "k" + std::to_string(n % 4);
    attempt.version = n + 1;
    // The text is random, so that compression does not make it small.
    std::string padding;
    while (n == 200 && padding.size() < 60000) padding += EventId::generate().str();
    attempt.body = R"({"id": ")" + attempt.id + R"(", "key": ")" + attempt.key + R"(", "pad": ")" +
                   padding + "\"}";
    attempt.end = Attempt::End::committed;
    connection.exec("SELECT outbox.enqueue('Order', $1, 'OrderPlaced', $2::text)",
                    {attempt.key, attempt.body});
    attempts.push_back(attempt);
  }
  connection.exec("COMMIT");
  const auto relay = relay_to(topic, OnReject::stop);
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return subscription().state == store::SubscriptionState::stopped; },
                         std::chrono::seconds(120)))
      << read_report(*relay, "orders").reason;
  EXPECT_EQ(subscription().stopped_event.size(), 36U);
  EXPECT_FALSE(subscription().reason.empty());

  // What arrived is a prefix of each key without gaps, and has nothing of the culprit's key from
  // the culprit on.
  const auto there = deliveries_on(topic);
  const Verdict stopped = judge(attempts, there);
  EXPECT_EQ(stopped.out_of_order, 0U) << stopped;
  EXPECT_EQ(stopped.ghosts, 0U) << stopped;
  std::map<std::string, std::size_t> of_key;
  std::set<std::string> ids;
  for (const Delivery& delivery : there) ids.insert(delivery.id);
  std::map<std::string, bool> gap;
  for (const Attempt& attempt : attempts) {
    const bool is_there = ids.contains(attempt.id);
    EXPECT_FALSE(gap[attempt.key] && is_there)
        << "behind a gap: " << attempt.key << " " << attempt.version;
    gap[attempt.key] = gap[attempt.key] || !is_there;
    if (attempt.key == attempts[200].key && attempt.version > 200) {
      EXPECT_FALSE(is_there) << attempt.version;
    }
  }

  // The topic takes the event now, and everything arrives in order.
  topic.change({{"max.message.bytes", "1000000"}});
  ASSERT_TRUE(catalog()->resume("orders"));
  EXPECT_TRUE(eventually([&] {
    // The broker applies a setting shortly after it has confirmed it, so that it may refuse the
    // event once more.
    if (subscription().state == store::SubscriptionState::stopped)
      (void)catalog()->resume("orders");
    return judge(attempts, deliveries_on(topic)).lost == 0;
  })) << read_report(*relay, "orders").reason;
  EXPECT_TRUE(relay->stop(std::chrono::seconds(60)).drained);
  const Verdict verdict = judge(attempts, deliveries_on(topic));
  EXPECT_TRUE(verdict.kept()) << verdict;
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
}

TEST_F(KafkaFault, a_topic_that_is_not_there_pauses_and_goes_on_when_it_is_made) {
  const KafkaTopic other(brokers_, 1);
  RelayOptions options;
  options.store_url = database_->url();
  SubscriptionSpec spec;
  spec.name = "orders";
  spec.sink = "kafka";
  spec.topic = other.name() + "-later";
  spec.sink_settings["brokers"] = brokers_;
  options.subscriptions = {spec};
  const auto relay = make_relay(options);
  ASSERT_TRUE(relay->start());
  database_->connect().exec("SELECT outbox.enqueue('Order', 'k', 'OrderPlaced', '{}'::jsonb)");
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "orders").state == "backing-off"; }));
  EXPECT_FALSE(read_report(*relay, "orders").reason.empty());
  EXPECT_EQ(subscription().state, store::SubscriptionState::active) << "no event is at fault";
  // A person corrects the topic.
  spec.topic = other.name();
  ASSERT_TRUE(catalog()->apply(spec).value());
  EXPECT_TRUE(eventually([&] { return other.count() == 1; }));
}

}  // namespace
}  // namespace outbox::test
