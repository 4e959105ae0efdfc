// Tests outbox/status.hpp on both stores: what a service reads about its own outbox.
#include <outbox/status.hpp>
#include <outbox/testing.hpp>

#include "integration/relay/both_stores.hpp"

namespace outbox::test {
namespace {

class StatusReaderTest : public OnBothStores {
 protected:
  [[nodiscard]] StatusReader reader() const {
    return std::move(*StatusReader::open({.store_url = url_}));
  }
  /// Delivers what it can. The sink rejects "Poison", which is dead at once; "Ignored" does not
  /// match.
  void deliver() {
    SubscriptionSpec mails = custom("mails");
    mails.event_types = {"A*", "Poison", "Later"};
    mails.max_attempts = 1;
    RelayOptions options{.store_url = url_};
    options.subscriptions = {mails};
    const auto relay = make_relay(options);
    auto sink = std::make_unique<testing::FailingSink>([](const EventView& event) {
      return event.event_type == "Poison" ? Outcome::Kind::rejected : Outcome::Kind::acked;
    });
    ASSERT_TRUE(relay->use("mails", std::move(sink)));
    (void)delivered_once(*relay);
  }
  /// The id of the event with this type.
  [[nodiscard]] EventId find_id(const std::string& type) const {
    const auto page = store_->events().value()->list({.event_type = type}, 1, false).value();
    return page.events.at(0).id;
  }
  [[nodiscard]] EventInSubscription read_life(const std::string& type) const {
    const auto found = reader().events(find_id(type)).value();
    EXPECT_EQ(found.size(), 1U);
    EXPECT_EQ(found.at(0).event_type, type);
    EXPECT_TRUE(found.at(0).in_log);
    EXPECT_EQ(found.at(0).subscriptions.size(), 1U);
    return found.at(0).subscriptions.at(0);
  }
};

INSTANTIATE_TEST_SUITE_P(Store, StatusReaderTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(StatusReaderTest, shows_what_became_of_each_event) {
  EXPECT_TRUE(reader().subscriptions().value().empty());
  write("a", {"A1", "Ignored"});
  write("b", {"Poison"});
  deliver();
  write("c", {"Later", "Later"});
  const EventInSubscription published = read_life("A1");
  EXPECT_EQ(published.state, EventState::published);
  EXPECT_TRUE(published.published_by);
  EXPECT_EQ(read_life("Ignored").state, EventState::filtered);
  EXPECT_EQ(read_life("Later").state, EventState::pending);
  const EventInSubscription dead = read_life("Poison");
  EXPECT_STREQ(to_string(dead.state), "dead");
  EXPECT_EQ(dead.attempts, 1U);
  EXPECT_NE(dead.error, "");

  const auto all = reader().subscriptions().value();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "mails");
  EXPECT_EQ(all[0].sink, "custom");
  EXPECT_EQ(all[0].activity, Activity::active);
  EXPECT_EQ(all[0].pending, 2);
  EXPECT_FALSE(all[0].more_pending);
  EXPECT_TRUE(all[0].oldest_age);
  EXPECT_EQ(all[0].delivered, 1);
  EXPECT_EQ(all[0].filtered, 1);
  EXPECT_EQ(all[0].dead, 1);
  const auto counted = reader().subscriptions(1).value();
  EXPECT_EQ(counted[0].pending, 1);
  EXPECT_TRUE(counted[0].more_pending);
  EXPECT_EQ(reader().pending("mails").value(), 2);

  ASSERT_TRUE(store_->catalog().value()->pause("mails", "they go on holiday"));
  const auto paused = reader().subscriptions().value();
  EXPECT_STREQ(to_string(paused[0].activity), "paused");
  EXPECT_EQ(paused[0].reason, "they go on holiday");
}

TEST_P(StatusReaderTest, what_is_not_there_is_told) {
  EXPECT_TRUE(reader().events(EventId::generate()).value().empty());
  EXPECT_EQ(reader().pending("mails").error().code, Errc::not_found);
  EXPECT_EQ(reader().subscriptions(0).error().code, Errc::invalid_argument);
  EXPECT_FALSE(StatusReader::open({.store_url = "mysql://localhost"}));
  const auto nowhere =
      StatusReader::open({.store_url = GetParam() ? "postgresql://127.0.0.1:1/none"
                                                  : "sqlite:" + folder_.file("none.db")});
  ASSERT_TRUE(nowhere);
  EXPECT_FALSE(nowhere->subscriptions());
  EXPECT_FALSE(nowhere->events(EventId::generate()));
}

}  // namespace
}  // namespace outbox::test
