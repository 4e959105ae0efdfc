// outbox/worker.hpp: does tasks, inside your own process. A handler is a function for one type of
// task.
//
//   outbox::Handlers handlers;
//   handlers.on("mail.send", [](std::string_view payload, const outbox::TaskRun& run) {
//     send_mail(payload, run.id);
//   });
//   // MakeReport is a type of yours: outbox/payload.hpp.
//   handlers.on<MakeReport>([](const MakeReport& report, const outbox::TaskRun& run) {
//     if (!printer_is_ready()) return outbox::TaskEnd::snooze(std::chrono::minutes(5));
//     print(report, run.stop);
//     return outbox::TaskEnd::done();
//   });
//   outbox::WorkerOptions options{.relay = {.store_url = "postgresql://localhost/shop"},
//                                 .queues = {"reports"}};
//   auto worker = outbox::Worker::create(options, handlers);
//   if (!worker) throw outbox::Exception(worker.error());
//   if (auto status = (*worker)->start(); !status) throw outbox::Exception(status.error());
//   ...
//   (*worker)->stop(std::chrono::seconds(30));
//
// Workers share a queue: start several processes. Tasks of one key run one at a time, in order. A
// task runs again when its worker is killed or loses its database before it could note the end:
// make its effect repeatable, with run.id as the idempotency key.
//
// Threads: Handlers: One thread at a time; a handler is called by several threads at once. Worker:
//          Any thread.
// Lifetime: a handler that does not return by its deadline keeps its thread, and what it has
//           captured, until it returns.
// Errors: create() and start() check everything that can be checked. A handler reports by TaskEnd
//         or by an exception, which counts as TaskEnd::failed().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/payload.hpp>
#include <outbox/relay.hpp>
#include <outbox/schedule.hpp>
#include <outbox/task.hpp>
#include <outbox/time.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace outbox {

namespace history {
class HistoryJob;
}  // namespace history
namespace task {
class RunTracker;
class Ticker;
}  // namespace task

/// One run of a task, as its handler sees it. It is valid during the call.
struct TaskRun {
  EventId id{};  ///< The same in each run of the task: the idempotency key of its effect.
  std::string_view queue;
  std::string_view type;
  std::string_view key;
  std::string_view content_type;
  std::string_view headers;  ///< A JSON object of strings.
  std::size_t attempt{1};    ///< One more than there were failed runs before it.
  std::int64_t seq{0};       ///< Its place in the log.
  /// When it was enqueued, by the clock of the store.
  Timestamp created_at{};
  std::chrono::steady_clock::time_point deadline{};
  /// Stop is requested when the deadline has passed, and when the worker must give the task up.
  /// What a handler does after that may be done by another worker, too.
  std::stop_token stop{};

  /// Reports how far the run is, for `outbox tasks` and task_status(). Reports of a run are written
  /// at most once a second, and only if it lasts longer than 1 s.
  void progress(std::size_t percent, std::string_view text = {}) const {
    if (report_progress) report_progress(percent, text);
  }

  /// Called in the transaction of the effect. Returns true in the first run whose transaction
  /// commits, and false if the effect is there already. So whatever is written in that transaction,
  /// also events and tasks, happens once, however often the task runs.
  ///
  ///   outbox::postgres::Transaction tx(connection);
  ///   if (run.once(tx)) insert_report(connection, ...);
  ///   tx.commit();
  template <class Transaction>
  [[nodiscard]] bool once(Transaction& tx) const {
    return tx.receive(consumer(), id.str());
  }
  /// The consumer's name for a transaction of another library: receive(tx, run.consumer(),
  /// run.id.str()) is what once() does.
  [[nodiscard]] std::string consumer() const { return std::string("task.").append(queue); }
  /// Where on_tx() opens its transaction: the store of the worker, and its schema.
  std::string_view store_url{};
  std::string_view schema{};
  /// What progress() calls; the worker sets it. Default: not set.
  std::function<void(std::size_t percent, std::string_view text)> report_progress{};
};

/// How a run ended.
class TaskEnd {
 public:
  enum class Kind : std::uint8_t { done, failed, snoozed, dead, cancelled };

  [[nodiscard]] static TaskEnd done() { return {}; }
  /// The result is kept in the store as long as events are, for task_status(). At most
  /// WorkerOptions::result_bytes.
  [[nodiscard]] static TaskEnd done(std::string result) {
    TaskEnd end;
    end.result_ = std::move(result);
    return end;
  }
  /// The task runs again after the next of its delays; after the last one it is dead.
  [[nodiscard]] static TaskEnd failed(std::string reason) {
    return {Kind::failed, std::move(reason), {}};
  }
  /// The same, but the task runs again after this pause.
  [[nodiscard]] static TaskEnd retry_after(Duration pause, std::string reason) {
    return {Kind::failed, std::move(reason), pause};
  }
  /// The task runs again after this pause. No attempt is counted.
  [[nodiscard]] static TaskEnd snooze(Duration pause, std::string reason = "snoozed") {
    return {Kind::snoozed, std::move(reason), pause};
  }
  /// No run can succeed, so the task is dead until a person decides.
  [[nodiscard]] static TaskEnd dead(std::string reason) {
    return {Kind::dead, std::move(reason), {}};
  }

