// Tests, on both stores, that a subscription is renamed, reset and dropped while a relay delivers
// it under load, also with parked events. The ledger is verified afterwards, and meanwhile.
#include <atomic>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "integration/relay/both_stores.hpp"
#include "store/subscriptions.hpp"
#include "support/relay_process.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

using Start = store::NewStart;

class SubscriptionChanges : public OnBothStores {
 protected:
  void SetUp() override {
    OnBothStores::SetUp();
    if (IsSkipped()) return;
    changes_ = store::open_subscription_changes({.url = url_}).value();
    options_.store_url = url_;
  }

  [[nodiscard]] std::int64_t pending(const std::string& name) const {
    const auto catalog = store_->catalog().value();
    const auto rows = catalog->subscriptions().value();
    for (const auto& one : rows) {
      if (one.spec.name == name) return catalog->progress(one, 100000).value().pending;
    }
    return -1;
  }
  [[nodiscard]] std::vector<store::ParkedListing> parked() const {
    return store_->parked_events().value()->list({}, 1000, false).value();
  }
  [[nodiscard]] std::size_t lines() const { return lines_in(folder_.file("lines")); }
  [[nodiscard]] std::size_t delivered() const { return event_ids_in(folder_.file("lines")).size(); }
  /// The one of the ids 1 and 2 that no subscription has.
  [[nodiscard]] int dropped_id() const { return 3 - row().id; }
  [[nodiscard]] std::string verified(const std::string& name) const {
    return Verifier::verify(url_, name);
  }

  /// Writes events of seven keys, until it is told to stop.
  class Writer {
   public:
    explicit Writer(const SubscriptionChanges& test, std::size_t at_once = 1)
        : thread_([this, &test, at_once](const std::stop_token& stop) {
            const std::vector<std::string> types(at_once, "Placed");
            for (int n = 0; !stop.stop_requested(); ++n, written_ += at_once)
              test.write("k" + std::to_string(n % 7), types);
          }) {}
    [[nodiscard]] std::size_t written() const { return written_; }
    /// Stops the writer, and returns how many events it has written.
    std::size_t stop() {
      thread_.request_stop();
      thread_.join();
      return written_;
    }

   private:
    std::atomic<std::size_t> written_{0};
    std::jthread thread_;
  };

  std::unique_ptr<store::SubscriptionChanges> changes_;
  RelayOptions options_;
};

