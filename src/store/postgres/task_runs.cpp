// The rows of tasks that run; the functions are in 0008_tasks.sql.
#include "store/task_runs.hpp"

#include <map>
#include <utility>

#include "store/postgres/parking.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

Param names_of(std::span<const std::string> names) {
  ArrayParam array(ArrayParam::Element::text);
  for (const std::string& name : names) array.add(name);
  return array.take();
}

class PostgresTaskRuns final : public TaskRuns {
 public:
  explicit PostgresTaskRuns(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Status beat(const EventId& worker, std::string_view name) override {
    return done(connection_.exec(&Queries::beat_worker, {Param(worker), Param(std::string(name))}));
  }

  [[nodiscard]] Status leave(const EventId& worker) override {
    return done(connection_.exec(&Queries::remove_worker, {Param(worker)}));
  }

  [[nodiscard]] Result<std::vector<TaskRunRow>> runs_of(const EventId& worker,
                                                        std::span<const std::string> subscriptions,
                                                        std::size_t limit) override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::runs_of_worker,
                                                 {Param(worker), names_of(subscriptions),
                                                  Param(static_cast<std::int64_t>(limit))}));
    std::vector<TaskRunRow> runs;
    for (int row = 0; row < rows.size(); ++row) {
      runs.push_back({.subscription = rows.int4(row, 0),
                      .queue = rows.text(row, 1),
                      .seq = rows.int8(row, 2),
                      .id = rows.uuid(row, 3),
                      .attempts = static_cast<std::size_t>(rows.int4(row, 4)),
                      .token = rows.int8(row, 5)});
    }
    return runs;
  }

  [[nodiscard]] Result<std::vector<OtherWorker>> others(
      const EventId& me, std::span<const std::string> subscriptions) override {
    OUTBOX_TRY(const Rows rows,
               connection_.exec(&Queries::other_workers, {Param(me), names_of(subscriptions)}));
    std::vector<OtherWorker> others;
    for (int row = 0; row < rows.size(); ++row) {
      others.push_back(
          {.id = rows.uuid(row, 0),
           .beat = rows.is_null(row, 1) ? std::nullopt : std::optional(rows.int8(row, 1))});
    }
    return others;
  }

  [[nodiscard]] Status end(std::span<const TaskRunEnd> ends) override {
    if (ends.empty()) return {};
    return connection_.transact([&]() -> Result<Decision> {
      connection_.send(&Queries::flushed);
      send_run_ends(connection_, ends);
      OUTBOX_TRY(const auto ended, connection_.finish());
      return Decision::commit;
    });
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
  static Status done(Result<Rows> rows) { return rows ? Status{} : Status(pass(rows)); }

  Connection connection_;
};

}  // namespace

std::unique_ptr<TaskRuns> make_task_runs(Connection connection) {
  return std::make_unique<PostgresTaskRuns>(std::move(connection));
}

}  // namespace outbox::store::postgres
