// Tests a relay whose subscriptions are stopped, paused and changed while others deliver, also when
// the change cannot be written.
#include <atomic>
#include <fstream>
#include <future>

#include "integration/relay/relay_on_postgres.hpp"
#include "support/ledger_check.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

TEST_F(RelayOnPostgres, a_rejected_event_stops_its_subscription_only_and_nothing_is_skipped) {
  options_.subscriptions = {stopping("strict"), custom("lenient")};
  const auto relay = make_relay(options_);
  const auto lenient = record(*relay, "lenient");
  const auto forgiving = std::make_shared<std::atomic<bool>>(false);
  auto strict_sink = std::make_unique<testing::FailingSink>([forgiving](const EventView& event) {
    return event.event_type == "Poison" && !*forgiving ? Outcome::Kind::rejected
                                                       : Outcome::Kind::acked;
  });
  const auto strict = strict_sink->recording();
  ASSERT_TRUE(relay->use("strict", std::move(strict_sink)));
  write(5);
  write(1, "k", "Poison");
  write(5);
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return row("strict").state == store::SubscriptionState::stopped; }));
  ASSERT_TRUE(eventually([&] { return lenient->events().size() == 11; }));
  const auto stopped = row("strict");
  EXPECT_EQ(stopped.stopped_seq, lenient->events()[5].seq);
  EXPECT_EQ(stopped.stopped_event, lenient->events()[5].id.str());
  EXPECT_FALSE(stopped.reason.empty());
  EXPECT_EQ(strict->events().size(), 5U);
  EXPECT_EQ(row("lenient").state, store::SubscriptionState::active);

  // After the resume the subscription stops at the same event again.
  ASSERT_TRUE(catalog()->resume("strict"));
  ASSERT_TRUE(eventually([&] { return row("strict").state == store::SubscriptionState::stopped; }));
  EXPECT_EQ(strict->events().size(), 5U);
  EXPECT_EQ(row("strict").stopped_seq, stopped.stopped_seq);

  // Once the cause is fixed, everything is delivered.
  *forgiving = true;
  ASSERT_TRUE(catalog()->resume("strict"));
  ASSERT_TRUE(eventually([&] { return strict->events().size() == 11; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(strict->events()[i].seq, lenient->events()[i].seq);
  EXPECT_EQ(row("strict").state, store::SubscriptionState::active);
  Pg connection(database().url());
  EXPECT_EQ(ledger_fault(connection, "strict"), "");
}

TEST_F(RelayOnPostgres, a_rejection_that_cannot_be_written_down_yet_stops_nobody_else) {
  options_.subscriptions = {stopping("strict"), custom("lenient")};
  const auto relay = make_relay(options_);
  const auto lenient = record(*relay, "lenient");
  auto strict_sink = std::make_unique<testing::FailingSink>(
      [](const EventView&) { return Outcome::Kind::rejected; });
  ASSERT_TRUE(relay->use("strict", std::move(strict_sink)));
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return relay->report().owner; }));
  const std::int64_t generation = relay->report().generation;
  Pg person(database().url());
  person.exec("BEGIN");
  person.exec("UPDATE outbox.subscription SET changed_at = now() WHERE name = 'strict'");
  write(1);
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "strict").state == "stopped"; }));
  // A relay that waited for the row would notice this only after half a minute, and start again.
  ASSERT_TRUE(catalog()->pause("lenient", "to see that it is noticed"));
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "lenient").state == "paused"; }));
  EXPECT_EQ(row("strict").state, store::SubscriptionState::active);
  person.exec("COMMIT");
  EXPECT_TRUE(eventually([&] { return row("strict").state == store::SubscriptionState::stopped; }));
  EXPECT_EQ(relay->report().generation, generation);
}