INSTANTIATE_TEST_SUITE_P(Store, SubscriptionChanges, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

/// Counts how often each seq arrived.
std::map<std::int64_t, int> times(const testing::Recording& recording) {
  std::map<std::int64_t, int> seen;
  for (const auto& event : recording.events()) ++seen[event.seq];
  return seen;
}

TEST_P(SubscriptionChanges, a_reset_under_load_loses_nothing_and_the_ledger_holds) {
  options_.subscriptions = {custom("orders"), custom("other")};
  const auto relay = make_relay(options_);
  const auto orders = record(*relay, "orders");
  const auto other = record(*relay, "other");
  ASSERT_TRUE(relay->start());
  Writer writer(*this);
  const Verifier verifier(url_, "orders");
  for (int round = 0; round < 3; ++round) {
    const std::size_t before = orders->events().size();
    EXPECT_TRUE(eventually([&] { return orders->events().size() > before + 50; }));
    const auto reset = changes_->reset("orders", {.kind = Start::Kind::beginning});
    ASSERT_TRUE(reset) << reset.error().text();
  }
  const std::size_t written = writer.stop();
  ASSERT_TRUE(eventually([&] { return pending("orders") == 0 && pending("other") == 0; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  const auto seen = times(*orders);
  EXPECT_EQ(seen.size(), written) << "each event at least once";
  EXPECT_GE(seen.begin()->second, 2) << "the first one again, at least once for all three";
  EXPECT_EQ(other->events().size(), written) << "the other one is not disturbed";
  EXPECT_EQ(verifier.found(), "");
  EXPECT_EQ(verified("orders"), "");
  EXPECT_EQ(verified("other"), "");
}

TEST_P(SubscriptionChanges, what_is_skipped_is_counted_and_never_delivered) {
  options_.subscriptions = {custom("orders", {"Placed"})};
  ASSERT_TRUE(store_->catalog().value()->apply(options_.subscriptions.front()));
  write("k", {"Placed", "Placed", "Ignored", "Placed"});
  const Start now{.kind = Start::Kind::now};
  const auto plan = changes_->plan_reset("orders", now, false).value();
  std::int64_t skipped = 0;
  for (const auto& count : plan.counts) {
    EXPECT_EQ(count.again, 0);
    if (count.event_type == "Placed") skipped += count.skipped;
  }
  EXPECT_EQ(skipped, 3);
  ASSERT_TRUE(changes_->reset("orders", now));
  EXPECT_EQ(pending("orders"), 0);
  write("k", {"Placed"});
  const auto relay = make_relay(options_);
  const auto orders = record(*relay, "orders");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return pending("orders") == 0; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  EXPECT_EQ(orders->events().size(), 1U);
  EXPECT_EQ(verified("orders"), "");
}

TEST_P(SubscriptionChanges, a_reset_to_the_middle_begins_there) {
  options_.subscriptions = {custom("orders")};
  write("k", {"A", "B", "C", "D"});
  auto relay = make_relay(options_);
  auto orders = record(*relay, "orders");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return pending("orders") == 0 && orders->events().size() == 4; }));
  const std::int64_t second = orders->events()[1].seq;
  ASSERT_TRUE(changes_->reset("orders", {.kind = Start::Kind::after, .after = second}));
  write("k", {"E"});
  const auto types = [&] {
    std::string all;
    for (const auto& event : orders->events()) all += event.event_type;
    return all;
  };
  ASSERT_TRUE(eventually([&] { return types().ends_with("CDE"); })) << types();
  ASSERT_TRUE(eventually([&] { return pending("orders") == 0; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  EXPECT_TRUE(types() == "ABCDCDE" || types() == "ABCDECDE") << types();
  EXPECT_EQ(verified("orders"), "");
}

TEST_P(SubscriptionChanges, parked_events_that_come_again_go_and_the_others_stay) {
  SubscriptionSpec spec = custom("orders");
  spec.max_attempts = 1;
  options_.subscriptions = {spec};
  const auto mended = std::make_shared<std::atomic<bool>>(false);
  const auto make = [&] {
    auto sink = std::make_unique<testing::FailingSink>([mended](const EventView& event) {
      return event.event_type == "Poison" && !*mended ? Outcome::Kind::rejected
                                                      : Outcome::Kind::acked;
    });
    return sink;
  };
  auto relay = make_relay(options_);
  ASSERT_TRUE(relay->use("orders", make()));
  ASSERT_TRUE(relay->start());
  write("a", {"Poison", "Fine"});
  write("b", {"Poison", "Fine"});
  ASSERT_TRUE(eventually([&] { return parked().size() == 2 && pending("orders") == 0; }));
  // One of them is discarded, and counts as such from then on, also after the reset.
  const auto rows = parked();
  const std::vector<std::int64_t> given_up{rows[1].seq};
  ASSERT_TRUE(
      store_->parked_events().value()->discard(rows[1].subscription, given_up, "me", "why"));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  EXPECT_EQ(verified("orders"), "");

  // After a reset to the end of the log the other event stays parked.
  ASSERT_TRUE(changes_->reset("orders", {.kind = Start::Kind::now}));
  ASSERT_EQ(parked().size(), 1U);
  EXPECT_EQ(verified("orders"), "");
  // After a reset to the beginning both are sent again.
  const auto plan = changes_->plan_reset("orders", {}, false).value();
  EXPECT_EQ(plan.parked_again, 1);
  EXPECT_EQ(plan.discarded_again, 1);
  EXPECT_EQ(plan.parked_kept, 0);
  ASSERT_TRUE(changes_->reset("orders", {}));
  EXPECT_TRUE(parked().empty());
  EXPECT_EQ(verified("orders"), "");
  *mended = true;
  relay = make_relay(options_);
  auto sink = make();
  const auto again = sink->recording();
  ASSERT_TRUE(relay->use("orders", std::move(sink)));
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return again->events().size() == 4; }));
  ASSERT_TRUE(eventually([&] { return pending("orders") == 0; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  EXPECT_EQ(verified("orders"), "");
}

TEST_P(SubscriptionChanges, what_stays_parked_is_retried_after_a_reset) {
  SubscriptionSpec spec = custom("orders");
  spec.delays = {std::chrono::milliseconds(50), std::chrono::milliseconds(50),
                 std::chrono::milliseconds(50), std::chrono::hours(1)};
  options_.subscriptions = {spec};
  const auto mended = std::make_shared<std::atomic<bool>>(false);
  const auto relay = make_relay(options_);
  auto sink = std::make_unique<testing::FailingSink>([mended](const EventView& event) {
    return event.event_type == "Poison" && !*mended ? Outcome::Kind::rejected
                                                    : Outcome::Kind::acked;
  });
  const auto orders = sink->recording();
  ASSERT_TRUE(relay->use("orders", std::move(sink)));
  ASSERT_TRUE(relay->start());
  write("a", {"Poison", "Behind"});
  write("b", {"Fine"});
  ASSERT_TRUE(eventually([&] { return parked().size() == 2; }));
  ASSERT_TRUE(changes_->reset("orders", {.kind = Start::Kind::now}));
  EXPECT_EQ(parked().size(), 2U);
  EXPECT_EQ(verified("orders"), "");
  // From now on it is sent again in an hour, or when a person says so.
  std::vector<store::ParkedListing> rows;
  ASSERT_TRUE(eventually([&] {
    rows = parked();
    return rows.size() == 2 && rows[0].attempts == 4;
  }));
  *mended = true;
  const std::vector<std::int64_t> poison{rows[0].seq};
  ASSERT_TRUE(store_->parked_events().value()->retry(rows[0].subscription, poison, true));
  ASSERT_TRUE(eventually([&] { return parked().empty(); }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  EXPECT_EQ(orders->events().size(), 3U);
  EXPECT_EQ(verified("orders"), "");
}

TEST_P(SubscriptionChanges, renamed_under_load_it_goes_on_where_it_was) {
  SubscriptionSpec spec;
  spec.name = "orders";
  spec.sink = "file";
  spec.sink_settings = {{"path", folder_.file("lines")}};
  options_.subscriptions = {spec};
  const auto relay = make_relay(options_);
  ASSERT_TRUE(relay->start());
  Writer writer(*this);
  std::string name = "orders";
  for (const char* next : {"sales", "orders", "invoices"}) {
    const std::size_t before = lines();
    EXPECT_TRUE(eventually([&] { return lines() > before + 20; }));
    const Status renamed = changes_->rename(name, next);
    ASSERT_TRUE(renamed) << renamed.error().text();
    name = next;
  }
  const std::size_t written = writer.stop();
  ASSERT_TRUE(eventually([&] { return pending("invoices") == 0; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  EXPECT_EQ(delivered(), written);
  EXPECT_EQ(verified("invoices"), "");
  EXPECT_EQ(changes_->former_names().value().size(), 2U);
  // A relay that still has the first name creates no subscription, and delivers the rest.
  const auto again = make_relay(options_);
  ASSERT_TRUE(again->start());
  write("k", {"Placed"});
  EXPECT_TRUE(eventually([&] { return delivered() == written + 1; }));
  EXPECT_EQ(store_->catalog().value()->subscriptions().value().size(), 1U);
}

/// Says what is wrong with the lines of the file; empty if nothing is.
std::string find_fault(const std::string& file) {
  std::set<std::string> ids;
  std::map<std::string, std::int64_t> newest;
  std::ifstream in(file);
  for (std::string text; std::getline(in, text);) {
    const auto line = nlohmann::json::parse(text);
    const auto seq = line.at("seq").get<std::int64_t>();
    if (!ids.insert(line.at("id")).second) return "twice: seq " + std::to_string(seq);
    std::int64_t& before = newest[line.at("aggregate_id")];
    if (seq <= before) return "out of order: seq " + std::to_string(seq);
    before = seq;
  }
  return {};
}

TEST_P(SubscriptionChanges, a_file_that_is_renamed_under_load_keeps_its_owner) {
  SubscriptionSpec spec;
  spec.name = "orders";
  spec.sink = "file";
  spec.sink_settings = {{"path", folder_.file("lines")}};
  options_.subscriptions = {spec};
  // Either of two relays can have the lanes of the subscription.
  options_.name = "first";
  const auto first = make_relay(options_);
  ASSERT_TRUE(first->start());
  options_.name = "second";
  const auto second = make_relay(options_);
  ASSERT_TRUE(second->start());
  Writer writer(*this, 20);
  std::string name = "orders";
  for (const char* next : {"sales", "invoices", "orders", "lines"}) {
    const std::size_t before = lines();
    EXPECT_TRUE(eventually([&] { return lines() > before + 100; }));
    const Status renamed = changes_->rename(name, next);
    ASSERT_TRUE(renamed) << renamed.error().text();
    EXPECT_EQ(row().group, "file:orders");
    name = next;
    EXPECT_TRUE(eventually([&] {
      return !read_report(*first, name).name.empty() || !read_report(*second, name).name.empty();
    }));
  }
  const std::size_t written = writer.stop();
  ASSERT_TRUE(eventually([&] { return pending(name) == 0; }));
  EXPECT_TRUE(first->stop(std::chrono::seconds(20)).drained);
  EXPECT_TRUE(second->stop(std::chrono::seconds(20)).drained);
  EXPECT_EQ(lines(), written);
  EXPECT_EQ(find_fault(folder_.file("lines")), "");
  EXPECT_EQ(verified(name), "");
}

TEST_P(SubscriptionChanges, dropped_under_load_it_stops_and_others_go_on) {
  options_.subscriptions = {custom("orders"), custom("other")};
  const auto relay = make_relay(options_);
  const auto orders = record(*relay, "orders");
  const auto other = record(*relay, "other");
  ASSERT_TRUE(relay->start());
  Writer writer(*this);
  EXPECT_TRUE(eventually([&] { return orders->events().size() > 50; }));
  ASSERT_TRUE(changes_->drop("orders"));
  EXPECT_TRUE(eventually([&] { return read_report(*relay, "orders").name.empty(); }));
  const std::size_t held = orders->events().size();
  const std::size_t then = writer.written();
  EXPECT_TRUE(eventually([&] { return other->events().size() > then + 50; }));
  EXPECT_EQ(orders->events().size(), held);
  const std::size_t written = writer.stop();
  ASSERT_TRUE(eventually([&] { return pending("other") == 0; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(20)).drained);
  EXPECT_EQ(other->events().size(), written);
  EXPECT_EQ(verified("other"), "");
  EXPECT_EQ(pending("orders"), -1);
  // After a pass of retention nothing is left of the dropped subscription.
  ASSERT_TRUE(store_->retention().value()->tidy(std::chrono::hours(1), {}));
  const auto reader = store_->ledger_reader().value();
  for (int id = 1; id <= 2; ++id) {
    ASSERT_TRUE(reader->begin(id));
    EXPECT_EQ(reader->next_rows(10).value().empty(), id == dropped_id()) << id;
  }
}

}  // namespace
}  // namespace outbox::test
