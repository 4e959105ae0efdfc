// Events that are set aside: what the stream parks, and what the retries make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/key.hpp"
#include "relay/retry_core.hpp"
#include "unit/relay/core_driver.hpp"

namespace outbox::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = Outcome::Kind;
using State = store::ParkedState;
using std::chrono::milliseconds;

SubscriptionSpec spec_of(std::size_t max_attempts, bool dead_blocks) {
  SubscriptionSpec spec{.name = "orders", .sink = "custom"};
  spec.max_attempts = max_attempts;
  spec.on_dead = dead_blocks ? "block" : "continue";
  spec.retry_jitter = 0;
  return spec;
}

ParkingRules rules(std::size_t max_attempts = 3, bool dead_blocks = false) {
  return {.policy = event::RetryPolicy(spec_of(max_attempts, dead_blocks)),
          .dead_blocks = dead_blocks,
          .max_waiting = 1000};
}

/// "3 waiting" and the like.
std::vector<std::string> shown(const std::vector<store::ParkedEvent>& events) {
  std::vector<std::string> all;
  for (const auto& event : events)
    all.push_back(std::to_string(event.seq) + " " + to_string(event.state) + " " +
                  std::to_string(event.attempts));
  return all;
}

// ---- the stream

class ParkingStream : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static bool is_gapless() { return GetParam(); }
  [[nodiscard]] static CoreOptions options(ParkingRules parking) {
    CoreOptions options{.gapless = is_gapless()};
    options.row.subscription = 4;
    options.row.generation = 9;
    options.parking = std::move(parking);
    return options;
  }
  static CoreDriver opened(ParkingRules parking = rules()) {
    CoreDriver driver(options(std::move(parking)));
    driver.open();
    return driver;
  }
  /// A gapless sink has stopped itself: what was behind comes back unsent, and it is opened again without a pause.
  static void reopen(CoreDriver& driver, const std::vector<std::int64_t>& behind) {
    if (!is_gapless()) return;
    for (const std::int64_t seq : behind) driver.report(seq, Kind::retry);
    ASSERT_EQ(driver.sink.mode(), Mode::reopening);
    driver.open();
  }
};

INSTANTIATE_TEST_SUITE_P(Parking, ParkingStream, ::testing::Values(true, false),
                         [](const auto& kind) { return kind.param ? "gapless" : "gated"; });

TEST_P(ParkingStream, a_rejected_event_is_parked_its_key_waits_behind_it_and_the_others_go_on) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "b"}, {4, "c"}, {5, "b"}});
  const auto sent = driver.send_all();
  driver.ack(1);
  driver.report(2, Kind::rejected, "too big");
  if (is_gapless()) {
    reopen(driver, {3, 4, 5});
    EXPECT_THAT(driver.send_all(), ElementsAre(4));
  }
  driver.ack(4);
  EXPECT_THAT(driver.send_all(), IsEmpty());
  const auto rows = driver.settle();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].acked.count, 2);
  EXPECT_EQ(rows[0].parked.count, 3);
  EXPECT_EQ(rows[0].parked.hash,
            event::id_hash(id_of(2)) + event::id_hash(id_of(3)) + event::id_hash(id_of(5)));
  EXPECT_EQ(rows[0].end(), drained_at("1")) << "the cursor passes them";
  EXPECT_THAT(shown(driver.parked), ElementsAre("2 retrying 1", "3 waiting 0", "5 waiting 0"));
  EXPECT_EQ(driver.parked[0].subscription, 4);
  EXPECT_EQ(driver.parked[0].generation, 9);
  EXPECT_EQ(driver.parked[0].due_in, milliseconds(1000));
  EXPECT_EQ(driver.parked[0].error, "too big");
  EXPECT_TRUE(driver.core.idle());
}