TEST_F(RelayOnPostgres, a_write_about_a_subscription_that_fails_for_a_while_ends_no_delivery) {
  options_.subscriptions = {stopping("strict"), custom("lenient")};
  const auto relay = make_relay(options_);
  const auto lenient = record(*relay, "lenient");
  auto strict_sink = std::make_unique<testing::FailingSink>(
      [](const EventView&) { return Outcome::Kind::rejected; });
  ASSERT_TRUE(relay->use("strict", std::move(strict_sink)));
  ASSERT_TRUE(relay->start());
  Pg person(database().url());
  const auto oldest_session = [&] {
    return person.value(
        "SELECT min(backend_start) FROM pg_stat_activity WHERE application_name LIKE 'outbox relay%' "
        "AND datname = current_database()");
  };
  const std::string before = oldest_session();
  break_subscriptions(person, "UPDATE");
  write(1);
  ASSERT_TRUE(eventually([&] { return !relay->report().last_error.empty(); }));
  write(10);
  EXPECT_TRUE(eventually([&] { return lenient->events().size() == 11; }));
  person.exec("DROP TRIGGER broken ON outbox.subscription");
  EXPECT_TRUE(eventually([&] { return row("strict").state == store::SubscriptionState::stopped; }));
  EXPECT_EQ(oldest_session(), before) << "it connected again";
}

TEST_F(RelayOnPostgres, start_returns_although_its_configuration_cannot_be_applied_yet) {
  options_.subscriptions = {custom("a")};
  const auto relay = make_relay(options_);
  const auto delivered = record(*relay, "a");
  write(1);
  Pg person(database().url());
  break_subscriptions(person, "INSERT");
  ASSERT_TRUE(relay->start());
  EXPECT_FALSE(relay->report().last_error.empty());
  person.exec("DROP TRIGGER broken ON outbox.subscription");
  EXPECT_TRUE(eventually([&] { return delivered->events().size() == 1; }));
}

TEST_F(RelayOnPostgres,
       a_destination_that_is_down_pauses_its_subscription_and_it_goes_on_by_itself) {
  options_.subscriptions = {custom("weak"), custom("strong")};
  const auto relay = make_relay(options_);
  const auto strong = record(*relay, "strong");
  const auto down = std::make_shared<std::atomic<bool>>(true);
  auto weak_sink = std::make_unique<testing::FailingSink>(
      [down](const EventView&) { return *down ? Outcome::Kind::blocked : Outcome::Kind::acked; });
  const auto weak = weak_sink->recording();
  ASSERT_TRUE(relay->use("weak", std::move(weak_sink)));
  ASSERT_TRUE(relay->start());
  write(20);
  ASSERT_TRUE(eventually([&] { return strong->events().size() == 20; }));
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "weak").state == "backing-off"; }));
  EXPECT_EQ(row("weak").state, store::SubscriptionState::active) << "an outage is not a decision";
  EXPECT_TRUE(weak->events().empty());
  *down = false;
  ASSERT_TRUE(eventually([&] { return weak->events().size() == 20; }));
  write(5);
  ASSERT_TRUE(eventually([&] { return weak->events().size() == 25; }));
}

TEST_F(RelayOnPostgres, a_pause_and_a_change_take_effect_while_others_deliver) {
  options_.subscriptions = {custom("one"), custom("other")};
  const auto relay = make_relay(options_);
  const auto one = record(*relay, "one");
  const auto other = record(*relay, "other");
  ASSERT_TRUE(relay->start());
  Shop shop(database().url(), {.writers = 4, .transactions = 0});
  shop.start();
  ASSERT_TRUE(eventually([&] { return one->events().size() > 50; }));

  ASSERT_TRUE(catalog()->pause("one", "by a person"));
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "one").state == "paused"; }));
  EXPECT_EQ(read_report(*relay, "one").reason, "by a person");
  const std::size_t paused_at = one->events().size();
  const std::size_t other_at = other->events().size();
  ASSERT_TRUE(eventually([&] { return other->events().size() > other_at + 100; }));
  EXPECT_EQ(one->events().size(), paused_at);

  ASSERT_TRUE(catalog()->resume("one"));
  ASSERT_TRUE(eventually([&] { return one->events().size() > paused_at + 100; }));

  // The changed topic applies from the cursor on.
  SubscriptionSpec changed = custom("one");
  changed.topic = "renamed";
  ASSERT_TRUE(catalog()->apply(changed).value());
  ASSERT_TRUE(eventually([&] {
    const auto events = one->events();
    return !events.empty() && events.back().topic == "renamed";
  }));
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] {
    return one->events().size() >= committed(attempts) &&
           other->events().size() >= committed(attempts);
  }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  expect_exactly_once(attempts, to_deliveries(*one), "one");
  expect_exactly_once(attempts, to_deliveries(*other), "other");
  bool renamed = false;
  for (const auto& event : one->events()) {
    EXPECT_FALSE(renamed && event.topic != "renamed");
    renamed = renamed || event.topic == "renamed";
  }
}

