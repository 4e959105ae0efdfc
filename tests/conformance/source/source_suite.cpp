// What every source promises (src/source/source.hpp), against a real broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/source/place.hpp"
#include "source/registry.hpp"
#include "support/eventually.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::conformance {
namespace {

using namespace std::chrono_literals;
using source::Received;
using source::Source;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

class SourceSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS(variable(), "a broker");
    place_ = make_place();
  }

  static std::unique_ptr<Source> make(const ConsumerSpec& spec) {
    auto made = source::make_source(spec);
    EXPECT_TRUE(made) << made.error().text();
    return std::move(*made);
  }
  static std::unique_ptr<Source> open(const ConsumerSpec& spec) {
    auto made = make(spec);
    const Status status = made->open();
    EXPECT_TRUE(status) << status.error().text();
    return made;
  }
  static void append(std::vector<Received>& all, std::vector<Received> more) {
    for (auto& one : more) all.push_back(std::move(one));
  }
  /// Reads until there are `count` messages, or nothing comes for long. Acknowledges if asked to.
  static std::vector<Received> read(Source& from, std::size_t count, bool acknowledge) {
    std::vector<Received> all;
    (void)test::eventually(
        [&] {
          std::vector<Received> some;
          const Status status = from.receive({.messages = 100, .wait = 100ms}, some);
          EXPECT_TRUE(status) << status.error().text();
          if (acknowledge && !some.empty()) {
            const Status acked = from.acknowledge(some);
            EXPECT_TRUE(acked) << acked.error().text();
          }
          append(all, std::move(some));
          return all.size() >= count;
        },
        60s);
    EXPECT_GE(all.size(), count);
    return all;
  }
  /// What comes within a while.
  static std::vector<Received> read_for(Source& from, std::chrono::milliseconds length) {
    std::vector<Received> all;
    const auto until = std::chrono::steady_clock::now() + length;
    while (std::chrono::steady_clock::now() < until)
      EXPECT_TRUE(from.receive({.messages = 100, .wait = 100ms}, all));
    return all;
  }
  static std::vector<Sent> numbered(int first, int last, int keys = 5) {
    std::vector<Sent> all;
    for (int i = first; i < last; ++i)
      all.push_back({.key = limits().keys ? std::to_string(i % keys) : "",
                     .payload = std::to_string(i),
                     .headers = limits().headers ? std::vector<Header>{{"n", std::to_string(i)}}
                                                 : std::vector<Header>{}});
    return all;
  }
  static std::multiset<std::string> payloads(const std::vector<Received>& messages) {
    std::multiset<std::string> all;
    for (const Received& one : messages) all.insert(one.payload);
    return all;
  }
  static std::multiset<std::string> payloads(const std::vector<Sent>& messages) {
    std::multiset<std::string> all;
    for (const Sent& one : messages) all.insert(one.payload);
    return all;
  }
  /// Whether the numbers of each key grow.
  static bool in_order(const std::vector<Received>& messages) {
    std::map<std::string, int> last;
    return std::all_of(messages.begin(), messages.end(), [&](const Received& one) {
      const int number = std::stoi(one.payload);
      const bool grows = !last.contains(one.key) || last[one.key] < number;
      last[one.key] = number;
      return grows;
    });
  }

  std::unique_ptr<Place> place_;
};

TEST_F(SourceSuite, hands_over_what_was_sent_in_order) {
  const auto sent = numbered(0, 500);
  place_->send(sent);
  const auto from = open(place_->spec());
  const auto got = read(*from, sent.size(), true);
  EXPECT_EQ(payloads(got), payloads(sent));
  EXPECT_TRUE(in_order(got));
  std::set<std::string> places;
  for (const Received& one : got) {
    EXPECT_NE(one.place, "");
    EXPECT_NE(one.channel, "");
    places.insert(one.place);
    const int number = std::stoi(one.payload);
    if (limits().keys) {
      EXPECT_EQ(one.key, std::to_string(number % 5));
    }
    const auto header = std::find_if(one.headers.begin(), one.headers.end(),
                                     [](const Header& each) { return each.first == "n"; });
    if (!limits().headers) continue;
    ASSERT_NE(header, one.headers.end());
    EXPECT_EQ(header->second, one.payload);
  }
  EXPECT_EQ(places.size(), sent.size()) << "each has a place of its own";
}