  /// The task need not be done any more. It counts neither as done nor as dead.
  [[nodiscard]] static TaskEnd cancelled(std::string reason) {
    return {Kind::cancelled, std::move(reason), {}};
  }

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] std::optional<Duration> pause() const { return pause_; }
  [[nodiscard]] const std::optional<std::string>& result() const { return result_; }

 private:
  TaskEnd() = default;
  TaskEnd(Kind kind, std::string reason, std::optional<Duration> pause)
      : kind_(kind), reason_(std::move(reason)), pause_(pause) {}

  Kind kind_{Kind::done};
  std::string reason_;
  std::optional<Duration> pause_;
  std::optional<std::string> result_;
};

namespace detail {

template <class Function>
struct FirstParameter : FirstParameter<decltype(&Function::operator())> {};
template <class Owner, class Result, class First, class... Rest>
struct FirstParameter<Result (Owner::*)(First, Rest...) const> {
  using type = First;
};
template <class Result, class First, class... Rest>
struct FirstParameter<Result (*)(First, Rest...)> {
  using type = First;
};
/// The transaction that a function for on_tx() takes; its parameters must have types of their own,
/// not auto.
template <class Function>
using TransactionOf = std::remove_cvref_t<typename FirstParameter<Function>::type>;

}  // namespace detail

class Handlers {
 public:
  using Run = std::function<TaskEnd(std::string_view payload, const TaskRun& run)>;
  struct Options {
    /// How long one run may take. Default: 30 min.
    std::chrono::milliseconds deadline{std::chrono::minutes(30)};
    /// The pauses after failed runs of this type: n pauses are n retries. Default: empty, which
    /// means WorkerOptions::delays.
    Delays delays{};
    /// How many tasks of this type run at once in each worker and queue. A type with a limit is
    /// read from the log apart from the others, so that its tasks hold up no others; the order of a
    /// key then holds among the tasks of this type only. Default: 0, no limit but the threads.
    std::size_t max_running{0};
    /// How many runs begin in a period in all workers of a queue together. Each worker has the part
    /// that its lanes make up. Default: no limit.
    Rate rate{};
    /// Whether runs of this type get a row at once instead of after WorkerOptions::row_after. They
    /// are seen, and belong to their worker, from the beginning, at the price of a few writes for
    /// each. Default: false.
    bool slow{false};
  };
  struct Handler {
    std::string type;
    Run run;
    Options options{};
  };

  /// `handle(payload, run)` returns a TaskEnd, or nothing, which means done. A second handler of a
  /// type replaces the first.
  ///
  ///   using namespace std::chrono_literals;
  ///   handlers.on("report.make", {.deadline = 5min, .delays = {10s, 1min}}, make_report);
  template <class T = std::string_view, class Function>
  Handlers& on(std::string type, Function handle) {
    return on<T>(std::move(type), Options(), std::move(handle));
  }
  template <class T = std::string_view, class Function>
  Handlers& on(std::string type, Options options, Function handle) {
    Handler handler;
    handler.type = std::move(type);
    handler.options = std::move(options);
    handler.run = [handle = std::move(handle)](std::string_view payload, const TaskRun& run) {
      auto read = Payload<T>::read(payload);
      if (!read) return TaskEnd::dead("the payload: " + read.error().message);
      if constexpr (std::is_void_v<std::invoke_result_t<const Function&, T&, const TaskRun&>>) {
        handle(*read, run);
        return TaskEnd::done();
      } else {
        return handle(*read, run);
      }
    };
    return add(std::move(handler));
  }
  /// The same for a type that names its task (outbox/payload.hpp).
  template <TypedTask T, class Function>
  Handlers& on(Function handle) {
    return on<T>(std::move(handle), Options());
  }
  template <TypedTask T, class Function>
  Handlers& on(Function handle, Options options) {
    return on<T>(T::task_type, std::move(options), std::move(handle));
  }
  /// `handle(tx, payload, run)` runs in a transaction that the worker opens in its own store. The
  /// transaction has a row by which the effect happens once, however often the task runs: what is
  /// written through `tx`, also events and tasks, is there once or not at all. After a conflict
  /// with another transaction, or when the connection is lost, `handle` is called again, so it does
  /// nothing outside of the transaction. What it enqueues has the correlation_id of the task, and
  /// as causation_id the id of the message or task that is being handled.
  ///
  /// It returns a TaskEnd, or nothing, which means done. Any other end rolls back.
  ///
  ///   handlers.on_tx<OrderPlaced>("OrderPlaced",
  ///       [](outbox::postgres::Transaction& tx, const OrderPlaced& order,
  ///          const outbox::TaskRun& run) {
  ///         insert_invoice(tx.connection(), order);
  ///         tx.enqueue(InvoiceMade{order.id}, order.customer);
  ///       });
  template <class T = std::string_view, class Function>
  Handlers& on_tx(std::string type, Function handle) {
    return on_tx<T>(std::move(type), Options(), std::move(handle));
  }
  template <class T = std::string_view, class Function>
  Handlers& on_tx(std::string type, Options options, Function handle) {
    using Transaction = detail::TransactionOf<Function>;
    return on<T>(
        std::move(type), std::move(options),
        [handle = std::move(handle)](const T& payload, const TaskRun& run) {
          TaskEnd end = TaskEnd::done();
          (void)TaskTransaction<Transaction>::run(run, [&](Transaction& tx) {
            using End =
                std::invoke_result_t<const Function&, Transaction&, const T&, const TaskRun&>;
            if constexpr (std::is_void_v<End>) {
              handle(tx, payload, run);
            } else {
              end = handle(tx, payload, run);
            }
            return end.kind() == TaskEnd::Kind::done;
          });
          return end;
        });
  }
  /// The same for a type that names its task (outbox/payload.hpp).
  template <TypedTask T, class Function>
  Handlers& on_tx(Function handle) {
    return on_tx<T>(std::move(handle), Options());
  }
  template <TypedTask T, class Function>
  Handlers& on_tx(Function handle, Options options) {
    return on_tx<T>(T::task_type, std::move(options), std::move(handle));
  }
  Handlers& add(Handler handler);
  [[nodiscard]] const std::vector<Handler>& all() const { return all_; }

