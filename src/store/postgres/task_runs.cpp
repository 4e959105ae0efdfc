// The rows of tasks that run; the functions are in 0008_tasks.sql.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "pg/errors.hpp"
#include "store/postgres/event_row.hpp"
#include "store/postgres/parking.hpp"
#include "store/postgres/parts.hpp"
#include "store/sql/parts.hpp"
#include "store/tasks.hpp"
#include "store/text.hpp"
#include "store/wait.hpp"

namespace outbox::store::postgres {
namespace {

Param make_names(std::span<const std::string> names) {
  ArrayParam array(ArrayParam::Element::text);
  for (const std::string& name : names) array.add(name);
  return array.take();
}

/// The columns of finish_tasks().
class Finishes {
 public:
  void add(const TaskFinish& finish) {
    ++count_;
    ids_.add(finish.id);
    outcomes_.add(finish.outcome == TaskFinish::Outcome::done ? "done" : "cancelled");
    finish.result ? results_.add(*finish.result) : results_.add_null();
    reasons_.add(storable_text(finish.reason));
    keys_.add(finish.unique_key);
    const Event event = finish.event.value_or(Event{});
    finish.event ? events_.add(event.id.value_or(EventId::generate())) : events_.add_null();
    types_.add(event.aggregate_type);
    aggregates_.add(event.aggregate_id);
    names_.add(event.event_type);
    payloads_.add(event.payload);
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] Params params() {
    return {ids_.take(),   outcomes_.take(), results_.take(), reasons_.take(),
            keys_.take(),  events_.take(),   types_.take(),   aggregates_.take(),
            names_.take(), payloads_.take()};
  }

 private:
  using Element = ArrayParam::Element;
  std::size_t count_{0};
  ArrayParam ids_{Element::uuid};
  ArrayParam outcomes_{Element::text};
  ArrayParam results_{Element::bytea};
  ArrayParam reasons_{Element::text};
  ArrayParam keys_{Element::text};
  ArrayParam events_{Element::uuid};
  ArrayParam types_{Element::text};
  ArrayParam aggregates_{Element::text};
  ArrayParam names_{Element::text};
  ArrayParam payloads_{Element::bytea};
};

class PostgresTaskRuns final : public sql::TaskRuns {
  /// Subscription, seq and token.
  using Run = std::tuple<std::int32_t, std::int64_t, std::int64_t>;

 public:
  explicit PostgresTaskRuns(std::unique_ptr<Connection> connection)
      : sql::TaskRuns(std::move(connection)), connection_(static_cast<Connection&>(db())) {}

  [[nodiscard]] Status end(std::span<const TaskRunEnd> ends,
                           std::span<const TaskFinish> finishes) override {
    if (ends.empty() && finishes.empty()) return {};
    return connection_.transact([&]() -> Result<Decision> {
      connection_.send(&Queries::flushed);
      send_run_ends(connection_, ends);
      OUTBOX_TRY(const auto results, connection_.finish());
      std::set<Run> ended;
      for (std::size_t i = 2; i < results.size(); ++i) {
        for (int row = 0; row < results[i].size(); ++row)
          ended.emplace(results[i].int4(row, 0), results[i].int8(row, 1), results[i].int8(row, 2));
      }
      Finishes all;
      for (const TaskFinish& finish : finishes) all.add(finish);
      for (const TaskRunEnd& end : ends) {
        if (end.finish && ended.contains({end.result.subscription, end.result.seq, end.token}))
          all.add(*end.finish);
      }
      if (all.empty()) return Decision::commit;
      connection_.send(&Queries::finish_tasks, all.params());
      OUTBOX_TRY(const auto noted, connection_.finish());
      return Decision::commit;
    });
  }

  [[nodiscard]] Result<std::vector<MayBegin>> begin_unique(
      std::span<const UniqueTask> tasks) override {
    ArrayParam queues(ArrayParam::Element::text);
    ArrayParam keys(ArrayParam::Element::text);
    ArrayParam ids(ArrayParam::Element::uuid);
    for (const UniqueTask& task : tasks) {
      queues.add(task.queue);
      keys.add(task.unique_key);
      ids.add(task.id);
    }
    OUTBOX_TRY(const Rows rows,
               connection_.exec(&Queries::begin_unique, {queues.take(), keys.take(), ids.take()}));
    std::map<EventId, MayBegin> answers;
    for (int row = 0; row < rows.size(); ++row) {
      const std::string_view may = rows.bytes(row, 1);
      answers[rows.uuid(row, 0)] = may == "begin"      ? MayBegin::begin
                                   : may == "replaced" ? MayBegin::replaced
                                   : may == "later"    ? MayBegin::later
                                                       : MayBegin::busy;
    }
    std::vector<MayBegin> all;
    for (const UniqueTask& task : tasks) {
      const auto found = answers.find(task.id);
      all.push_back(found == answers.end() ? MayBegin::busy : found->second);
    }
    return all;
  }

