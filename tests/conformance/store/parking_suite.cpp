// Parked events: set aside with a settlement, sent again in the order of their keys, given up.
#include <map>
#include <set>

#include "conformance/store/fixture.hpp"
#include "event/key.hpp"
#include "support/lane_owner.hpp"

namespace outbox::conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::ParkedState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ParkingSuite : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    relay_ = std::make_unique<test::LaneOwner>(*store_, "relay");
    generation_ = relay_->keep(seconds(60))->generation;
    progress_ = std::move(*store_->progress());
  }
  /// A subscription, and events of these keys, all settled; those in `parked` by being parked.
  void settle(SubscriptionSpec spec, const std::vector<std::string>& keys,
              std::vector<store::ParkedEvent> parked) {
    spec.start = "now";
    row_ = subscribe(spec);
    std::vector<Event> events;
    for (const std::string& key : keys) events.push_back(make_event(key));
    ids_ = write(events);
    LogDrive drive(*store_, load(row_.id).cursor);
    const auto page = drive.next();
    ASSERT_EQ(page.events.size(), keys.size());
    first_ = page.events.front().seq;
    auto settlement = settlement_of(row_, page, generation_);
    settlement.acked = {};
    for (auto& event : parked) {
      event.subscription = row_.id;
      event.generation = generation_;
      event.id = ids_.at(static_cast<std::size_t>(event.seq));
      event.seq += first_;
      settlement.parked.add(event::id_hash(event.id));
    }
    status_ = progress_->append({.settlements = std::span(&settlement, 1), .parked = parked},
                                store::Durability::flushed);
  }
  static store::ParkedEvent retrying(std::int64_t event, milliseconds due_in = milliseconds(0)) {
    return {.seq = event,
            .state = ParkedState::retrying,
            .attempts = 1,
            .due_in = due_in,
            .error = "too big"};
  }
  static store::ParkedEvent waiting(std::int64_t event) {
    return {.seq = event, .state = ParkedState::waiting};
  }
  store::RetryResult result(std::int64_t event, std::optional<ParkedState> state,
                            milliseconds due_in = milliseconds(0)) {
    return {.subscription = row_.id,
            .generation = generation_,
            .seq = first_ + event,
            .id = ids_.at(static_cast<std::size_t>(event)),
            .state = state,
            .attempts = 2,
            .due_in = due_in,
            .error = state ? "no" : ""};
  }
  Status append(std::vector<store::RetryResult> results) {
    return progress_->append({.settlements = {}, .results = results}, store::Durability::eventual);
  }
  /// The events that are due, by their place, each with its state and attempts.
  std::vector<std::string> due() { return due(generation_); }
  std::vector<std::string> due(std::int64_t generation) {
    auto read = progress_->due(row_.id, {store::kAllLanes, generation}, limits_, nullptr);
    EXPECT_TRUE(ok(read));
    std::vector<std::string> all;
    if (!read) return all;
    for (const auto& row : read->rows) {
      EXPECT_EQ(row.event.payload, R"({"n":1})");
      EXPECT_EQ(row.event.headers, "{}");
      EXPECT_EQ(row.event.id, ids_.at(static_cast<std::size_t>(row.event.seq - first_)));
      all.push_back(std::to_string(row.event.seq - first_) + " " + to_string(row.state) + " " +
                    std::to_string(row.attempts));
    }
    next_in_ = read->next_in;
    return all;
  }
  std::vector<std::string> blocked(bool dead_block = false) {
    std::vector<std::string> all;
    const auto keys = progress_->blocked_keys(row_.id, store::kAllLanes, dead_block).value();
    for (const auto& key : keys) {
      all.push_back(key.aggregate_id + " " + std::to_string(key.events));
      if (key.running) all.back() += ", " + std::to_string(*key.running - first_) + " runs";
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::int64_t delivered() {
    auto catalog = store_->catalog();
    store::SubscriptionProgress total;
    total.id = row_.id;
    EXPECT_TRUE(ok((*catalog)->add_totals(total)));
    return total.acked;
  }

  std::unique_ptr<test::LaneOwner> relay_;
  std::unique_ptr<store::Progress> progress_;
  std::int64_t generation_{0};
  store::DueLimits limits_;
  store::SubscriptionRow row_;
  std::vector<EventId> ids_;
  std::int64_t first_{0};
  Status status_;
  std::optional<milliseconds> next_in_;
};

INSTANTIATE_TEST_SUITE_P(Store, ParkingSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(ParkingSuite, parked_events_are_copied_and_those_that_wait_come_behind_the_first) {
  settle(make_spec("mails"), {"a", "b", "a", "a"}, {retrying(0), waiting(2), waiting(3)});
  ASSERT_TRUE(ok(status_));
  EXPECT_THAT(due(), ElementsAre("0 retrying 1", "2 waiting 0", "3 waiting 0"));
  EXPECT_THAT(blocked(), ElementsAre("a 3"));
}

TEST_P(ParkingSuite, a_page_has_what_waits_behind_the_first_keys_only) {
  settle(make_spec("mails"), {"a", "b", "c", "a", "b", "a", "c"},
         {retrying(0), retrying(1), retrying(2), waiting(3), waiting(4), waiting(5), waiting(6)});
  ASSERT_TRUE(ok(status_));
  limits_ = {.events = 2, .keys = 1, .behind = 1};
  EXPECT_THAT(due(), ElementsAre("0 retrying 1", "3 waiting 0", "1 retrying 1"));
  EXPECT_EQ(next_in_, milliseconds(0)) << "there is more";
  ASSERT_TRUE(
      ok(append({result(0, std::nullopt), result(3, std::nullopt), result(1, std::nullopt)})));
  limits_ = {};
  EXPECT_THAT(due(),
              UnorderedElementsAre("2 retrying 1", "6 waiting 0", "4 retrying 0", "5 retrying 0"));
}

TEST_P(ParkingSuite, what_is_not_due_is_announced) {
  settle(make_spec("mails"), {"a", "b"}, {retrying(0, seconds(100)), retrying(1, seconds(50))});
  EXPECT_THAT(due(), IsEmpty());
  ASSERT_TRUE(next_in_.has_value());
  EXPECT_GT(*next_in_, seconds(10));
  EXPECT_LE(*next_in_, seconds(50));
}

TEST_P(ParkingSuite, a_delivered_event_goes_counts_and_makes_room_for_the_next_of_its_key) {
  settle(make_spec("mails"), {"a", "a", "b"}, {retrying(0), waiting(1), retrying(2, seconds(100))});
  EXPECT_EQ(delivered(), 0);
  ASSERT_TRUE(ok(append({result(0, std::nullopt)})));
  EXPECT_EQ(delivered(), 1);
  EXPECT_THAT(due(), ElementsAre("1 retrying 0"));
  EXPECT_THAT(blocked(), ElementsAre("a 1", "b 1"));
  ASSERT_TRUE(ok(append({result(1, std::nullopt), result(2, std::nullopt)})));
  EXPECT_EQ(delivered(), 3);
  EXPECT_THAT(blocked(), IsEmpty());
}

TEST_P(ParkingSuite, one_that_failed_again_is_due_later_and_the_others_of_its_key_wait) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::retrying, seconds(100))})));
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(blocked(), ElementsAre("a 2"));
}