 private:
  std::vector<Handler> all_;
};

struct WorkerOptions {
  /// The store, and how its log is read. The worker sets `groups` and `subscriptions`.
  RelayOptions relay{};
  /// The queues that it works off. Default: default.
  std::vector<std::string> queues{"default"};
  /// How many tasks of each queue run at once. Default: 8.
  std::size_t threads{8};
  /// The pauses after failed runs: n pauses are n retries. Default: 1 min, 5 min, 15 min, 30 min, 1
  /// h, 2 h, 4 h, 8 h, 12 h, 24 h.
  Delays delays{std::chrono::minutes(1),  std::chrono::minutes(5), std::chrono::minutes(15),
                std::chrono::minutes(30), std::chrono::hours(1),   std::chrono::hours(2),
                std::chrono::hours(4),    std::chrono::hours(8),   std::chrono::hours(12),
                std::chrono::hours(24)};
  /// Each pause is this much longer or shorter at random. Unit: percent, 0 to 50. Default: 20.
  std::size_t jitter{20};
  /// A run that lasts longer gets a row, which shows the run, and with which the run goes on when
  /// the lanes of its worker change. Default: 1 s.
  std::chrono::milliseconds row_after{std::chrono::seconds(1)};
  /// How often the worker says that its runs with a row go on. If it misses that three times, the
  /// runs count as failed, and the tasks run again elsewhere after the next of their delays.
  /// Default: 10 s.
  std::chrono::milliseconds heartbeat{std::chrono::seconds(10)};
  /// A larger result of a task is not kept, and a warning says so. Unit: bytes. Default: 64 KiB.
  std::size_t result_bytes{std::size_t{64} << 10U};
  /// How long a task whose type has no handler here waits before it is looked at again. Default:
  /// 30 s.
  std::chrono::milliseconds unknown_type_pause{std::chrono::seconds(30)};
  /// Schedules of any queue, which are written to the store when the worker starts. Schedules with
  /// other names stay. A worker enqueues the tasks of all schedules of its own queues, and of the
  /// queues of these schedules. Default: none.
  std::vector<Schedule> schedules{};
};

class Worker {
 public:
  /// Validates the options. Opens nothing, starts nothing.
  [[nodiscard]] static Result<std::unique_ptr<Worker>> create(WorkerOptions options,
                                                              Handlers handlers);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  Worker(Worker&&) = delete;
  Worker& operator=(Worker&&) = delete;
  /// Stops the worker at once; tasks that were running run again.
  ~Worker();

  /// Returns when the worker takes tasks, or when other workers have all lanes. A second call does
  /// nothing.
  [[nodiscard]] Status start();
  void request_stop() noexcept;
  /// Takes no more tasks and waits at most `grace` for those that run. Tasks that still run then
  /// are told to stop and run again, with no attempt counted.
  StopReport stop(std::chrono::milliseconds grace);

  [[nodiscard]] RelayReport report() const;

 private:
  Worker(std::unique_ptr<task::RunTracker> tracker, std::unique_ptr<Relay> relay,
         std::unique_ptr<task::Ticker> ticker, const RelayOptions& history);
  // The relay ends first: its sinks leave their runs to the tracker.
  const std::unique_ptr<task::RunTracker> tracker_;
  const std::unique_ptr<Relay> relay_;
  const std::unique_ptr<task::Ticker> ticker_;
  const std::unique_ptr<history::HistoryJob> history_;  ///< It reads the report of this worker.
};

}  // namespace outbox