TEST_P(ParkingStream, nothing_is_parked_before_another_event_was_acked_or_nothing_else_is_left) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  driver.send_all();
  driver.report(1, Kind::rejected);
  reopen(driver, {2});
  if (is_gapless()) {
    EXPECT_THAT(driver.send_all(), ElementsAre(2));
  }
  EXPECT_THAT(driver.settle(), IsEmpty());
  driver.ack(2);
  driver.send_all();
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 1"));

  driver.pair("1", "2", {{3, "c"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(3));
  driver.report(3, Kind::rejected);
  reopen(driver, {});
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 1", "3 retrying 1"));
}

TEST_P(ParkingStream, later_pages_are_parked_behind_until_the_key_is_free_again) {
  auto driver = opened();
  driver.gate.add(event::key_hash("order", "b"));
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, ""}});
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 3));
  driver.ack_all({1, 3});
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("2 waiting 0"));
  driver.gate.remove(event::key_hash("order", "b"));
  driver.gate.remove(event::key_hash("order", "b"));
  driver.pair("1", "2", {{4, "b"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(4));
}

TEST_P(ParkingStream, with_one_attempt_the_event_is_dead_and_its_key_goes_on_once_that_is_written) {
  for (const bool dead_blocks : {false, true}) {
    auto driver = opened(rules(1, dead_blocks));
    driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "a"}});
    driver.send_all();
    driver.report(1, Kind::rejected);
    if (is_gapless()) {
      reopen(driver, {2, 3});
      EXPECT_THAT(driver.send_all(), ElementsAre(2));
    }
    driver.ack(2);
    EXPECT_THAT(driver.send_all(), IsEmpty());
    EXPECT_EQ(driver.gate.rows(), 2U);
    driver.settle();
    EXPECT_THAT(shown(driver.parked), ElementsAre("1 dead 1", "3 waiting 0"));
    EXPECT_EQ(driver.gate.rows(), dead_blocks ? 2U : 1U);
  }
}

TEST_P(ParkingStream, a_destination_that_rejects_everything_is_at_fault_and_nothing_is_parked) {
  auto driver = opened();
  std::vector<Logged> events;
  for (std::int64_t seq = 1; seq <= 40; ++seq) events.push_back({seq, "k" + std::to_string(seq)});
  driver.pair("0", "1", events);
  int rejected = 0;
  for (int round = 0; round < 100 && driver.sink.mode() != Mode::backing_off; ++round) {
    const auto sent = driver.send_all();
    for (const std::int64_t seq : sent) {
      const bool first = !is_gapless() || seq == sent.front();
      driver.report(seq, first ? Kind::rejected : Kind::retry, "no");
      rejected += first ? 1 : 0;
    }
    driver.open();
  }
  EXPECT_EQ(driver.sink.mode(), Mode::backing_off);
  EXPECT_EQ(rejected, is_gapless() ? 16 : 40);
  EXPECT_THAT(driver.sink.last_failure().message, ::testing::HasSubstr("rejected 16 events"));
  EXPECT_THAT(driver.settle(), IsEmpty());
  EXPECT_THAT(driver.parked, IsEmpty());

  driver.pass_pause();
  const auto again = driver.send_all();
  EXPECT_EQ(again.size(), 40U) << "all of them go again";
  driver.ack_all(again);
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_TRUE(driver.gate.empty());
}

TEST_P(ParkingStream, beyond_max_waiting_the_stream_pauses) {
  ParkingRules few = rules();
  few.max_waiting = 2;
  auto driver = opened(few);
  driver.gate.add(event::key_hash("order", "x"), 2);
  driver.pair("0", "1", {{1, "a"}});
  EXPECT_THAT(driver.send_all(), IsEmpty());
  driver.gate.remove(event::key_hash("order", "x"));
  EXPECT_THAT(driver.send_all(), ElementsAre(1));
}

TEST_P(ParkingStream, a_stop_parks_what_is_held_so_that_everything_behind_it_is_settled) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  driver.send_all();
  driver.report(1, Kind::rejected);
  driver.stop(true);
  driver.report(2, is_gapless() ? Kind::retry : Kind::acked);
  driver.report(3, is_gapless() ? Kind::retry : Kind::rejected);
  const auto rows = driver.settle();
  ASSERT_FALSE(rows.empty());
  EXPECT_TRUE(driver.core.finished());
  EXPECT_EQ(driver.parked.size(), is_gapless() ? 1U : 2U);
}

TEST_P(ParkingStream, events_without_a_key_block_nothing) {
  auto driver = opened();
  driver.pair("0", "1", {{1, ""}, {2, ""}});
  driver.send_all();
  driver.report(1, Kind::rejected);
  reopen(driver, {2});
  if (is_gapless()) {
    EXPECT_THAT(driver.send_all(), ElementsAre(2));
  }
  driver.ack(2);
  driver.send_all();
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 1"));
  driver.pair("1", "2", {{3, ""}});
  EXPECT_THAT(driver.send_all(), ElementsAre(3));
}

