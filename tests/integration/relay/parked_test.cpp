// Tests, on both stores, that rejected events are parked and retried beside the stream, in the
// order of their keys, across restarts, until a person decides.
#include <atomic>
#include <map>
#include <outbox/testing.hpp>

#include "integration/relay/both_stores.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;

class ParkedTest : public OnBothStores {
 protected:
  void SetUp() override {
    OnBothStores::SetUp();
    options_.store_url = url_;
  }
  static SubscriptionSpec spec(std::size_t max_attempts, OnDead on_dead = OnDead::proceed) {
    SubscriptionSpec spec = custom("mails");
    spec.max_attempts = max_attempts;
    spec.on_dead = on_dead;
    spec.retry_base = milliseconds(20);
    spec.retry_jitter = 0;
    return spec;
  }
  /// Starts a relay whose sink rejects each event of type "Poison" so many times.
  std::unique_ptr<Relay> start(const SubscriptionSpec& spec, int rejections) {
    options_.subscriptions = {spec};
    auto relay = make_relay(options_);
    auto sink = std::make_unique<testing::FailingSink>(
        [counts = std::map<std::int64_t, int>(), rejections,
         forgiving = forgiving_](const EventView& event) mutable {
          if (event.event_type != "Poison" || *forgiving) return Outcome::Kind::acked;
          return ++counts[event.seq] <= rejections ? Outcome::Kind::rejected : Outcome::Kind::acked;
        });
    recording_ = sink->recording();
    EXPECT_TRUE(relay->use("mails", std::move(sink)));
    EXPECT_TRUE(relay->start());
    return relay;
  }
  /// The types of the key's events in the order in which they arrived.
  [[nodiscard]] std::vector<std::string> arrived(const std::string& key) const {
    std::vector<std::string> types;
    for (const auto& event : recording_->events()) {
      if (event.aggregate_id == key) types.push_back(event.event_type);
    }
    return types;
  }
  [[nodiscard]] store::ParkedCounts counts() const {
    return store_->parked_events().value()->counts(row().id).value();
  }
  [[nodiscard]] std::vector<std::int64_t> list_seqs(store::ParkedState state) const {
    std::vector<std::int64_t> seqs;
    const auto parked = store_->parked_events().value();
    const auto found = parked->list({.state = state}, 100, false).value();
    for (const auto& event : found) seqs.push_back(event.seq);
    return seqs;
  }
  [[nodiscard]] std::int64_t delivered() const {
    store::SubscriptionProgress total;
    total.id = row().id;
    EXPECT_TRUE(store_->catalog().value()->add_totals(total));
    return total.acked;
  }
  [[nodiscard]] bool all_gone() const {
    const auto now = counts();
    return now.retrying + now.waiting + now.dead == 0;
  }

  RelayOptions options_;
  std::shared_ptr<std::atomic<bool>> forgiving_{std::make_shared<std::atomic<bool>>(false)};
  std::shared_ptr<const testing::Recording> recording_;
};