  [[nodiscard]] Status announce_free_threads(
      const EventId& worker, const std::map<std::string, std::size_t>& free) override {
    return done(connection_.exec(&Queries::announce_free,
                                 {Param(worker), Param(write_json(nlohmann::json(free)))}));
  }

  [[nodiscard]] Result<OtherThreads> other_threads(const EventId& me, std::string_view queue,
                                                   std::chrono::milliseconds alive) override {
    OUTBOX_TRY(const Rows rows,
               connection_.exec(&Queries::other_threads, {Param(me), Param(queue), alive.count()}));
    return OtherThreads{.workers = rows.int8(0, 0), .free = rows.int8(0, 1)};
  }

  [[nodiscard]] Result<ClaimedTasks> claim(const EventId& worker,
                                           std::span<const std::string> subscriptions,
                                           std::span<const std::string> types,
                                           std::size_t limit) override {
    enum Column : int { kAttempts = kFirstExtra, kToken, kSubscription, kName };
    OUTBOX_TRY(Rows claimed,
               connection_.exec(&Queries::claim_ready,
                                {Param(worker), make_names(subscriptions), make_names(types),
                                 Param(static_cast<std::int64_t>(limit))}));
    const auto rows = std::make_shared<const Rows>(std::move(claimed));
    ClaimedTasks all;
    for (int row = 0; row < rows->size(); ++row) {
      ClaimedTask& task = all.tasks.emplace_back(
          ClaimedTask{.subscription = rows->int4(row, kSubscription),
                      .subscription_name = rows->text(row, kName),
                      .attempts = static_cast<std::size_t>(rows->int4(row, kAttempts)),
                      .token = rows->int8(row, kToken),
                      .event = read_view(*rows, row)});
      add_parts(task.event, rows->bytes(row, kPayload), rows->bytes(row, kHeaders));
    }
    all.storage = rows;
    return all;
  }

  [[nodiscard]] Result<bool> wait(const EventFd& bell,
                                  std::chrono::steady_clock::time_point until) override {
    if (!asked_) {
      OUTBOX_TRY(listen());
    }
    // A notification may also have come with the answer to a statement.
    OUTBOX_TRY(const bool told, take_told());
    if (told) return true;
    OUTBOX_TRY(const bool rung,
               wait_for(bell, listens_ ? PQsocket(connection_.native()) : -1, until));
    return rung ? Result<bool>(false) : take_told();
  }

  [[nodiscard]] Status report(const EventId& worker,
                              std::span<const TaskProgress> progress) override {
    ArrayParam subscriptions(ArrayParam::Element::int8);
    ArrayParam seqs(ArrayParam::Element::int8);
    ArrayParam tokens(ArrayParam::Element::int8);
    ArrayParam percents(ArrayParam::Element::int8);
    ArrayParam texts(ArrayParam::Element::text);
    for (const TaskProgress& one : progress) {
      subscriptions.add(std::int64_t{one.subscription});
      seqs.add(one.seq);
      tokens.add(one.token);
      percents.add(static_cast<std::int64_t>(one.percent));
      texts.add(one.text);
    }
    return done(connection_.exec(&Queries::report_progress,
                                 {Param(worker), subscriptions.take(), seqs.take(), tokens.take(),
                                  percents.take(), texts.take()}));
  }

 private:
  /// Behind a pooler that shares connections, the notifications would go to another client.
  [[nodiscard]] Status listen() {
    OUTBOX_TRY(const Rows channel, connection_.exec(&Queries::ready_channel));
    const bool ours = channel.int4(0, 1) == PQbackendPID(connection_.native());
    if (ours) {
      OUTBOX_TRY(connection_.exec(postgres::listen(channel.bytes(0, 0))));
    }
    asked_ = true;
    listens_ = ours;
    return {};
  }

  [[nodiscard]] Result<bool> take_told() {
    if (!listens_) return false;
    if (PQconsumeInput(connection_.native()) != 1)
      return fail(pg::lost_connection(connection_.native(), "wait for tasks"));
    return take_notifications(connection_.native());
  }

  static Status done(Result<Rows> rows) { return rows ? Status{} : Status(pass(rows)); }

  Connection& connection_;
  bool asked_{false};    ///< Whether listen() has succeeded, after which it is not called again.
  bool listens_{false};  ///< Whether we listen for rows that become `ready`.
};

}  // namespace

std::unique_ptr<TaskRuns> make_task_runs(Connection connection) {
  return std::make_unique<PostgresTaskRuns>(std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::postgres