// ---- the retries

class Retries : public ::testing::Test {
 protected:
  Retries() {
    sink_.opened({}, now_);
    EXPECT_TRUE(sink_.may_send());
  }
  void restart(ParkingRules rules, bool gapless = false) {
    core_.emplace(RetryOptions{.subscription = 4, .rules = std::move(rules), .gapless = gapless},
                  sink_, gate_);
  }
  /// Rows of keys: the first of each is due.
  void load(const std::vector<std::pair<std::int64_t, std::string>>& rows) {
    store::DueEvents due;
    auto keys = std::make_shared<std::deque<std::string>>();
    for (const auto& [seq, key] : rows) {
      keys->push_back(key);
      store::ParkedRow row;
      row.event.seq = seq;
      row.event.id = id_of(seq);
      row.event.aggregate_type = "order";
      row.event.aggregate_id = keys->back();
      due.rows.push_back(row);
      gate_.add(event::key_hash("order", key));
    }
    due.storage = keys;
    core_->due_at(now_);
    ASSERT_TRUE(core_->wants_load(now_));
    core_->load_asked();
    EXPECT_FALSE(core_->wants_load(now_));
    core_->loaded(std::move(due), now_);
  }
  std::vector<std::int64_t> send() {
    const auto sends = core_->to_send(now_);
    std::vector<std::int64_t> seqs;
    for (const auto& one : sends) {
      seqs.push_back(one.event->seq);
      tokens_[one.event->seq] = one.token;
    }
    core_->handed_over(sends.size());
    return seqs;
  }
  void report(std::int64_t seq, Kind kind) {
    Outcome outcome{.token = tokens_.at(seq), .kind = kind};
    outcome.error.message = "no";
    core_->outcome(outcome, now_);
  }
  /// "1 delivered 2": seq, what became of it, attempts.
  std::vector<std::string> results() {
    now_ += std::chrono::seconds(1);
    std::vector<std::string> all;
    for (const auto& result : core_->results(now_)) {
      all.push_back(std::to_string(result.seq) + " " +
                    (result.state ? to_string(*result.state) : "delivered") + " " +
                    std::to_string(result.attempts));
    }
    core_->written(now_);
    return all;
  }
  static EventRef ref(std::int64_t seq) { return {.seq = seq, .id = id_of(seq)}; }
  /// After the connection to the store broke.
  void again(const std::vector<EventRef>& acks) {
    gate_.clear();
    restart(rules());
    for (const EventRef& event : acks) core_->remember(event);
  }
  bool blocked(const std::string& key) { return gate_.blocked(event::key_hash("order", key)); }

  TimePoint now_{std::chrono::hours(1)};
  SinkState sink_;
  KeyGate gate_;
  std::map<std::int64_t, Token> tokens_;
  std::optional<RetryCore> core_{std::in_place, RetryOptions{.rules = rules(), .gapless = false},
                                 sink_, gate_};
};

TEST_F(Retries, the_events_of_a_key_go_one_after_the_other_and_then_it_is_free) {
  load({{1, "a"}, {2, "a"}, {5, "b"}, {7, "a"}});
  EXPECT_THAT(send(), ElementsAre(1, 5));
  EXPECT_THAT(send(), IsEmpty());
  report(5, Kind::acked);
  report(1, Kind::acked);
  EXPECT_THAT(send(), ElementsAre(2));
  EXPECT_THAT(results(), ElementsAre("5 delivered 1", "1 delivered 1"));
  EXPECT_FALSE(blocked("b"));
  EXPECT_TRUE(blocked("a"));
  report(2, Kind::acked);
  EXPECT_THAT(send(), ElementsAre(7));
  report(7, Kind::acked);
  EXPECT_THAT(results(), ElementsAre("2 delivered 1", "7 delivered 1"));
  EXPECT_FALSE(blocked("a"));
}

TEST_F(Retries, an_outcome_that_comes_twice_does_not_count_for_the_next_event_of_the_key) {
  load({{1, "a"}, {2, "a"}});
  send();
  report(1, Kind::acked);
  EXPECT_THAT(send(), ElementsAre(2));
  report(1, Kind::acked);
  EXPECT_EQ(sink_.in_flight(), 1U);
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
}

