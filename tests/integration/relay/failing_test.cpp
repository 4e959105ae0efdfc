// Tests, on both stores, events that fail by their own fault or take long, beside others that do
// not.
#include <map>
#include <outbox/testing.hpp>

#include "integration/relay/both_stores.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;

/// A sink that is not gapless. It acks everything but events of type "Slow", which it acks once
/// they are released.
class PartlySlowSink final : public Sink {
 public:
  explicit PartlySlowSink(std::shared_ptr<std::atomic<bool>> released)
      : released_(std::move(released)) {}
  [[nodiscard]] std::shared_ptr<const testing::Recording> recording() const { return recording_; }
  [[nodiscard]] SinkTraits traits() const noexcept override { return {.name = "partly slow"}; }
  [[nodiscard]] Status open() override { return {}; }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override {
    for (const Message& message : messages) {
      Sent sent{message.token, {}};
      sent.event.aggregate_id = message.event->aggregate_id;
      sent.event.event_type = message.event->event_type;
      (message.event->event_type == "Slow" ? slow_ : quick_).push_back(std::move(sent));
    }
    return messages.size();
  }
  void receive(std::vector<Outcome>& outcomes) override {
    ack(quick_, outcomes);
    if (*released_) ack(slow_, outcomes);
  }
  void purge() override {}
  void close() noexcept override {}

 private:
  struct Sent {
    Token token;
    testing::RecordedEvent event;
  };
  void ack(std::vector<Sent>& all, std::vector<Outcome>& outcomes) {
    for (Sent& sent : all) {
      recording_->add(std::move(sent.event));
      outcomes.push_back({.token = sent.token, .kind = Outcome::Kind::acked});
    }
    all.clear();
  }

  std::shared_ptr<std::atomic<bool>> released_;
  std::shared_ptr<testing::Recording> recording_{std::make_shared<testing::Recording>()};
  std::vector<Sent> quick_;
  std::vector<Sent> slow_;
};

class FailingTest : public OnBothStores {
 protected:
  static SubscriptionSpec spec() {
    SubscriptionSpec spec = custom("mails");
    spec.max_attempts = 2;
    spec.on_dead = OnDead::block;
    spec.retry_base = milliseconds(20);
    spec.retry_jitter = 0;
    return spec;
  }
  template <class AnySink>
  std::unique_ptr<Relay> start(std::unique_ptr<AnySink> sink) {
    auto relay = make_relay({.store_url = url_, .subscriptions = {spec()}});
    recording_ = sink->recording();
    EXPECT_TRUE(relay->use("mails", std::move(sink)));
    EXPECT_TRUE(relay->start());
    return relay;
  }
  /// Waits for the condition while other keys have something to deliver.
  bool eventually_beside_others(const std::function<bool()>& condition) {
    return eventually([&] {
      for (const char* key : {"b", "c", "d"}) write(key, {"T" + std::to_string(others_)});
      ++others_;
      return condition();
    });
  }
  [[nodiscard]] std::vector<std::string> arrived(const std::string& key) const {
    std::vector<std::string> types;
    for (const auto& event : recording_->events()) {
      if (event.aggregate_id == key) types.push_back(event.event_type);
    }
    return types;
  }
  /// The types of the events in this state.
  [[nodiscard]] std::vector<std::string> parked(store::ParkedState state) const {
    std::vector<std::string> types;
    const auto rows = store_->parked_events().value()->list({.state = state}, 100, false).value();
    for (const auto& row : rows) types.push_back(row.event_type);
    return types;
  }
  void expect_others_arrived_in_order() {
    std::vector<std::string> all;
    for (int i = 0; i < others_; ++i) all.push_back("T" + std::to_string(i));
    for (const char* key : {"b", "c", "d"}) {
      ASSERT_TRUE(eventually([&] { return arrived(key).size() >= all.size(); })) << key;
      EXPECT_EQ(arrived(key), all) << key;
    }
  }

  std::shared_ptr<const testing::Recording> recording_;
  int others_{0};
};

