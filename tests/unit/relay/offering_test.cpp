// Tests how a batch is offered to a sink that refuses some of its messages by itself.
#include "relay/offering.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <utility>

namespace outbox::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Outcome::Kind;

/// Refuses some messages and fails at others. A failure stops the sink. If the sink is gapless, a
/// refused message ends the call.
class PickySink final : public Sink {
 public:
  [[nodiscard]] SinkTraits traits() const noexcept override {
    return {.name = "picky", .gapless = gapless};
  }
  [[nodiscard]] Status open() override { return {}; }
  [[nodiscard]] std::size_t send(std::span<const Message> messages) override {
    ++calls;
    std::size_t count = 0;
    while (count < messages.size() && count < most && !stopped_) {
      const Token token = messages[count++].token;
      const bool refuses = refused.contains(token);
      stopped_ = failing.contains(token);
      if (refuses || stopped_) {
        ready_.push_back(
            {.token = token, .kind = refuses ? Kind::rejected : Kind::retry, .unsent = refuses});
      } else {
        taken.push_back(token);
      }
      if (refuses && gapless) break;
    }
    return count;
  }
  void receive(std::vector<Outcome>& outcomes) override {
    for (Outcome& outcome : ready_) outcomes.push_back(std::move(outcome));
    ready_.clear();
  }
  void purge() override {}
  void close() noexcept override {}

  bool gapless{true};
  std::size_t most{1000};
  std::set<Token> refused;
  std::set<Token> failing;
  std::vector<Token> taken;
  int calls{0};

 private:
  bool stopped_{false};
  std::vector<Outcome> ready_;
};

class OfferingTest : public ::testing::Test {
 protected:
  /// Makes a message of each key, with the tokens 1, 2, ...
  void messages_of(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      EventView event;
      event.aggregate_type = "order";
      event.aggregate_id = keys_.emplace_back(key);
      events_.push_back(event);
      Message& message = messages_.emplace_back();
      message.token = messages_.size();
    }
    for (std::size_t i = 0; i < events_.size(); ++i) messages_[i].event = &events_[i];
  }
  std::size_t offer(bool parks = true) {
    Offering offering(sink_, parks);
    const std::size_t done = offering.offer(messages_, outcomes_);
    kept_back_ = offering.kept_back();
    return done;
  }

  PickySink sink_;
  std::deque<std::string> keys_;
  std::deque<EventView> events_;
  std::vector<Message> messages_;
  std::vector<Outcome> outcomes_;
  std::vector<Token> kept_back_;
};

TEST_F(OfferingTest, what_a_gapless_sink_refuses_keeps_back_its_key_only) {
  messages_of({"a", "b", "a", "c", "b", "b", "d"});
  sink_.refused = {2, 4};
  EXPECT_EQ(offer(), 7U);
  EXPECT_THAT(sink_.taken, ElementsAre(1, 3, 7));
  EXPECT_THAT(kept_back_, ElementsAre(5, 6));
}

TEST_F(OfferingTest, events_without_a_key_are_not_behind_each_other) {
  messages_of({"", "", "", ""});
  sink_.refused = {1, 3};
  EXPECT_EQ(offer(), 4U);
  EXPECT_THAT(sink_.taken, ElementsAre(2, 4));
  EXPECT_THAT(kept_back_, IsEmpty());
}

TEST_F(OfferingTest, ends_where_the_sink_has_no_room) {
  messages_of({"a", "b", "c", "d", "e"});
  sink_.most = 2;
  sink_.refused = {2};
  EXPECT_EQ(offer(), 4U);
  EXPECT_THAT(sink_.taken, ElementsAre(1, 3, 4));
}

TEST_F(OfferingTest, ends_behind_a_failure_that_stops_the_sink) {
  messages_of({"a", "b", "c", "d"});
  sink_.refused = {1};
  sink_.failing = {3};
  EXPECT_EQ(offer(), 3U);
  EXPECT_THAT(sink_.taken, ElementsAre(2));
  ASSERT_EQ(outcomes_.size(), 2U);
  EXPECT_EQ(outcomes_[1].token, 3U);
}

TEST_F(OfferingTest, a_subscription_that_stops_at_what_is_rejected_offers_nothing_behind_it) {
  messages_of({"a", "b", "c"});
  sink_.refused = {2};
  EXPECT_EQ(offer(false), 2U);
  EXPECT_THAT(sink_.taken, ElementsAre(1));
}

TEST_F(OfferingTest, a_sink_that_is_not_gapless_goes_on_by_itself) {
  messages_of({"a", "b", "c"});
  sink_.gapless = false;
  sink_.refused = {2};
  EXPECT_EQ(offer(), 3U);
  EXPECT_EQ(sink_.calls, 1);
  EXPECT_THAT(sink_.taken, ElementsAre(1, 3));
}

}  // namespace
}  // namespace outbox::relay