TEST_F(Retries, the_key_is_free_only_once_the_removal_is_written) {
  load({{1, "a"}});
  send();
  report(1, Kind::acked);
  EXPECT_EQ(core_->results(now_).size(), 1U);
  EXPECT_TRUE(blocked("a"));
  core_->written(now_);
  EXPECT_FALSE(blocked("a"));
}

TEST_F(Retries, one_that_is_rejected_again_waits_longer_and_its_key_behind_it) {
  load({{1, "a"}, {2, "a"}});
  send();
  report(1, Kind::rejected);
  EXPECT_TRUE(sink_.may_send()) << "nothing else stops";
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_THAT(results(), ElementsAre("1 retrying 1"));
  EXPECT_TRUE(blocked("a"));
  EXPECT_TRUE(core_->next_at().has_value());
}

TEST_F(Retries, after_the_last_attempt_it_is_dead_and_its_key_goes_on_once_that_is_written) {
  for (const bool dead_blocks : {false, true}) {
    gate_.clear();
    restart(rules(1, dead_blocks));
    load({{1, "a"}, {2, "a"}});
    send();
    report(1, Kind::rejected);
    EXPECT_THAT(send(), IsEmpty());
    EXPECT_THAT(results(), ElementsAre("1 dead 1"));
    EXPECT_TRUE(blocked("a"));
    EXPECT_EQ(gate_.rows(), dead_blocks ? 2U : 1U);
  }
}

TEST_F(Retries, an_outage_counts_no_attempt) {
  load({{1, "a"}});
  for (const Kind kind : {Kind::unknown, Kind::retry, Kind::blocked}) {
    ASSERT_THAT(send(), ElementsAre(1));
    report(1, kind);
    EXPECT_EQ(sink_.mode(), kind == Kind::retry ? Mode::reopening : Mode::backing_off)
        << "what fails alone again delays nothing else";
    EXPECT_THAT(send(), IsEmpty());
    EXPECT_THAT(results(), IsEmpty());
    now_ += std::chrono::hours(1);
    ASSERT_TRUE(sink_.wants_open(now_));
    sink_.opened({}, now_);
  }
}

TEST_F(Retries, a_failure_while_others_succeed_counts) {
  load({{1, "a"}, {2, "b"}, {3, "c"}});
  EXPECT_THAT(send(), ElementsAre(1, 2, 3));
  report(2, Kind::acked);
  report(1, Kind::unknown);
  EXPECT_TRUE(sink_.may_send());
  report(3, Kind::acked);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_THAT(results(), ElementsAre("2 delivered 1", "3 delivered 1", "1 retrying 1"));
}

TEST_F(Retries, a_failure_between_others_that_fail_counts_nothing) {
  for (const bool before : {true, false}) {
    restart(rules());
    load({{1, "a"}, {2, "b"}, {3, "c"}});
    EXPECT_THAT(send(), ElementsAre(1, 2, 3));
    report(2, before ? Kind::blocked : Kind::acked);
    report(1, Kind::unknown);
    report(3, before ? Kind::acked : Kind::blocked);
    EXPECT_THAT(send(), IsEmpty());
    EXPECT_THAT(results(), ElementsAre(before ? "3 delivered 1" : "2 delivered 1"));
    now_ += std::chrono::hours(1);
    ASSERT_TRUE(sink_.wants_open(now_));
    sink_.opened({}, now_);
  }
}

TEST_F(Retries, of_a_gapless_sink_the_one_that_fails_is_found_by_sending_it_alone) {
  restart(rules(), true);
  load({{1, "a"}, {2, "b"}});
  const auto reopen = [this] {
    now_ += milliseconds(200);
    ASSERT_TRUE(sink_.wants_open(now_));
    sink_.opened({}, now_);
  };
  EXPECT_THAT(send(), ElementsAre(1, 2));
  report(1, Kind::unknown);
  report(2, Kind::retry);
  EXPECT_THAT(results(), IsEmpty()) << "nobody knows which of them it was";
  reopen();
  sink_.sent(1);  // the stream's
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_TRUE(sink_.alone_asked()) << "the stream waits";
  sink_.acked(now_);
  EXPECT_THAT(send(), ElementsAre(1));
  EXPECT_THAT(send(), IsEmpty());
  report(1, Kind::unknown);
  reopen();
  EXPECT_THAT(send(), ElementsAre(2)) << "while the first is in doubt";
  report(2, Kind::acked);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_FALSE(sink_.alone_asked());
  EXPECT_THAT(results(), ElementsAre("2 delivered 1", "1 retrying 1"));
}

