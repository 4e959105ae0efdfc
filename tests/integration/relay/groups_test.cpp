// Tests relays that share the lanes of a group, and subscriptions that have relays of their own.
#include <cstdlib>

#include "integration/relay/harness.hpp"
#include "support/eventually.hpp"
#include "support/ledger_check.hpp"
#include "support/postgres_database.hpp"
#include "support/shop.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kStop{30};

/// A relay of a service, whose sink writes to a destination that it shares with the service's other
/// replicas.
class Replica {
 public:
  Replica(RelayOptions options, const std::shared_ptr<Arrivals>& destination,
          const std::vector<std::string>& subscriptions = {"orders"})
      : relay_(make_relay(std::move(options))) {
    for (const std::string& name : subscriptions)
      EXPECT_TRUE(relay_->use(name, std::make_unique<ScatterSink>(destination, ScatterOptions{})));
    const Status started = relay_->start();
    EXPECT_TRUE(started) << started.error().text();
  }
  Relay& relay() { return *relay_; }
  [[nodiscard]] SubscriptionReport orders() const { return read_report(*relay_, "orders"); }
  StopReport stop() { return relay_->stop(kStop); }

 private:
  std::unique_ptr<Relay> relay_;
};

class Groups : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    shop_ = std::make_unique<Shop>(database_->url(), ShopOptions{.writers = 4, .transactions = 0});
  }
  [[nodiscard]] RelayOptions options(const std::string& name) const {
    RelayOptions options{.store_url = database_->url(), .name = name};
    options.page_rows = 50;
    options.subscriptions = {custom("orders")};
    return options;
  }
  /// The number of lanes that this relay owns in the group.
  [[nodiscard]] int lanes(const std::string& relay,
                          const std::string& group = "custom:orders") const {
    const auto rows = database_->connect().exec(
        "SELECT count(*) FROM outbox.lane l JOIN outbox.relay r ON r.id = l.owner WHERE r.name = $1 AND l.lane_group = $2",
        {relay, group});
    return std::stoi(*rows.front().front());
  }
  [[nodiscard]] bool shared(const std::vector<std::string>& relays) const {
    return eventually([&] {
      return std::all_of(relays.begin(), relays.end(), [&](const std::string& relay) {
        return std::abs(lanes(relay) - 64 / static_cast<int>(relays.size())) <= 1;
      });
    });
  }
  /// Expects that every promise was kept, without a duplicate.
  void finish() {
    shop_->stop();
    EXPECT_EQ(shop_->trouble(), "");
    const auto attempts = shop_->attempts();
    EXPECT_TRUE(eventually([&] { return judge(attempts, destination_->all()).lost == 0; }));
    EXPECT_TRUE(eventually_settled(database_->url(), "orders"));
    const Verdict verdict = judge(attempts, destination_->all());
    EXPECT_TRUE(verdict.kept()) << verdict;
    EXPECT_EQ(verdict.duplicates, 0U) << verdict;
    Pg connection(database_->url());
    EXPECT_EQ(ledger_fault(connection, "orders"), "");
  }
  [[nodiscard]] bool more(std::size_t events = 100) const {
    const std::size_t seen = destination_->count();
    return eventually([&] { return destination_->count() > seen + events; });
  }

  const std::shared_ptr<Arrivals> destination_ = std::make_shared<Arrivals>();
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Shop> shop_;
};

TEST_F(Groups, replicas_share_the_work_while_they_come_and_go_and_nothing_is_repeated) {
  shop_->start();
  auto first = std::make_unique<Replica>(options("first"), destination_);
  ASSERT_TRUE(more());
  EXPECT_EQ(lanes("first"), 64);
  auto second = std::make_unique<Replica>(options("second"), destination_);
  ASSERT_TRUE(shared({"first", "second"}));
  ASSERT_TRUE(eventually([&] { return second->orders().delivered > 100; }));
  Replica third(options("third"), destination_);
  ASSERT_TRUE(shared({"first", "second", "third"}));
  ASSERT_TRUE(eventually([&] { return third.orders().delivered > 100; }));
  EXPECT_TRUE(first->stop().drained);
  ASSERT_TRUE(shared({"second", "third"}));
  ASSERT_TRUE(more());
  EXPECT_TRUE(second->stop().drained);
  ASSERT_TRUE(shared({"third"}));
  ASSERT_TRUE(more());
  finish();
}