TEST_P(ParkingSuite, a_later_one_of_the_key_that_failed_becomes_the_one_that_is_retried) {
  settle(make_spec("mails"), {"a", "a", "a"}, {retrying(0), waiting(1), waiting(2)});
  ASSERT_TRUE(ok(append({result(0, std::nullopt), result(1, ParkedState::retrying, seconds(0))})));
  EXPECT_THAT(due(), ElementsAre("1 retrying 2", "2 waiting 0"));
}

TEST_P(ParkingSuite, behind_a_dead_event_the_key_goes_on_or_is_blocked) {
  for (const char* on_dead : {"continue", "block"}) {
    SubscriptionSpec spec = make_spec(std::string("mails-") + on_dead);
    spec.on_dead = on_dead;
    settle(spec, {"a", "a"}, {retrying(0), waiting(1)});
    ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
    if (spec.on_dead == "block") {
      EXPECT_THAT(due(), IsEmpty());
      EXPECT_THAT(blocked(true), ElementsAre("a 2"));
    } else {
      EXPECT_THAT(due(), ElementsAre("1 retrying 0"));
      EXPECT_THAT(blocked(), ElementsAre("a 1"));
    }
  }
}

TEST_P(ParkingSuite, when_dead_events_no_longer_block_what_waits_behind_them_goes) {
  SubscriptionSpec spec = make_spec("mails");
  spec.on_dead = "block";
  settle(spec, {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  spec.on_dead = "continue";
  subscribe(spec);
  EXPECT_THAT(blocked(), ElementsAre("a 1"));
  EXPECT_THAT(due(), ElementsAre("1 retrying 0"));
}

TEST_P(ParkingSuite, events_without_a_key_do_not_wait_for_each_other) {
  settle(make_spec("mails"), {"", "", ""}, {retrying(0), retrying(2)});
  EXPECT_THAT(due(), ElementsAre("0 retrying 1", "2 retrying 1"));
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  EXPECT_THAT(due(), ElementsAre("2 retrying 1"));
}

TEST_P(ParkingSuite, a_relay_that_lost_its_lanes_parks_nothing_and_settles_nothing) {
  settle(make_spec("mails"), {"a", "b"}, {retrying(0)});
  ASSERT_TRUE(ok(relay_->leave()));
  test::LaneOwner other(*store_, "other");
  const auto successor = other.keep(seconds(60));
  ASSERT_TRUE(successor->owns());
  Status late = append({result(0, std::nullopt)});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::lease_lost);
  EXPECT_THAT(due(successor->generation), ElementsAre("0 retrying 1"));

  auto event = retrying(1);
  event.subscription = row_.id;
  event.generation = generation_;
  event.seq += first_;
  const auto before = load(row_.id).cursor;
  store::Settlement settlement{.subscription = row_.id,
                               .generation = generation_,
                               .s1 = before.s1,
                               .s2 = before.s2,
                               .from_position = before.position,
                               .position = first_ + 1,
                               .bound = first_ + 1};
  if (before.s2.empty()) settlement.s2 = before.s1;
  late =
      progress_->append({.settlements = std::span(&settlement, 1), .parked = std::span(&event, 1)},
                        store::Durability::flushed);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::lease_lost);
  EXPECT_EQ(load(row_.id).cursor, before) << "the settlement is not written either";
}