TEST_F(Retries, a_slow_one_does_not_keep_others_from_being_read) {
  load({{1, "a"}});
  send();
  core_->due_at(now_);
  ASSERT_TRUE(core_->wants_load(now_));
  core_->load_asked();
  store::DueEvents due;
  for (const std::int64_t seq : {1, 2, 5}) {
    store::ParkedRow row;
    row.event.seq = seq;
    row.event.id = id_of(seq);
    row.event.aggregate_type = "order";
    row.event.aggregate_id = seq == 5 ? "b" : "a";
    due.rows.push_back(row);
  }
  core_->loaded(due, now_);
  EXPECT_THAT(send(), ElementsAre(5)) << "not what is in flight, nor what waits behind it";
}

TEST_F(Retries, a_result_that_is_not_written_yet_is_not_read_as_due) {
  load({{1, "a"}});
  send();
  core_->due_at(now_);
  core_->load_asked();
  report(1, Kind::acked);
  store::DueEvents due;
  due.rows.emplace_back();
  due.rows[0].event.seq = 1;
  due.rows[0].event.aggregate_type = "order";
  due.rows[0].event.aggregate_id = "a";
  core_->loaded(due, now_);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
  EXPECT_TRUE(core_->wants_load(now_));
}

TEST_F(Retries, a_send_that_still_runs_is_the_retry) {
  const std::uint64_t key = event::key_hash("order", "a");
  gate_.add(key, 2);
  gate_.late.began(1, id_of(1), key);
  core_->due_at(now_);
  core_->load_asked();
  store::DueEvents due;
  for (const std::int64_t seq : {1, 2}) {
    due.rows.emplace_back();
    due.rows.back().event.seq = seq;
    due.rows.back().event.aggregate_type = "order";
    due.rows.back().event.aggregate_id = "a";
  }
  core_->loaded(due, now_);
  EXPECT_THAT(send(), IsEmpty()) << "neither it nor what waits behind it";
  gate_.late.ended(1, {.token = 7, .kind = Kind::acked});
  EXPECT_THAT(results(), IsEmpty()) << "its row is not written yet";
  core_->stop_requested();
  EXPECT_FALSE(core_->finished());
  gate_.late.written(1);
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
  EXPECT_TRUE(core_->finished());
  EXPECT_EQ(gate_.rows(), 1U);
}

TEST_F(Retries, a_running_send_that_is_rejected_counts_and_one_in_doubt_is_sent_again) {
  for (const Kind kind : {Kind::rejected, Kind::unknown, Kind::retry, Kind::blocked}) {
    const std::uint64_t key = event::key_hash("order", "a");
    gate_.late.began(1, id_of(1), key);
    gate_.late.written(1);
    gate_.late.ended(1, {.token = 7, .kind = kind});
    const auto given = results();
    if (kind == Kind::rejected) {
      EXPECT_THAT(given, ElementsAre("1 retrying 1"));
    } else {
      EXPECT_THAT(given, IsEmpty());
      EXPECT_TRUE(core_->wants_load(now_));
    }
    EXPECT_TRUE(gate_.late.empty());
  }
}

TEST_F(Retries, what_was_acked_before_the_store_was_lost_is_not_sent_again) {
  load({{1, "a"}, {2, "a"}, {3, "a"}, {4, "b"}, {5, "c"}});
  send();
  report(1, Kind::acked);
  report(4, Kind::acked);
  EXPECT_THAT(send(), ElementsAre(2));
  now_ += std::chrono::seconds(1);
  ASSERT_EQ(core_->results(now_).size(), 2U) << "given, and never heard of again";
  report(2, Kind::acked);
  report(5, Kind::rejected);
  const auto acks = core_->unsettled_acks();
  EXPECT_THAT(acks, UnorderedElementsAre(ref(1), ref(2), ref(4)));

  again(acks);
  ASSERT_TRUE(core_->wants_load(now_)) << "to find out what is still there";
  load({{1, "a"}, {2, "a"}, {3, "a"}, {4, "b"}, {5, "c"}});
  EXPECT_THAT(send(), ElementsAre(3, 5));
  EXPECT_THAT(results(), ElementsAre("1 delivered 1", "2 delivered 1", "4 delivered 1"));
  EXPECT_THAT(core_->unsettled_acks(), IsEmpty());
}