INSTANTIATE_TEST_SUITE_P(Store, FailingTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(FailingTest, an_event_that_keeps_failing_is_parked_alone_whatever_its_sink_says) {
  int number = 0;
  for (const bool gapless : {false, true}) {
    for (const auto kind : {Outcome::Kind::retry, Outcome::Kind::unknown}) {
      SCOPED_TRACE(std::string(gapless ? "gapless " : "not gapless ") +
                   (kind == Outcome::Kind::retry ? "retry" : "unknown"));
      const std::string key = "a" + std::to_string(++number);
      const auto forgiving = std::make_shared<std::atomic<bool>>(false);
      const auto relay = start(std::make_unique<testing::FailingSink>(
          [forgiving, kind](const EventView& event) {
            return event.event_type == "Poison" && !*forgiving ? kind : Outcome::Kind::acked;
          },
          SinkTraits{.name = "failing", .gapless = gapless}));
      others_ = 0;
      write(key, {"A1", "Poison", "A3"});
      ASSERT_TRUE(eventually_beside_others([&] {
        return parked(store::ParkedState::dead) == std::vector<std::string>{"Poison"} &&
               parked(store::ParkedState::waiting) == std::vector<std::string>{"A3"};
      }));
      EXPECT_TRUE(parked(store::ParkedState::retrying).empty());
      EXPECT_EQ(arrived(key), (std::vector<std::string>{"A1"}));
      *forgiving = true;
      const auto parked_events = store_->parked_events().value();
      const auto dead =
          parked_events->list({.state = store::ParkedState::dead}, 1, false).value().front();
      EXPECT_EQ(parked_events->retry(row().id, std::vector{dead.seq}, false).value(), 1U);
      ASSERT_TRUE(eventually([&] { return arrived(key).size() == 3; }));
      EXPECT_EQ(arrived(key), (std::vector<std::string>{"A1", "Poison", "A3"}));
      expect_others_arrived_in_order();
      ASSERT_TRUE(eventually_settled(url_, "mails"));
      EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
      EXPECT_EQ(Verifier::verify(url_, "mails"), "");
    }
  }
}

TEST_P(FailingTest, a_slow_event_is_set_aside_and_its_key_follows_when_it_is_done) {
  const auto released = std::make_shared<std::atomic<bool>>(false);
  const auto relay = start(std::make_unique<PartlySlowSink>(released));
  write("a", {"A1", "Slow", "A3"});
  ASSERT_TRUE(eventually_beside_others([&] {
    return parked(store::ParkedState::retrying) == std::vector<std::string>{"Slow"} &&
           parked(store::ParkedState::waiting) == std::vector<std::string>{"A3"};
  }));
  EXPECT_EQ(arrived("a"), (std::vector<std::string>{"A1"}));
  EXPECT_EQ(store_->parked_events().value()->list({}, 1, false).value().front().attempts, 0U);
  *released = true;
  ASSERT_TRUE(eventually([&] { return arrived("a").size() == 3; }));
  ASSERT_TRUE(eventually_settled(url_, "mails"));
  ASSERT_TRUE(eventually([&] {
    return parked(store::ParkedState::retrying).empty() &&
           parked(store::ParkedState::waiting).empty();
  }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(arrived("a"), (std::vector<std::string>{"A1", "Slow", "A3"})) << "nothing twice";
  expect_others_arrived_in_order();
  EXPECT_EQ(Verifier::verify(url_, "mails"), "");
}

TEST_P(FailingTest, an_outage_parks_nothing) {
  const auto down = std::make_shared<std::atomic<bool>>(false);
  const auto failures = std::make_shared<std::atomic<int>>(0);
  const auto relay = start(std::make_unique<testing::FailingSink>(
      [down, failures](const EventView&) {
        if (!*down) return Outcome::Kind::acked;
        return ++*failures % 2 == 0 ? Outcome::Kind::retry : Outcome::Kind::unknown;
      },
      SinkTraits{.name = "failing", .gapless = false}));
  ASSERT_TRUE(eventually_beside_others([&] { return arrived("b").size() > 2; }));
  *down = true;
  ASSERT_TRUE(eventually_beside_others([&] { return *failures > 5; }));
  *down = false;
  ASSERT_TRUE(eventually_settled(url_, "mails"));
  expect_others_arrived_in_order();
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  EXPECT_EQ(store_->parked_events().value()->list({}, 1, false).value().size(), 0U);
  EXPECT_EQ(Verifier::verify(url_, "mails"), "");
}

}  // namespace
}  // namespace outbox::test