TEST_P(ParkingSuite, a_relay_that_lost_its_lanes_reads_nothing_that_is_due) {
  settle(make_spec("mails"), {"a", "a", "b"}, {retrying(0), waiting(1), retrying(2)});
  EXPECT_THAT(due(), ElementsAre("0 retrying 1", "1 waiting 0", "2 retrying 1"));
  ASSERT_TRUE(ok(relay_->leave()));
  test::LaneOwner other(*store_, "other");
  const auto successor = other.keep(seconds(60));
  ASSERT_TRUE(successor->owns());
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(due(successor->generation),
              ElementsAre("0 retrying 1", "1 waiting 0", "2 retrying 1"));
}

TEST_P(ParkingSuite, an_event_that_is_gone_from_the_log_is_not_passed) {
  row_ = subscribe(make_spec("mails"));
  ids_ = write({make_event("a")});
  LogDrive drive(*store_, load(row_.id).cursor);
  const auto page = drive.next();
  auto settlement = settlement_of(row_, page, generation_);
  auto event = retrying(0);
  event.subscription = row_.id;
  event.generation = generation_;
  event.seq = page.events.front().seq + 1000;
  const auto before = load(row_.id).cursor;
  Status status =
      progress_->append({.settlements = std::span(&settlement, 1), .parked = std::span(&event, 1)},
                        store::Durability::flushed);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::not_found);
  EXPECT_EQ(status.error().remedy, Remedy::reconnect);
  EXPECT_EQ(load(row_.id).cursor, before);
}

// ---- people