TEST_F(RelayOnPostgres, a_new_subscription_starts_at_the_beginning_or_now) {
  write(30);
  options_.subscriptions = {custom("early")};
  const auto relay = make_relay(options_);
  const auto early = record(*relay, "early");
  const auto fresh = record(*relay, "fresh");
  const auto complete = record(*relay, "complete");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return early->events().size() == 30; }));
  SubscriptionSpec now = custom("fresh");
  now.start = Start::now;
  ASSERT_TRUE(catalog()->apply(now).value());
  ASSERT_TRUE(catalog()->apply(custom("complete")).value());
  ASSERT_TRUE(eventually([&] { return complete->events().size() == 30; }));
  write(7);
  ASSERT_TRUE(
      eventually([&] { return early->events().size() == 37 && complete->events().size() == 37; }));
  ASSERT_TRUE(eventually([&] { return fresh->events().size() == 7; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(fresh->events().size(), 7U);
  EXPECT_EQ(fresh->events().front().seq, early->events()[30].seq);
}

TEST_F(RelayOnPostgres, start_now_does_not_lose_what_was_in_flight) {
  // The writer has taken its seq before the subscription exists, and commits afterwards. Therefore
  // its event does not count as "before now".
  OpenSale open(database().url(), "late");
  write(3);
  SubscriptionSpec now = custom("fresh");
  now.start = Start::now;
  options_.subscriptions = {now};
  const auto relay = make_relay(options_);
  const auto fresh = record(*relay, "fresh");
  ASSERT_TRUE(relay->start());
  open.commit();
  write(2, "after");
  ASSERT_TRUE(eventually([&] { return fresh->events().size() >= 3; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(fresh->events().size(), 3U);
}

TEST_F(RelayOnPostgres, a_sink_that_hangs_while_its_subscription_is_paused_costs_nobody_the_lease) {
  options_.subscriptions = {custom("hanging"), custom("fine")};
  options_.lease =
      std::chrono::seconds(10);  // a machine that is suspended for a while must not end it
  const auto relay = make_relay(options_);
  const auto fine = record(*relay, "fine");
  const auto arrived = std::make_shared<Arrivals>();
  const auto released = std::make_shared<std::atomic<bool>>(false);
  ASSERT_TRUE(relay->use("hanging", std::make_unique<HoldingSink>(arrived, released)));
  write(3);
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually(
      [&] { return fine->events().size() == 3 && read_report(*relay, "hanging").in_window == 3; }));
  const std::int64_t generation = relay->report().generation;
  ASSERT_TRUE(catalog()->pause("hanging", "it hangs"));
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "hanging").state == "paused"; }));
  write(2);
  ASSERT_TRUE(eventually([&] { return fine->events().size() == 5; }));
  renews_past_the_lease();
  EXPECT_EQ(relay->report().generation, generation);
  *released = true;
  ASSERT_TRUE(catalog()->resume("hanging"));
  EXPECT_TRUE(eventually([&] { return arrived->count() == 5; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(arrived->count(), 5U);
}

TEST_F(RelayOnPostgres,
       what_only_a_person_can_mend_is_in_the_status_and_a_stop_gives_the_lanes_back) {
  options_.subscriptions = {custom("all")};
  const auto relay = make_relay(options_);
  const auto all = record(*relay, "all");
  write(20);
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return is_at_rest(*relay, "all", 20); }));
  ASSERT_TRUE(eventually_settled(database().url(), "all"));
  Pg connection(database().url());
  connection.exec("SELECT setval('outbox.event_seq', 1)");
  ASSERT_TRUE(eventually([&] { return row("all").trouble.find("event_seq") != std::string::npos; }))
      << row("all").trouble;
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(connection.value("SELECT count(*) FROM outbox.relay"), "0");
  EXPECT_EQ(connection.value("SELECT count(*) FROM outbox.lane WHERE owner IS NOT NULL"), "0");
  // Once the sequence is repaired, the trouble is cleared.
  connection.exec("SELECT setval('outbox.event_seq', 20)");
  const auto next = make_relay(options_);
  const auto more = record(*next, "all");
  ASSERT_TRUE(next->start());
  write(1);
  EXPECT_TRUE(eventually([&] { return more->events().size() == 1; }));
  EXPECT_TRUE(eventually([&] { return row("all").trouble.empty(); }));
}