TEST_F(Groups, a_service_with_a_relay_stands_beside_one_that_has_not_its_sink) {
  RelayOptions general = options("general");
  SubscriptionSpec audit;
  audit.name = "audit";
  audit.sink = "null";
  general.subscriptions = {audit};
  const auto other = make_relay(general);
  ASSERT_TRUE(other->start());
  Replica service(options("service"), destination_);
  shop_->start();
  ASSERT_TRUE(more());
  EXPECT_EQ(lanes("general"), 0);
  EXPECT_EQ(lanes("service"), 64);
  ASSERT_TRUE(eventually(
      [&] { return lanes("general", "default") == 32 && lanes("service", "default") == 32; }));
  EXPECT_TRUE(eventually([&] {
    return read_report(*other, "audit").delivered > 0 &&
           read_report(service.relay(), "audit").delivered > 0;
  }));
  EXPECT_TRUE(service.stop().drained);
  EXPECT_TRUE(eventually([&] { return lanes("general", "default") == 64; }));
  Replica again(options("again"), destination_);
  ASSERT_TRUE(more());
  finish();
}

TEST_F(Groups, a_relay_serves_the_groups_that_it_is_told) {
  const auto of_group = [](const std::string& name, const std::string& group) {
    SubscriptionSpec spec;
    spec.name = name;
    spec.sink = "null";
    spec.group = group;
    return spec;
  };
  RelayOptions heavy = options("heavy");
  heavy.groups = {"heavy"};
  heavy.subscriptions = {of_group("reports", "heavy")};
  RelayOptions light = options("light");
  light.groups = {"default"};
  light.subscriptions = {of_group("mails", "")};
  const auto one = make_relay(heavy);
  const auto two = make_relay(light);
  ASSERT_TRUE(one->start());
  ASSERT_TRUE(two->start());
  shop_->start();
  EXPECT_TRUE(eventually([&] { return read_report(*one, "reports").delivered > 50; }));
  EXPECT_TRUE(eventually([&] { return read_report(*two, "mails").delivered > 50; }));
  EXPECT_EQ(read_report(*one, "mails").delivered, 0U);
  EXPECT_EQ(read_report(*two, "reports").delivered, 0U);
  EXPECT_EQ(lanes("heavy", "heavy"), 64);
  EXPECT_EQ(lanes("light", "default"), 64);

  // "mails" changes its group while events are delivered.
  auto catalog = store::open_store({.url = database_->url()}).value()->catalog().value();
  ASSERT_TRUE(catalog->apply(of_group("mails", "heavy")));
  EXPECT_TRUE(eventually([&] { return read_report(*one, "mails").delivered > 50; }));
  ASSERT_TRUE(one->stop(kStop).drained);
  shop_->stop();
  ASSERT_TRUE(one->start());
  for (const char* name : {"mails", "reports"}) {
    EXPECT_TRUE(eventually_settled(database_->url(), name));
    Pg connection(database_->url());
    EXPECT_EQ(ledger_fault(connection, name), "") << name;
  }
}

TEST_F(Groups, lanes_that_stood_apart_become_one_strand_again) {
  shop_->start();
  auto first = std::make_unique<Replica>(options("first"), destination_);
  Replica second(options("second"), destination_);
  ASSERT_TRUE(shared({"first", "second"}));
  ASSERT_TRUE(more());
  EXPECT_TRUE(first->stop().drained);
  ASSERT_TRUE(shared({"second"}));
  shop_->stop();
  // The newest settlement has all lanes.
  EXPECT_TRUE(eventually([&] {
    return database_->connect().value(
               "SELECT lanes FROM outbox.settlement WHERE lanes <> 0 ORDER BY generation DESC, id DESC LIMIT 1") ==
           "-1";
  }));
  finish();
  store::SubscriptionProgress totals;
  auto catalog = store::open_store({.url = database_->url()}).value()->catalog().value();
  totals.id = catalog->subscriptions()->front().id;
  ASSERT_TRUE(catalog->add_totals(totals));
  EXPECT_EQ(static_cast<std::size_t>(totals.acked), destination_->count());
}

TEST_F(Groups, an_application_name_that_has_no_such_group_is_refused) {
  RelayOptions bad = options("bad");
  bad.groups = {"no spaces"};
  const auto relay = Relay::create(bad);
  ASSERT_FALSE(relay);
  EXPECT_NE(relay.error().text().find("no spaces"), std::string::npos);
}

}  // namespace
}  // namespace outbox::test
