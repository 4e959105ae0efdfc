// Tests tasks that run (docs/design/tasks.md): a worker has the event, whoever owns its lane.
#include "conformance/store/parking_fixture.hpp"

namespace outbox::conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::ParkedState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
  /// What the relay is told when it asks about these events.
  Texts asked(const std::vector<std::size_t>& places) {
    std::vector<store::AskedRow> rows;
    for (const std::size_t place : places)
      rows.push_back({.seq = seqs_.at(place), .key = keys_.at(place)});
    const auto read = progress_->due(row_.id, {store::kAllLanes, generation_}, {}, rows).value();
    Texts all;
    for (const auto& row : read.asked) {
      all.push_back(std::to_string(find_place(row.seq)) + " " +
                    (row.state ? to_string(*row.state) : "gone"));
      if (!row.key_left) all.back() += ", its key is free";
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  Texts runs_of(const EventId& worker) {
    Texts all;
    const auto runs = runs_->runs_of(worker, std::vector{row_.spec.name}, 10).value();
    for (const auto& run : runs) {
      EXPECT_EQ(run.queue, row_.spec.name);
      const std::int64_t place = find_place(run.seq);
      EXPECT_EQ(run.id, ids_.at(static_cast<std::size_t>(place)));
      all.push_back(std::to_string(place) + " attempts " + std::to_string(run.attempts) +
                    " token " + std::to_string(run.token));
      if (run.cancelled) all.back() += ", cancelled";
    }
    return all;
  }

  std::unique_ptr<store::TaskRuns> runs_;
  const EventId worker_{EventId::generate()};
  const EventId other_{EventId::generate()};
};

INSTANTIATE_TEST_SUITE_P(Store, TaskRunsSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(TaskRunsSuite, what_runs_is_not_due_and_holds_its_key) {
  settle(make_spec("mails"), {"a", "a", "b", "c"}, {running(0), waiting(1), retrying(2)});
  ASSERT_TRUE(ok(status_));
  EXPECT_THAT(due(), ElementsAre("2 attempts 1"));
  EXPECT_THAT(states(), ElementsAre("0 running 0 runs", "1 waiting 0", "2 retrying 1 too big"));
  EXPECT_THAT(blocked(), ElementsAre("a, 0 runs", "b"));
  EXPECT_EQ(live_, 3U);
  EXPECT_THAT(asked({0, 1, 2, 3}),
              ElementsAre("0 running", "1 waiting", "2 retrying", "3 gone, its key is free"));
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
  EXPECT_THAT(due(standing->generation), ElementsAre("1 attempts 0"));
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
  EXPECT_THAT(due(), ElementsAre("0 attempts 2"));
  auto again = result(0, ParkedState::running);
  again.worker = other_;
  ASSERT_TRUE(ok(append({again})));
  EXPECT_THAT(runs_of(other_), ElementsAre("0 attempts 2 token 2"));
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 1)))) << "the first worker wakes up";
  EXPECT_THAT(runs_of(other_), ElementsAre("0 attempts 2 token 2"));
  auto last = end(0, ParkedState::dead, 2);
  last.result.worker = other_;
  ASSERT_TRUE(ok(write_end(last)));
  EXPECT_THAT(asked({0}), ElementsAre("0 dead, its key is free"));
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
      .subscription = row_.id, .seq = seqs_[0], .token = 1, .percent = 40, .text = "page 2 of 5"};
  ASSERT_TRUE(ok(runs_->report(worker_, {&progress, 1})));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1"));
  progress.token = 2;
  progress.text = "page 3 of 5";
  ASSERT_TRUE(ok(runs_->report(worker_, {&progress, 1})));
  progress.token = 1;
  ASSERT_TRUE(ok(runs_->report(other_, {&progress, 1})));
  EXPECT_EQ(list().at(0).percent, 40);
  EXPECT_EQ(list().at(0).progress, "page 2 of 5");
  settle_more({"a"}, {waiting(1)});
  EXPECT_EQ(list().at(0).percent, 40) << "as long as it runs";
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::retrying, 1))));
  EXPECT_FALSE(list().at(0).percent.has_value());
  EXPECT_FALSE(list().at(0).begun_at_us.has_value());
}

TEST_P(TaskRunsSuite, that_an_event_runs_is_a_fact_whatever_a_person_did_meanwhile) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0), waiting(1)});
  EXPECT_EQ(due().size(), 2U);
  auto begun = result(0, ParkedState::running);
  begun.worker = worker_;
  EXPECT_EQ(retry({0}), 1U);
  ASSERT_TRUE(ok(append({begun})));
  EXPECT_THAT(states(), ElementsAre("0 running 2 no", "1 waiting 0"));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 2 token 1"));
}