TEST_F(SourceSuite, hands_over_any_bytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::vector<Sent> sent{
      {.payload = bytes}, {.payload = ""}, {.payload = std::string(500'000, 'x')}};
  place_->send(sent);
  const auto from = open(place_->spec());
  EXPECT_EQ(payloads(read(*from, sent.size(), true)), payloads(sent));
}

TEST_F(SourceSuite, what_is_not_acknowledged_comes_again) {
  const auto sent = numbered(0, 200);
  place_->send(sent);
  const auto from = open(place_->spec());
  std::vector<Received> some;
  (void)test::eventually([&] {
    EXPECT_TRUE(from->receive({.messages = 50, .wait = 100ms}, some));
    return !some.empty();
  });
  ASSERT_FALSE(some.empty());
  from->close();
  ASSERT_TRUE(from->open());
  const auto again = read(*from, sent.size(), true);
  EXPECT_EQ(payloads(again), payloads(sent));
  EXPECT_TRUE(in_order(again));
}

TEST_F(SourceSuite, what_is_acknowledged_does_not_come_again) {
  place_->send(numbered(0, 200));
  const ConsumerSpec spec = place_->spec();
  {
    const auto from = open(spec);
    (void)read(*from, 200, true);
    from->close();
  }
  const auto next = numbered(200, 220);
  place_->send(next);
  const auto from = open(spec);
  EXPECT_EQ(payloads(read(*from, 20, true)), payloads(next));
  EXPECT_THAT(read_for(*from, 1s), IsEmpty());
}

TEST_F(SourceSuite, is_destroyed_without_being_closed) {
  place_->send(numbered(0, 10));
  const ConsumerSpec spec = place_->spec();
  {
    const auto from = open(spec);
    (void)read(*from, 10, false);
  }
  const auto from = open(spec);
  EXPECT_EQ(payloads(read(*from, 10, true)), payloads(numbered(0, 10)));
}

TEST_F(SourceSuite, the_members_of_a_group_share_the_messages) {
  const ConsumerSpec spec = place_->spec();
  const auto one = open(spec);
  const auto two = open(spec);
  std::set<std::string> all;
  std::size_t of_two = 0;
  int sent = 0;
  const bool complete = test::eventually(
      [&] {
        // It takes the group a while to give a part to the second member.
        if (all.size() == static_cast<std::size_t>(sent) && of_two == 0) {
          place_->send(numbered(sent, sent + 500, 40));
          sent += 500;
        }
        for (Source* const each : {one.get(), two.get()}) {
          std::vector<Received> some;
          const Status received = each->receive({.messages = 20, .wait = 50ms}, some);
          EXPECT_TRUE(received) << received.error().text();
          if (!some.empty()) {
            EXPECT_TRUE(each->acknowledge(some));
          }
          if (each == two.get()) of_two += some.size();
          for (const Received& message : some) all.insert(message.payload);
        }
        return of_two > 0 && all.size() == static_cast<std::size_t>(sent);
      },
      90s);
  EXPECT_TRUE(complete) << all.size() << " of " << sent << ", the second member got " << of_two;
}

TEST_F(SourceSuite, leaves_while_messages_arrive) {
  const ConsumerSpec spec = place_->spec();
  const auto sent = numbered(0, 2000);
  place_->send(sent);
  for (int i = 0; i < 5; ++i) {
    const auto from = open(spec);
    EXPECT_THAT(read(*from, 1, false), Not(IsEmpty()));
    from->close();
  }
  const auto from = open(spec);
  EXPECT_EQ(payloads(read(*from, sent.size(), true)), payloads(sent));
}

TEST_F(SourceSuite, another_member_gets_what_one_has_left_behind) {
  const ConsumerSpec spec = place_->spec();
  place_->send(numbered(0, 100));
  auto one = open(spec);
  const auto held = read(*one, 1, false);
  const auto two = open(spec);
  one->close();
  const auto got = read(*two, 100, true);
  EXPECT_EQ(payloads(got), payloads(numbered(0, 100)));
  if (limits().ordered_after_takeover) {
    EXPECT_TRUE(in_order(got));
  }
}

TEST_F(SourceSuite, stays_connected_while_nothing_is_wanted) {
  const ConsumerSpec spec = place_->spec();
  const auto from = open(spec);
  place_->send(numbered(0, 50));
  (void)read(*from, 50, true);
  std::vector<Received> rest;
  EXPECT_TRUE(from->receive({.messages = 0, .wait = 100ms}, rest));
  place_->send(numbered(50, 100));
  const auto until = std::chrono::steady_clock::now() + 3s;
  while (std::chrono::steady_clock::now() < until)
    EXPECT_TRUE(from->receive({.messages = 0, .wait = 100ms}, rest));
  EXPECT_LE(rest.size(), 1U) << "nothing was wanted";
  append(rest, read(*from, 50 - rest.size(), false));
  EXPECT_TRUE(from->acknowledge(rest));
  EXPECT_EQ(payloads(rest), payloads(numbered(50, 100)));
}

TEST_F(SourceSuite, a_new_group_begins_where_it_is_told) {
  if (!limits().start) GTEST_SKIP() << "the broker keeps nothing for groups that do not exist yet";
  place_->send(numbered(0, 20));
  ConsumerSpec spec = place_->spec();
  spec.group = spec.name + "-late";
  spec.start = ConsumeFrom::latest;
  const auto late = open(spec);
  EXPECT_THAT(read_for(*late, 5s), IsEmpty());
  place_->send(numbered(20, 30));
  EXPECT_EQ(payloads(read(*late, 10, true)), payloads(numbered(20, 30)));
  spec.group = spec.name + "-early";
  spec.start = ConsumeFrom::earliest;
  const auto early = open(spec);
  EXPECT_EQ(payloads(read(*early, 30, true)), payloads(numbered(0, 30)));
}

TEST_F(SourceSuite, says_how_many_messages_there_are_still) {
  if (!limits().lag) GTEST_SKIP() << "the broker does not tell";
  place_->send(numbered(0, 300));
  const auto from = open(place_->spec());
  std::vector<Received> some;
  ASSERT_TRUE(test::eventually([&] {
    EXPECT_TRUE(from->receive({.messages = 10, .wait = 100ms}, some));
    return some.size() >= 10;
  }));
  EXPECT_TRUE(from->acknowledge(some));
  const auto lag = from->lag();
  ASSERT_TRUE(lag);
  EXPECT_GT(*lag, 0);
  EXPECT_LE(*lag, 300);
  (void)read(*from, 300 - some.size(), true);
  EXPECT_TRUE(test::eventually([&] {
    std::vector<Received> none;
    EXPECT_TRUE(from->receive({.messages = 10, .wait = 100ms}, none));
    return from->lag() == 0;
  }));
}

TEST_F(SourceSuite, a_broker_that_is_away_is_an_error_that_says_so) {
  test::TcpGate gate(place_->port());
  gate.set(test::TcpGate::Mode::refused);
  const auto from = make(place_->spec_at(gate.port()));
  const Status status = from->open();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message, "");
  EXPECT_NE(status.error().hint, "");
  from->close();
}

TEST_F(SourceSuite, survives_connections_that_break) {
  test::TcpGate gate(place_->port());
  const ConsumerSpec spec = place_->spec_at(gate.port());
  const auto sent = numbered(0, 300);
  place_->send(sent);
  const auto from = make(spec);
  std::set<std::string> got;
  bool is_open = false;
  int turns = 0;
  const bool complete = test::eventually(
      [&] {
        if (++turns % 4 == 0) gate.cut();
        if (!is_open) is_open = from->open().has_value();
        if (!is_open) return false;
        std::vector<Received> some;
        Status status = from->receive({.messages = 20, .wait = 100ms}, some);
        if (status && !some.empty()) status = from->acknowledge(some);
        // What was received counts: a consumer would have it in its database.
        for (const Received& one : some) got.insert(one.payload);
        if (!status) {
          from->close();
          is_open = false;
        }
        return got.size() == sent.size();
      },
      120s);
  EXPECT_TRUE(complete) << got.size() << " of " << sent.size();
}

TEST_F(SourceSuite, a_place_that_does_not_exist_is_said_or_waited_for) {
  const auto from = make(place_->nowhere());
  const Status status = from->open();
  if (limits().needs_place) {
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().hint, "");
    return;
  }
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_THAT(read_for(*from, 3s), IsEmpty());
}

}  // namespace
}  // namespace outbox::conformance