TEST_P(ParkingSuite, people_see_what_is_parked) {
  settle(make_spec("mails"), {"a", "b", "a"}, {retrying(0, seconds(100)), retrying(1), waiting(2)});
  auto parked = store_->parked_events();
  ASSERT_TRUE(ok(parked));
  auto all = (*parked)->list({}, 100, true);
  ASSERT_TRUE(ok(all));
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ((*all)[0].seq, first_);
  EXPECT_EQ((*all)[0].id, ids_[0]);
  EXPECT_EQ((*all)[0].error, "too big");
  EXPECT_EQ((*all)[0].payload, R"({"n":1})");
  EXPECT_EQ((*all)[0].headers, "{}");
  EXPECT_GT((*all)[0].next_attempt_at_us, (*all)[0].parked_at_us);
  EXPECT_EQ((*all)[2].state, ParkedState::waiting);
  EXPECT_EQ((*parked)->list({}, 2, false)->size(), 2U);
  const auto count = [&](const store::ParkedFilter& filter) {
    return (*parked)->list(filter, 100, false).value().size();
  };
  EXPECT_EQ(count({.subscription = row_.id}), 3U);
  EXPECT_EQ(count({.subscription = row_.id + 1}), 0U);
  EXPECT_EQ(count({.state = ParkedState::waiting}), 1U);
  EXPECT_EQ(count({.aggregate_id = "a"}), 2U);
  EXPECT_EQ(count({.error = "big"}), 2U);
  EXPECT_EQ(count({.error = "%"}), 0U) << "it is no pattern";
  EXPECT_EQ(count({.id = ids_[1]}), 1U);
  EXPECT_EQ(count({.seq = first_ + 2}), 1U);
  auto counts = (*parked)->counts(row_.id);
  ASSERT_TRUE(ok(counts));
  EXPECT_EQ(counts->retrying, 2);
  EXPECT_EQ(counts->waiting, 1);
  EXPECT_EQ(counts->dead, 0);
}

TEST_P(ParkingSuite, a_person_sends_events_again) {
  settle(make_spec("mails"), {"a", "a", "b"}, {retrying(0, seconds(100)), waiting(1)});
  const auto version = row_of("mails").parked_version;
  auto parked = store_->parked_events();
  const std::vector<std::int64_t> seqs{first_, first_ + 2};
  EXPECT_EQ((*parked)->retry(row_.id, seqs, true).value(), 1U);
  EXPECT_THAT(due(), ElementsAre("0 retrying 1", "1 waiting 0"));
  EXPECT_GT(row_of("mails").parked_version, version) << "so that the relay notices";
  EXPECT_EQ((*parked)->retry(row_.id, seqs, false).value(), 1U);
  EXPECT_THAT(due(), ElementsAre("0 retrying 0", "1 waiting 0"));
}

TEST_P(ParkingSuite, a_dead_event_that_is_sent_again_is_first_in_its_key) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  EXPECT_THAT(due(), ElementsAre("1 retrying 0"));
  auto parked = store_->parked_events();
  const std::int64_t seq = first_;
  EXPECT_EQ((*parked)->retry(row_.id, std::span(&seq, 1), false).value(), 1U);
  EXPECT_THAT(due(), ElementsAre("0 retrying 0", "1 waiting 0"));
}

TEST_P(ParkingSuite, a_person_discards_an_event_and_its_key_goes_on) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0, seconds(100)), waiting(1)});
  auto parked = store_->parked_events();
  const std::int64_t seq = first_;
  EXPECT_EQ((*parked)->discard(row_.id, std::span(&seq, 1), "anna", "a test").value(), 1U);
  EXPECT_EQ((*parked)->discard(row_.id, std::span(&seq, 1), "anna", "a test").value(), 0U);
  EXPECT_THAT(due(), ElementsAre("1 retrying 0"));
  ASSERT_TRUE(ok(append({result(0, std::nullopt)})))
      << "its outcome comes too late, and counts nothing";
  EXPECT_EQ(delivered(), 0);
}

// ---- tasks that run (docs/design/tasks.md)

