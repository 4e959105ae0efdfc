// Tests which parked events are sent again, and what becomes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/key.hpp"
#include "relay/retry_core.hpp"
#include "unit/relay/core_driver.hpp"
#include "unit/relay/parking.hpp"

namespace outbox::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = Outcome::Kind;
using std::chrono::milliseconds;

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
  static std::uint64_t key(const std::string& id) { return event::key_hash("order", id); }
  static store::ParkedRow row(std::int64_t seq, const std::string& id) {
    store::ParkedRow row;
    row.event.seq = seq;
    row.event.id = id_of(seq);
    row.event.aggregate_type = "order";
    row.event.aggregate_id = id;
    row.key = key(id);
    return row;
  }
  /// Parks this event in the store, unless it is there, and tells the gate.
  void keep(std::int64_t seq, const std::string& id) {
    if (!stored_[key(id)].insert(seq).second) return;
    gate_.park(key(id), true);
    gate_.written(key(id), true);
  }
  void remove(std::uint64_t key, std::int64_t seq) {
    stored_[key].erase(seq);
    if (stored_[key].empty()) gate_.released(key);
  }
  /// Answers a read of the core. `rows` has events as seq and key: the first of each key is due,
  /// the others wait behind it. `asked` has the states of rows that the core asks about; a run that
  /// it leaves out is gone.
  void load(const std::vector<std::pair<std::int64_t, std::string>>& rows,
            const std::map<std::int64_t, store::ParkedState>& asked = {}) {
    store::DueEvents due;
    auto keys = std::make_shared<std::deque<std::string>>();
    for (const auto& [seq, id] : rows) {
      keys->push_back(id);
      due.rows.push_back(row(seq, keys->back()));
      keep(seq, id);
    }
    due.storage = keys;
    core_->due_at(now_);
    ASSERT_TRUE(core_->wants_load(now_));
    core_->load_asked();
    EXPECT_FALSE(core_->wants_load(now_));
    due.asked = answer(asked);
    core_->loaded(std::move(due), now_);
  }
  std::vector<store::AskedState> answer(const std::map<std::int64_t, store::ParkedState>& states) {
    std::vector<store::AskedState> answers;
    for (const store::AskedRow& one : core_->asked()) {
      store::AskedState state{.seq = one.seq};
      const auto of_row = states.find(one.seq);
      if (of_row != states.end()) {
        state.state = of_row->second;
      } else if (one.key != 0 && !stored_[one.key].contains(one.seq)) {
        state.key_left = !stored_[one.key].empty();
      } else if (one.key != 0) {
        stored_[one.key].erase(one.seq);
      } else if (stored(one.seq)) {
        state.state = store::ParkedState::retrying;
      }
      if (state.state == store::ParkedState::dead) stored_[one.key].erase(one.seq);
      state.key_left = one.key != 0 && !stored_[one.key].empty();
      answers.push_back(state);
    }
    return answers;
  }
  bool stored(std::int64_t seq) const {
    return std::any_of(stored_.begin(), stored_.end(),
                       [seq](const auto& entry) { return entry.second.contains(seq); });
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
  /// Advances time by a second and writes the results that are due. Returns the seq, end and
  /// attempts of each, for example "1 delivered 2".
  std::vector<std::string> results() {
    now_ += std::chrono::seconds(1);
    std::vector<std::string> all;
    for (const auto& result : core_->results(now_)) {
      all.push_back(std::to_string(result.seq) + " " +
                    (result.state ? to_string(*result.state) : "delivered") + " " +
                    std::to_string(result.attempts));
      const bool dead = result.state == store::ParkedState::dead;
      if (!result.state || (dead && !dead_blocks_)) remove(result.key, result.seq);
    }
    core_->written(now_);
    return all;
  }
  static EventRef ref(std::int64_t seq) { return {.seq = seq, .id = id_of(seq)}; }
  /// Starts anew, as after the connection to the store broke. The core remembers these acks.
  void again(const std::vector<EventRef>& acks) {
    gate_ = KeyGate();
    stored_.clear();
    restart(rules());
    for (const EventRef& event : acks) core_->remember(event);
  }
  bool blocked(const std::string& key) { return gate_.blocked(event::key_hash("order", key)); }

  TimePoint now_{std::chrono::hours(1)};
  SinkState sink_;
  KeyGate gate_;
  bool dead_blocks_{false};
  std::map<std::uint64_t, std::set<std::int64_t>> stored_;
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
  remove(key("a"), 1);
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
    gate_ = KeyGate();
    stored_.clear();
    dead_blocks_ = dead_blocks;
    restart(rules(1));
    load({{1, "a"}, {2, "a"}});
    send();
    report(1, Kind::rejected);
    EXPECT_THAT(send(), IsEmpty());
    EXPECT_THAT(results(), ElementsAre("1 dead 1"));
    EXPECT_TRUE(blocked("a"));
    EXPECT_EQ(gate_.live(), 1U);
  }
}