INSTANTIATE_TEST_SUITE_P(Store, ParkedTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(ParkedTest,
       an_event_that_is_rejected_for_a_while_arrives_in_its_place_and_others_do_not_wait) {
  write("a", {"A1", "Poison", "A3"});
  write("b", {"B1", "B2"});
  const auto relay = start(spec(10), 2);
  ASSERT_TRUE(eventually([&] { return arrived("b").size() == 2; }));
  write("a", {"A4"});
  ASSERT_TRUE(eventually([&] { return arrived("a").size() == 4; }));
  EXPECT_EQ(arrived("a"), (std::vector<std::string>{"A1", "Poison", "A3", "A4"}));
  ASSERT_TRUE(eventually([&] { return all_gone() && delivered() == 6; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(recording_->events().size(), 6U) << "nothing arrives twice";
  expect_sound_ledger("mails");
}

TEST_P(ParkedTest, a_dead_event_rests_until_a_person_sends_it_again) {
  write("a", {"Poison", "A2"});
  const auto relay = start(spec(2), 1000);
  ASSERT_TRUE(eventually([&] { return counts().dead == 1 && arrived("a").size() == 1; }));
  EXPECT_EQ(arrived("a"), (std::vector<std::string>{"A2"}));
  *forgiving_ = true;
  const auto dead = list_seqs(store::ParkedState::dead);
  EXPECT_EQ(store_->parked_events().value()->retry(row().id, dead, false).value(), 1U);
  ASSERT_TRUE(eventually([&] { return arrived("a").size() == 2; }));
  ASSERT_TRUE(eventually([&] { return all_gone(); }));
  write("a", {"A3"});
  ASSERT_TRUE(eventually([&] { return arrived("a").size() == 3; })) << "its key is free";
}

TEST_P(ParkedTest, a_dead_event_that_blocks_its_key_is_discarded_and_the_key_goes_on) {
  write("a", {"Poison", "A2"});
  write("b", {"B1"});
  const auto relay = start(spec(1, OnDead::block), 1000);
  ASSERT_TRUE(eventually([&] { return counts().dead == 1 && arrived("b").size() == 1; }));
  write("a", {"A3"});
  ASSERT_TRUE(eventually([&] { return counts().waiting == 2; }));
  EXPECT_TRUE(arrived("a").empty());
  const auto dead = list_seqs(store::ParkedState::dead);
  EXPECT_EQ(store_->parked_events().value()->discard(row().id, dead, "anna", "a test").value(), 1U);
  ASSERT_TRUE(eventually([&] { return arrived("a").size() == 2; }));
  EXPECT_EQ(arrived("a"), (std::vector<std::string>{"A2", "A3"}));
  ASSERT_TRUE(eventually([&] { return all_gone() && delivered() == 3; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  expect_sound_ledger("mails");
}

TEST_P(ParkedTest, the_next_relay_goes_on_with_what_is_parked) {
  write("a", {"Poison", "A2"});
  SubscriptionSpec patient = spec(10);
  patient.retry_base = std::chrono::hours(1);
  patient.retry_cap = std::chrono::hours(1);
  {
    const auto relay = start(patient, 1000);
    ASSERT_TRUE(eventually([&] { return counts().retrying == 1 && counts().waiting == 1; }));
    EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  }
  write("a", {"A3"});
  const auto relay = start(patient, 0);
  ASSERT_TRUE(eventually([&] { return counts().waiting == 2; }))
      << "it knows what was parked before";
  const auto retrying = list_seqs(store::ParkedState::retrying);
  EXPECT_EQ(store_->parked_events().value()->retry(row().id, retrying, false).value(), 1U);
  ASSERT_TRUE(eventually([&] { return arrived("a").size() == 3; }));
  EXPECT_EQ(arrived("a"), (std::vector<std::string>{"Poison", "A2", "A3"}));
}

TEST_P(ParkedTest, the_next_relay_sends_what_is_parked_and_has_no_key) {
  write("", {"Poison"});
  SubscriptionSpec patient = spec(10);
  patient.retry_base = std::chrono::hours(1);
  patient.retry_cap = std::chrono::hours(1);
  {
    const auto relay = start(patient, 1000);
    ASSERT_TRUE(eventually([&] { return counts().retrying == 1; }));
    EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  }
  const auto retrying = list_seqs(store::ParkedState::retrying);
  EXPECT_EQ(store_->parked_events().value()->retry(row().id, retrying, false).value(), 1U);
  const auto relay = start(patient, 0);
  ASSERT_TRUE(eventually([&] { return all_gone() && arrived("").size() == 1; }));
}

TEST_P(ParkedTest, a_dead_event_without_a_key_is_sent_when_a_person_says_so) {
  write("", {"Poison"});
  const auto relay = start(spec(1), 1000);
  ASSERT_TRUE(eventually([&] { return counts().dead == 1; }));
  *forgiving_ = true;
  const auto dead = list_seqs(store::ParkedState::dead);
  EXPECT_EQ(store_->parked_events().value()->retry(row().id, dead, false).value(), 1U);
  ASSERT_TRUE(eventually([&] { return all_gone() && arrived("").size() == 1; }));
}

TEST_P(ParkedTest, thousands_that_wait_behind_one_event_follow_it_in_order) {
  std::vector<std::string> types{"Poison"};
  for (int i = 0; i < 2000; ++i) types.push_back("E" + std::to_string(i));
  write("a", types);
  const auto relay = start(spec(10), 3);
  ASSERT_TRUE(eventually([&] { return arrived("a").size() == types.size(); }));
  EXPECT_EQ(arrived("a"), types);
  ASSERT_TRUE(eventually([&] { return all_gone(); }));
  write("a", {"Last"});
  ASSERT_TRUE(eventually([&] { return arrived("a").size() == types.size() + 1; }));
}

/// A gapless sink that refuses events of type "Poison" by itself, before it delivers anything of
/// them.
class RefusingSink final : public BatchSink {
 public:
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "refusing", .gapless = true};
  }
  [[nodiscard]] Status open() override {
    ++*opened;
    return {};
  }
  void close() noexcept override {}

  std::shared_ptr<std::atomic<int>> opened{std::make_shared<std::atomic<int>>(0)};
  std::shared_ptr<std::atomic<int>> delivered{std::make_shared<std::atomic<int>>(0)};

 protected:
  [[nodiscard]] std::size_t deliver(std::span<const Message> batch, Outcome& failure) override {
    std::size_t count = 0;
    while (count < batch.size() && batch[count].event->event_type != "Poison") ++count;
    *delivered += static_cast<int>(count);
    failure = {.kind = Outcome::Kind::rejected, .unsent = true};
    failure.error.message = "refused by the test";
    return count;
  }
};

TEST_P(ParkedTest, what_a_gapless_sink_refuses_by_itself_stops_no_other_event) {
  constexpr int kKeys = 40;
  for (int i = 0; i < kKeys; ++i) {
    write("good" + std::to_string(i), {"Good"});
    write("bad" + std::to_string(i), {"Poison", "Behind"});
  }
  options_.subscriptions = {spec(1)};
  const auto relay = make_relay(options_);
  auto sink = std::make_unique<RefusingSink>();
  const auto opened = sink->opened;
  const auto delivered = sink->delivered;
  ASSERT_TRUE(relay->use("mails", std::move(sink)));
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(eventually([&] { return counts().dead == kKeys && *delivered == 2 * kKeys; }));
  ASSERT_TRUE(eventually([&] { return counts().waiting + counts().retrying == 0; }));
  EXPECT_EQ(opened->load(), 1) << "it is not opened again";
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(delivered->load(), 2 * kKeys) << "nothing arrives twice";
  expect_sound_ledger("mails");
}

}  // namespace
}  // namespace outbox::test