class TaskRunsSuite : public ParkingSuite {
 protected:
  void SetUp() override {
    ParkingSuite::SetUp();
    runs_ = std::move(*store_->task_runs());
  }
  store::ParkedEvent running(std::int64_t event) const {
    return {.seq = event, .state = ParkedState::running, .error = "runs", .worker = worker_};
  }
  store::TaskRunEnd end(std::int64_t event, std::optional<ParkedState> state, std::int64_t token) {
    store::TaskRunEnd end{.result = result(event, state), .token = token};
    end.result.generation = 0;
    end.result.worker = worker_;
    return end;
  }
  Status write_end(const store::TaskRunEnd& end) { return runs_->end({&end, 1}, {}); }
  /// "event state" of these events.
  std::vector<std::string> running_of(std::vector<std::int64_t> asked) {
    for (auto& event : asked) event += first_;
    const auto read = progress_->due(row_.id, {store::kAllLanes, generation_}, {}, &asked).value();
    std::set<std::string> all;
    for (const auto& row : read.running)
      all.insert(std::to_string(row.seq - first_) + " " + to_string(row.state));
    return {all.begin(), all.end()};
  }
  std::vector<std::string> runs_of(const EventId& worker) {
    std::vector<std::string> all;
    const auto runs = runs_->runs_of(worker, std::vector{row_.spec.name}, 10).value();
    for (const auto& run : runs) {
      EXPECT_EQ(run.queue, row_.spec.name);
      EXPECT_EQ(run.id, ids_.at(static_cast<std::size_t>(run.seq - first_)));
      all.push_back(std::to_string(run.seq - first_) + " attempts " + std::to_string(run.attempts) +
                    " token " + std::to_string(run.token));
    }
    return all;
  }

  std::unique_ptr<store::TaskRuns> runs_;
  const EventId worker_{EventId::generate()};
  const EventId other_{EventId::generate()};
};

INSTANTIATE_TEST_SUITE_P(Store, TaskRunsSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(TaskRunsSuite, what_runs_is_not_due_and_holds_its_key) {
  settle(make_spec("mails"), {"a", "a", "b"}, {running(0), waiting(1), retrying(2)});
  ASSERT_TRUE(ok(status_));
  EXPECT_THAT(due(), ElementsAre("2 retrying 1"));
  EXPECT_THAT(blocked(), ElementsAre("a 1", "a 1, 0 runs", "b 1"));
  EXPECT_THAT(running_of({0, 2, 7}), ElementsAre("0 running", "2 retrying"));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1"));
  EXPECT_THAT(runs_of(other_), IsEmpty());
}

TEST_P(TaskRunsSuite, its_end_is_written_by_its_worker_whoever_owns_the_lane) {
  settle(make_spec("mails"), {"a", "a"}, {running(0), waiting(1)});
  test::LaneOwner successor(*store_, "successor");
  ASSERT_TRUE(ok(relay_->leave()));
  const auto standing = successor.keep(seconds(60));
  ASSERT_TRUE(standing.has_value());
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 1))));
  EXPECT_EQ(delivered(), 1);
  EXPECT_THAT(due(standing->generation), ElementsAre("1 retrying 0"));
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 1)))) << "a second time, after a doubtful answer";
  EXPECT_EQ(delivered(), 1);
}

TEST_P(TaskRunsSuite, an_end_with_another_token_or_worker_writes_nothing) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 2))));
  auto of_other = end(0, std::nullopt, 1);
  of_other.result.worker = other_;
  ASSERT_TRUE(ok(write_end(of_other)));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1"));
  EXPECT_EQ(delivered(), 0);
}

TEST_P(TaskRunsSuite, each_run_of_a_row_has_a_token_of_its_own) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::retrying, 1))));
  EXPECT_THAT(due(), ElementsAre("0 retrying 2"));
  auto again = result(0, ParkedState::running);
  again.worker = other_;
  ASSERT_TRUE(ok(append({again})));
  EXPECT_THAT(runs_of(other_), ElementsAre("0 attempts 2 token 2"));
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 1)))) << "the first worker wakes up";
  EXPECT_THAT(runs_of(other_), ElementsAre("0 attempts 2 token 2"));
  auto last = end(0, ParkedState::dead, 2);
  last.result.worker = other_;
  ASSERT_TRUE(ok(write_end(last)));
  EXPECT_THAT(running_of({0}), ElementsAre("0 dead"));
}