TEST_F(Retries, a_postponed_one_counts_no_attempt_and_one_that_cannot_succeed_is_dead) {
  restart(rules());
  load({{1, "a"}, {2, "b"}});
  ASSERT_THAT(send(), ElementsAre(1, 2));
  core_->outcome({.token = tokens_.at(1), .kind = Kind::postponed, .error = {}}, now_);
  core_->outcome({.token = tokens_.at(2), .kind = Kind::rejected, .error = {}, .final = true},
                 now_);
  EXPECT_THAT(results(), UnorderedElementsAre("1 retrying 0", "2 dead 1"));
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
  sink_.sent(1);  // The stream has sent an event.
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
  const std::string a = "a";
  const std::string b = "b";
  due.rows = {row(1, a), row(2, a), row(5, b)};
  gate_.found(key("b"));
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
  const std::string a = "a";
  due.rows = {row(1, a)};
  core_->loaded(due, now_);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
  EXPECT_TRUE(core_->wants_load(now_));
}

TEST_F(Retries, a_send_that_still_runs_is_the_retry) {
  keep(1, "a");
  keep(2, "a");
  gate_.late.began({.seq = 1, .id = id_of(1), .key = key("a")});
  core_->due_at(now_);
  core_->load_asked();
  store::DueEvents due;
  const std::string a = "a";
  due.rows = {row(1, a), row(2, a)};
  core_->loaded(due, now_);
  EXPECT_THAT(send(), IsEmpty()) << "neither it nor what waits behind it";
  gate_.late.ended(1, {.token = 7, .kind = Kind::acked});
  EXPECT_THAT(results(), IsEmpty()) << "its row is not written yet";
  core_->stop_requested();
  EXPECT_FALSE(core_->finished());
  gate_.late.written(1);
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
  EXPECT_TRUE(core_->finished());
  EXPECT_EQ(gate_.live(), 1U);
}