TEST_F(Retries, what_was_acked_is_remembered_until_the_store_shows_that_its_row_is_gone) {
  again({ref(1), ref(2)});
  load({{7, "b"}});
  EXPECT_THAT(core_->unsettled_acks(), ElementsAre(ref(1), ref(2))) << "there may be more due";
  load({});
  EXPECT_THAT(core_->unsettled_acks(), IsEmpty());
}

TEST_F(Retries, a_corrected_copy_is_sent_though_the_original_was_acked) {
  again({{.seq = 1, .id = id_of(9)}});
  load({{1, "a"}});
  EXPECT_THAT(send(), ElementsAre(1));
  report(1, Kind::acked);
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
}

TEST_F(Retries, one_acked_behind_another_that_is_due_again_counts_when_that_one_is_gone) {
  again({ref(2)});
  load({{1, "a"}, {2, "a"}, {3, "a"}});
  EXPECT_THAT(send(), ElementsAre(1));
  report(1, Kind::acked);
  EXPECT_THAT(send(), ElementsAre(3));
  EXPECT_THAT(results(), ElementsAre("1 delivered 1", "2 delivered 1"));
}

TEST_F(Retries, an_ack_of_a_send_that_still_ran_is_remembered_whether_its_row_is_known_or_not) {
  for (const bool written : {false, true}) {
    gate_.late = {};
    gate_.late.began(1, id_of(1), event::key_hash("order", "a"));
    if (written) gate_.late.written(1);
    gate_.late.ended(1, {.token = 7, .kind = Kind::acked});
    EXPECT_THAT(core_->unsettled_acks(), ElementsAre(ref(1)));
  }
}

TEST_F(Retries, a_gapless_sink_is_opened_again_after_one_that_is_rejected) {
  restart(rules(), true);
  load({{1, "a"}, {2, "b"}});
  EXPECT_THAT(send(), ElementsAre(1, 2));
  report(1, Kind::rejected);
  report(2, Kind::retry);
  EXPECT_EQ(sink_.mode(), Mode::reopening);
  sink_.opened({}, now_);
  EXPECT_THAT(send(), ElementsAre(2));
  report(2, Kind::acked);
  EXPECT_THAT(results(), ElementsAre("1 retrying 1", "2 delivered 1"));
}

TEST_F(Retries, it_reads_again_while_there_may_be_more_and_when_the_next_one_is_due) {
  load({{1, "a"}});
  send();
  report(1, Kind::acked);
  EXPECT_FALSE(core_->wants_load(now_)) << "not before the removal is written";
  results();
  ASSERT_TRUE(core_->wants_load(now_));
  core_->load_asked();
  core_->loaded({.rows = {}, .storage = {}, .next_in = milliseconds(300)}, now_);
  EXPECT_FALSE(core_->wants_load(now_));
  EXPECT_EQ(core_->next_at(), now_ + milliseconds(300));
  EXPECT_TRUE(core_->wants_load(now_ + milliseconds(300)));
}

TEST_F(Retries, while_one_is_in_flight_the_store_is_not_asked_all_the_time) {
  load({{1, "a"}});
  send();
  core_->due_at(now_);
  core_->load_asked();
  store::DueEvents still;
  still.next_in = milliseconds(0);  // of the one in flight
  core_->loaded(std::move(still), now_);
  EXPECT_FALSE(core_->wants_load(now_));
  EXPECT_TRUE(core_->wants_load(now_ + milliseconds(50)));
}

TEST_F(Retries, what_becomes_due_while_it_reads_is_not_forgotten) {
  core_->due_at(now_);
  core_->load_asked();
  core_->due_at(now_ + milliseconds(100));
  core_->loaded({}, now_);
  EXPECT_FALSE(core_->wants_load(now_));
  EXPECT_TRUE(core_->wants_load(now_ + milliseconds(100)));
}

TEST_F(Retries, a_stop_waits_for_what_is_in_flight_and_written) {
  load({{1, "a"}, {2, "b"}});
  send();
  core_->stop_requested();
  EXPECT_FALSE(core_->finished());
  report(1, Kind::acked);
  report(2, Kind::acked);
  EXPECT_FALSE(core_->finished());
  EXPECT_THAT(results(), ElementsAre("1 delivered 1", "2 delivered 1"));
  EXPECT_TRUE(core_->finished());
}

}  // namespace
}  // namespace outbox::relay