TEST_P(TaskRunsSuite, a_worker_is_seen_by_its_runs_and_heartbeats) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  const std::vector<std::string> names{"mails"};
  auto seen = runs_->others(other_, names).value();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].id, worker_);
  EXPECT_FALSE(seen[0].beat.has_value());
  ASSERT_TRUE(ok(runs_->beat(worker_, "host:1", "{}")));
  const auto first = runs_->others(other_, names).value().at(0).beat;
  ASSERT_TRUE(ok(runs_->beat(worker_, "host:1", "{}")));
  EXPECT_NE(runs_->others(other_, names).value().at(0).beat, first);
  EXPECT_THAT(runs_->others(worker_, names).value(), IsEmpty()) << "not itself";
  EXPECT_THAT(runs_->others(other_, std::vector<std::string>{"reports"}).value(), IsEmpty());
  ASSERT_TRUE(ok(runs_->leave(worker_)));
  EXPECT_FALSE(runs_->others(other_, names).value().at(0).beat.has_value());
}

TEST_P(TaskRunsSuite, queues_are_counted_and_workers_are_shown_with_what_they_say) {
  SubscriptionSpec spec = make_spec("task.mail");
  spec.aggregate_types = {"outbox-task:mail"};
  settle(spec, {"a", "a", "b"}, {running(0), waiting(1)});
  Event task = make_event("k");
  task.aggregate_type = "outbox-task:mail";
  task.event_type = "send";
  write({make_event("c"), task, task});
  const store::WorkerNote note{.heartbeat = seconds(10),
                               .types = {{.queue = "mail", .name = "send", .runs = {{9, 4}}}}};
  ASSERT_TRUE(ok(runs_->beat(worker_, "host:1", store::to_json(note))));
  const auto queues = store_->task_queues().value();
  const auto report = queues->look({&row_, 1}, 10).value();
  std::map<TaskState, std::int64_t> counts;
  for (const auto& count : report.counts) {
    EXPECT_EQ(count.subscription, row_.id);
    counts[count.state] += count.tasks;
  }
  EXPECT_EQ(counts,
            (std::map<TaskState, std::int64_t>{
                {TaskState::pending, 2}, {TaskState::running, 1}, {TaskState::waiting, 1}}));
  EXPECT_TRUE(report.more.empty());
  EXPECT_THAT(queues->look({&row_, 1}, 2).value().more, ElementsAre(row_.id))
      << "one more is there";
  ASSERT_EQ(report.workers.size(), 1U);
  const store::WorkerRow& worker = report.workers[0];
  EXPECT_EQ(worker.name, "host:1");
  EXPECT_EQ(worker.running, 1);
  EXPECT_TRUE(worker.is_alive());
  ASSERT_EQ(worker.note.types.size(), 1U);
  EXPECT_EQ(worker.note.types[0].runs, note.types[0].runs);
  EXPECT_EQ(queues->pending(row_, {}, 10).value().size(), 2U);
  EXPECT_EQ(queues->pending(row_, {.type = "send", .key = "k"}, 1).value().size(), 1U);
  EXPECT_TRUE(queues->pending(row_, {.type = "other"}, 10).value().empty());
  EXPECT_TRUE(queues->pending(row_, {.key = "other"}, 10).value().empty());
  ASSERT_TRUE(ok(runs_->leave(worker_)));
  EXPECT_TRUE(queues->look({&row_, 1}, 10).value().workers.empty());
}

TEST_P(TaskRunsSuite, progress_is_written_only_by_the_run_itself) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  store::TaskProgress progress{
      .subscription = row_.id, .seq = first_, .token = 1, .percent = 40, .text = "page 2 of 5"};
  ASSERT_TRUE(ok(runs_->report(worker_, {&progress, 1})));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1"));
  progress.token = 2;
  ASSERT_TRUE(ok(runs_->report(worker_, {&progress, 1})));
}

}  // namespace
}  // namespace outbox::conformance