TEST_F(Retries, a_running_send_that_is_rejected_counts_and_one_in_doubt_is_sent_again) {
  for (const Kind kind : {Kind::rejected, Kind::unknown, Kind::retry, Kind::blocked}) {
    keep(1, "a");
    gate_.late.began({.seq = 1, .id = id_of(1), .key = key("a")});
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
  load({{7, "b"}}, {{1, store::ParkedState::retrying}, {2, store::ParkedState::waiting}});
  EXPECT_THAT(core_->unsettled_acks(), ElementsAre(ref(1), ref(2))) << "they are not due";
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
    gate_.late.began({.seq = 1, .id = id_of(1), .key = event::key_hash("order", "a")});
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

TEST_F(Retries, a_gapless_sink_goes_on_after_one_that_it_refuses_by_itself) {
  restart(rules(), true);
  load({{1, "a"}, {2, "b"}});
  EXPECT_THAT(send(), ElementsAre(1, 2));
  core_->outcome({.token = tokens_.at(1), .kind = Kind::rejected, .unsent = true}, now_);
  EXPECT_EQ(sink_.mode(), Mode::delivering);
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
  still.next_in = milliseconds(0);  // The event in flight is still due.
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

/// The stream has an event of the key "a" in flight until a test says otherwise.
class RetriesBesideTheStream : public Retries {
 protected:
  RetriesBesideTheStream() {
    core_.emplace(RetryOptions{.rules = rules(),
                               .gapless = false,
                               .keys_in_flight =
                                   [this](auto& keys) {
                                     if (stream_has_it_) keys.insert(key("a"));
                                   }},
                  sink_, gate_);
  }
  /// Answers a read: the first event of key "a" is due. Unlike load(), it tells the gate nothing.
  void read() {
    core_->due_at(now_);
    core_->load_asked();
    store::DueEvents due;
    due.rows = {row(1, name_)};
    core_->loaded(std::move(due), now_);
  }

  const std::string name_{"a"};
  bool stream_has_it_{true};
};

TEST_F(RetriesBesideTheStream, what_a_person_sends_again_waits) {
  read();
  EXPECT_TRUE(blocked("a")) << "the stream parks what comes from now on";
  EXPECT_THAT(send(), IsEmpty());
  stream_has_it_ = false;
  EXPECT_THAT(send(), ElementsAre(1));
}

TEST_F(RetriesBesideTheStream, it_waits_when_the_keys_were_read_before_the_events) {
  store::ParkedKeys all;
  all.keys = {{.key = key("a")}};
  all.live = 1;
  gate_.replace_stored(all);
  read();
  EXPECT_THAT(send(), IsEmpty());
  core_->changed(now_);
  gate_.replace_stored(all);
  read();
  EXPECT_THAT(send(), IsEmpty()) << "another change makes no difference";
  stream_has_it_ = false;
  EXPECT_THAT(send(), ElementsAre(1));
}

TEST_F(RetriesBesideTheStream, it_waits_for_what_the_stream_has_set_aside_meanwhile) {
  read();
  stream_has_it_ = false;
  gate_.late.began({.token = 7, .seq = 2, .id = id_of(2), .key = key("a")});
  EXPECT_THAT(send(), IsEmpty());
  read();
  EXPECT_THAT(send(), IsEmpty()) << "it still runs";
  gate_.late.remove(2);
  read();
  EXPECT_THAT(send(), ElementsAre(1));
}

TEST_F(Retries, after_a_persons_change_what_is_not_in_flight_is_read_again) {
  load({{1, "a"}, {2, "a"}, {5, "b"}});
  EXPECT_THAT(send(), ElementsAre(1, 5));
  report(5, Kind::unknown);
  core_->changed(now_);
  report(1, Kind::acked);
  EXPECT_THAT(send(), IsEmpty()) << "2 may be gone, or another one before it";
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
  load({{2, "a"}});
  EXPECT_THAT(send(), ElementsAre(2));
}

TEST_F(Retries, what_was_read_before_a_persons_change_is_not_sent) {
  core_->due_at(now_);
  core_->load_asked();
  core_->changed(now_);
  store::DueEvents due;
  const std::string a = "a";
  due.rows = {row(1, a)};
  core_->loaded(due, now_);
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_TRUE(core_->wants_load(now_));
}

TEST_F(Retries, a_result_names_the_key_and_the_version_that_were_read) {
  core_->due_at(now_);
  core_->load_asked();
  store::DueEvents due;
  const std::string a = "a";
  due.rows = {row(1, a)};
  due.rows[0].version = 7;
  due.rows[0].attempts = 1;
  core_->loaded(due, now_);
  EXPECT_THAT(send(), ElementsAre(1));
  report(1, Kind::rejected);
  now_ += std::chrono::seconds(1);
  const auto given = core_->results(now_);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].key, key("a"));
  EXPECT_EQ(given[0].version, 7);
  EXPECT_EQ(given[0].attempts, 2U);
}

// ---- runs that their worker looks after (docs/design/tasks.md, "Runs with a row")

class Runs : public Retries {
 protected:
  Runs() {
    core_.emplace(RetryOptions{.subscription = 4,
                               .rules = rules(),
                               .gapless = false,
                               .worker = id_of(77),
                               .slow_after = std::chrono::seconds(1),
                               .token_prefix = kPrefix},
                  sink_, gate_);
  }
  /// Lets the sink look after all runs whose rows are written. Returns their seqs.
  std::vector<std::int64_t> look_after() {
    std::vector<LateSends::Send> kept;
    for (const auto& [seq, send] : gate_.late.all()) {
      if (send.written && !send.outcome) kept.push_back(send);
    }
    std::vector<std::int64_t> seqs;
    for (const auto& send : kept) {
      EXPECT_EQ(send.token, kPrefix | tokens_.at(send.seq));
      gate_.late.remove(send.seq);
      core_->kept(send, now_);
      sink_.left(now_);
      seqs.push_back(send.seq);
    }
    return seqs;
  }
  /// Advances time by a second and answers the core's question about rows that were `running`. A
  /// row that is left out is gone.
  void look(const std::map<std::int64_t, store::ParkedState>& rows) {
    now_ += std::chrono::seconds(1);
    ASSERT_TRUE(core_->wants_load(now_));
    core_->load_asked();
    store::DueEvents due;
    due.asked = answer(rows);
    core_->loaded(std::move(due), now_);
  }
  /// Begins the run of an event of key "a", and leaves it to its worker.
  void run() {
    load({{1, "a"}, {2, "a"}});
    EXPECT_THAT(send(), ElementsAre(1));
    EXPECT_THAT(results(), ElementsAre("1 running 0"));
    EXPECT_THAT(look_after(), ElementsAre(1));
  }

  static constexpr Token kPrefix = Token{64} << 57U;
};

TEST_F(Runs, a_retry_that_lasts_is_left_to_its_worker_and_holds_its_key) {
  run();
  EXPECT_EQ(sink_.in_flight(), 0U);
  EXPECT_TRUE(blocked("a"));
  look({{1, store::ParkedState::running}});
  EXPECT_TRUE(blocked("a"));
  EXPECT_THAT(send(), IsEmpty()) << "what waits behind it was left out";
  core_->stop_requested();
  EXPECT_TRUE(core_->finished()) << "nobody waits for it";
}

TEST_F(Runs, one_whose_row_is_gone_frees_its_key_once) {
  run();
  look({});
  EXPECT_EQ(gate_.live(), 1U) << "what waits behind it has a row";
  EXPECT_THAT(core_->asked(), IsEmpty());
  core_->due_at(now_);
  look({});
  EXPECT_EQ(gate_.live(), 1U);
}

TEST_F(Runs, one_that_will_be_retried_holds_its_key_and_a_dead_one_does_not) {
  run();
  look({{1, store::ParkedState::retrying}});
  EXPECT_EQ(gate_.live(), 2U);
  gate_ = KeyGate();
  stored_.clear();
  run();
  look({{1, store::ParkedState::dead}});
  EXPECT_EQ(gate_.live(), 1U);
}

TEST_F(Runs, a_run_that_was_there_before_holds_its_key_until_it_has_ended) {
  keep(9, "a");
  core_->runs(9, key("a"));
  core_->due_at(now_);
  look({{9, store::ParkedState::running}});
  EXPECT_TRUE(blocked("a"));
  look({});
  EXPECT_FALSE(blocked("a"));
}

TEST_F(Runs, one_that_ended_while_the_rows_were_read_frees_its_key_once) {
  load({{1, "a"}, {2, "a"}});
  EXPECT_THAT(send(), ElementsAre(1));
  EXPECT_THAT(results(), ElementsAre("1 running 0"));
  core_->due_at(now_);
  core_->load_asked();
  report(1, Kind::acked);
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
  store::DueEvents due;
  due.asked.push_back({.seq = 1, .state = store::ParkedState::running, .key_left = true});
  core_->loaded(std::move(due), now_);
  look({});
  EXPECT_EQ(gate_.live(), 1U) << "what waits behind it";
}

TEST_F(Runs, what_a_person_puts_before_one_that_runs_waits_for_it) {
  load({{2, "a"}});
  EXPECT_THAT(send(), ElementsAre(2));
  EXPECT_THAT(results(), ElementsAre("2 running 0"));
  EXPECT_THAT(look_after(), ElementsAre(2));
  load({{1, "a"}}, {{2, store::ParkedState::running}});
  EXPECT_THAT(send(), IsEmpty());
  now_ += std::chrono::seconds(1);
  load({{1, "a"}});
  EXPECT_THAT(send(), ElementsAre(1)) << "it has ended";
}

TEST_F(Runs, one_of_the_stream_that_is_kept_leaves_a_retry_with_its_token_alone) {
  load({{1, "a"}});
  EXPECT_THAT(send(), ElementsAre(1));
  EXPECT_THAT(results(), ElementsAre("1 running 0"));
  core_->kept({.token = tokens_.at(1), .seq = 7, .key = event::key_hash("order", "b"), .run = 1},
              now_);
  report(1, Kind::acked);
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
}

TEST_F(Runs, what_was_acked_before_is_remembered_while_its_row_is_there) {
  core_->remember(ref(1));
  load({}, {{1, store::ParkedState::running}});
  EXPECT_THAT(core_->asked(), IsEmpty());
  load({{1, "a"}}, {{1, store::ParkedState::retrying}});
  EXPECT_THAT(send(), IsEmpty());
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
}

TEST_F(Runs, an_answer_from_before_the_row_was_written_says_nothing_about_it) {
  load({{1, "a"}, {2, "b"}});
  EXPECT_THAT(send(), ElementsAre(1, 2));
  EXPECT_THAT(results(), ElementsAre("1 running 0", "2 running 0"));
  core_->due_at(now_);
  core_->load_asked();
  EXPECT_THAT(look_after(), ElementsAre(1, 2));
  core_->loaded({}, now_);
  EXPECT_TRUE(blocked("a"));
  EXPECT_TRUE(blocked("b"));
}

TEST_F(Runs, an_outcome_that_comes_before_the_row_is_kept_counts) {
  load({{1, "a"}});
  EXPECT_THAT(send(), ElementsAre(1));
  EXPECT_THAT(results(), ElementsAre("1 running 0"));
  report(1, Kind::acked);
  EXPECT_THAT(look_after(), IsEmpty());
  EXPECT_THAT(results(), ElementsAre("1 delivered 1"));
  EXPECT_FALSE(blocked("a"));
}

TEST_F(Runs, one_that_is_given_up_before_it_is_kept_is_retried_with_no_attempt_counted) {
  load({{1, "a"}});
  EXPECT_THAT(send(), ElementsAre(1));
  EXPECT_THAT(results(), ElementsAre("1 running 0"));
  report(1, Kind::unknown);
  EXPECT_THAT(results(), ElementsAre("1 retrying 0"));
  EXPECT_TRUE(blocked("a"));
}

TEST_F(Runs, at_a_stop_what_lasts_a_moment_is_left_to_its_worker) {
  load({{1, "a"}});
  EXPECT_THAT(send(), ElementsAre(1));
  core_->stop_requested();
  EXPECT_THAT(core_->results(now_ + milliseconds(50)), IsEmpty());
  const auto given = core_->results(now_ + milliseconds(100));
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].state, store::ParkedState::running);
  EXPECT_EQ(given[0].worker, id_of(77));
}

}  // namespace
}  // namespace outbox::relay