TEST_F(RelayOnPostgres, a_stop_that_takes_longer_than_the_lease_is_still_in_order) {
  options_.subscriptions = {custom("hanging")};
  options_.lease =
      std::chrono::seconds(10);  // a machine that is suspended for a while must not end it
  const auto arrived = std::make_shared<Arrivals>();
  const auto released = std::make_shared<std::atomic<bool>>(false);
  const auto relay = make_relay(options_);
  ASSERT_TRUE(relay->use("hanging", std::make_unique<HoldingSink>(arrived, released)));
  write(3);
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "hanging").in_window == 3; }));
  auto stopped =
      std::async(std::launch::async, [&] { return relay->stop(std::chrono::minutes(5)); });
  renews_past_the_lease();
  *released = true;
  const StopReport report = stopped.get();
  EXPECT_TRUE(report.drained);
  EXPECT_EQ(report.abandoned, 0U);
  EXPECT_EQ(arrived->count(), 3U);
  const auto next = make_relay(options_);
  ASSERT_TRUE(next->use("hanging", std::make_unique<HoldingSink>(arrived, released)));
  (void)delivered_once(*next);
  EXPECT_EQ(arrived->count(), 3U) << "nothing is left to repeat";
}

TEST_F(RelayOnPostgres, a_file_goes_on_when_its_subscription_is_changed) {
  const TempDir folder;
  SubscriptionSpec spec;
  spec.name = "lines";
  spec.sink = "file";
  spec.sink_settings["path"] = folder.file("lines.jsonl");
  options_.subscriptions = {spec};
  const auto relay = make_relay(options_);
  ASSERT_TRUE(relay->start());
  write(3);
  ASSERT_TRUE(eventually([&] { return lines_in(folder.file("lines.jsonl")) == 3; }));
  spec.topic = "changed";
  ASSERT_TRUE(catalog()->apply(spec).value());
  ASSERT_TRUE(eventually([&] { return row("lines").config_version == 2; }));
  write(3);
  EXPECT_TRUE(eventually([&] { return lines_in(folder.file("lines.jsonl")) == 6; }))
      << read_report(*relay, "lines").reason;
}

/// A sink whose error is what a broken proxy might answer: it is not UTF-8, and has a zero byte.
class GarbledSink final : public BatchSink {
 public:
  explicit GarbledSink(Outcome::Kind kind) : kind_(kind) {}
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "garbled", .gapless = true};
  }
  [[nodiscard]] Status open() override { return {}; }
  void close() noexcept override {}

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> /*batch*/, Outcome& failure) override {
    failure.kind = kind_;
    failure.error.message = std::string("answer \xff\xfe, caf\xc3\xa9, end") + '\0' + "of it";
    return 0;
  }

 private:
  Outcome::Kind kind_;
};

TEST_F(RelayOnPostgres, a_reason_that_is_no_text_harms_nobody) {
  options_.subscriptions = {stopping("rejecting"), custom("down"), custom("well")};
  const auto relay = make_relay(options_);
  const auto well = record(*relay, "well");
  ASSERT_TRUE(relay->use("rejecting", std::make_unique<GarbledSink>(Outcome::Kind::rejected)));
  ASSERT_TRUE(relay->use("down", std::make_unique<GarbledSink>(Outcome::Kind::blocked)));
  ASSERT_TRUE(relay->start());
  const std::int64_t generation = relay->report().generation;
  write(5);
  ASSERT_TRUE(
      eventually([&] { return row("rejecting").state == store::SubscriptionState::stopped; }));
  ASSERT_TRUE(eventually([&] { return !row("down").trouble.empty(); }));
  EXPECT_EQ(row("rejecting").reason, "answer ??, caf\xc3\xa9, end?of it");
  EXPECT_EQ(row("down").trouble, row("rejecting").reason);
  write(5);
  ASSERT_TRUE(eventually([&] { return well->events().size() == 10; }));
  EXPECT_EQ(relay->report().generation, generation) << "the lanes were given up for it";
}

}  // namespace
}  // namespace outbox::test