TEST_P(TaskRunsSuite, of_one_key_one_event_runs) {
  settle(make_spec("mails"), {"a", "a"}, {running(0), waiting(1)});
  auto begun = result(1, ParkedState::running);
  begun.worker = other_;
  ASSERT_TRUE(ok(append({begun})));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1"));
  EXPECT_THAT(runs_of(other_), IsEmpty());
}

TEST_P(TaskRunsSuite, one_that_runs_when_its_key_is_parked_already_runs_all_the_same) {
  settle(make_spec("mails"), {"a"}, {retrying(0)});
  settle_more({"a"}, {running(1)});
  EXPECT_THAT(runs_of(worker_), ElementsAre("1 attempts 0 token 1"));
  EXPECT_THAT(due(), IsEmpty()) << "one of a key at a time";
  ASSERT_TRUE(ok(write_end(end(1, std::nullopt, 1))));
  EXPECT_THAT(due(), ElementsAre("0 attempts 0")) << "the run's attempts are not those of event 0";
}

TEST_P(TaskRunsSuite, attempts_of_a_retry_that_still_runs_are_not_those_of_what_is_put_before_it) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  settle_more({"a"}, {retrying(2)});
  EXPECT_EQ(due().size(), 1U) << "event 2 is sent";
  EXPECT_EQ(retry({0}), 1U);
  auto begun = result(2, ParkedState::running);
  begun.worker = worker_;
  ASSERT_TRUE(ok(append({begun})));
  EXPECT_THAT(runs_of(worker_), ElementsAre("2 attempts 2 token 1"));
  ASSERT_TRUE(ok(write_end(end(2, ParkedState::retrying, 1))));
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "2 attempts 0"));
}

TEST_P(TaskRunsSuite, one_that_any_worker_may_take_is_ready_and_not_due) {
  settle(make_spec("mails"), {"", ""}, {parked(0, ParkedState::ready), retrying(1)});
  ASSERT_TRUE(ok(append({result(1, ParkedState::ready)})));
  EXPECT_THAT(states(), ElementsAre("0 ready 1 too big", "1 ready 2 no"));
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(blocked(), ElementsAre(", 0 runs", ", 1 runs"));
  EXPECT_EQ(discard({0}), 1U) << "nobody runs it";
  EXPECT_THAT(states(), ElementsAre("1 ready 2 no"));
}

TEST_P(TaskRunsSuite, the_end_of_a_run_counts_whatever_a_person_did_meanwhile) {
  settle(make_spec("mails"), {"a", "a"}, {running(0), waiting(1)});
  EXPECT_EQ(retry({0, 1}), 2U);
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1")) << "what runs goes on";
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::retrying, 1))));
  EXPECT_THAT(due(), ElementsAre("0 attempts 2", "1 attempts 0"));
}

TEST_P(TaskRunsSuite, a_person_puts_a_dead_one_before_one_that_runs) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  settle_more({"a"}, {running(2)});
  EXPECT_EQ(retry({0}), 1U);
  EXPECT_THAT(due(), IsEmpty()) << "it waits for the one that runs";
  EXPECT_THAT(runs_of(worker_), ElementsAre("2 attempts 0 token 1"));
  ASSERT_TRUE(ok(write_end(end(2, std::nullopt, 1))));
  EXPECT_THAT(due(), ElementsAre("0 attempts 0"));
}

TEST_P(TaskRunsSuite, a_person_discards_one_that_runs_and_it_stays_until_its_worker_has_ended_it) {
  settle(make_spec("mails"), {"a", "a"}, {running(0), waiting(1)});
  EXPECT_EQ(discard({0}), 1U);
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1, cancelled"));
  EXPECT_THAT(due(), IsEmpty());
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::retrying, 1))));
  EXPECT_THAT(asked({0}), ElementsAre("0 gone"));
  EXPECT_EQ(delivered(), 0);
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
}

TEST_P(TaskRunsSuite, one_that_is_done_all_the_same_is_delivered) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  EXPECT_EQ(discard({0}), 1U);
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 1))));
  EXPECT_EQ(delivered(), 1);
  EXPECT_THAT(asked({0}), ElementsAre("0 gone, its key is free"));
}

TEST_P(TaskRunsSuite, a_run_that_ends_dead_blocks_its_key_where_dead_events_do) {
  settle(blocking(), {"a", "a"}, {running(0), waiting(1)});
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::dead, 1))));
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(asked({0, 1}), ElementsAre("0 dead", "1 waiting"));
  EXPECT_EQ(retry({0}), 1U);
  auto again = result(0, ParkedState::running);
  again.worker = other_;
  ASSERT_TRUE(ok(append({again})));
  EXPECT_THAT(runs_of(other_), ElementsAre("0 attempts 2 token 2")) << "a run of its own";
}

}  // namespace
}  // namespace outbox::conformance
