// outbox/sqlite.hpp: enqueueing events in a SQLite transaction.
//
//   sqlite3* db = ...;                       // yours; `outbox migrate` has made the tables
//   outbox::sqlite::Transaction tx(db);      // BEGIN IMMEDIATE
//   ... UPDATE orders ... on db ...
//   tx.enqueue({.aggregate_type = "order", .aggregate_id = "42", .event_type = "OrderPlaced",
//               .payload = R"({"total": 12.5})"});
//   tx.commit();                             // the event exists if and only if this succeeds
//
// In a transaction that you began yourself, call outbox::sqlite::enqueue(db, event). A connection
// outside a transaction is refused; anything else does not compile. Begin with BEGIN IMMEDIATE: a
// deferred transaction that has read before it writes fails when another connection has committed
// in between (Remedy::retry_transaction).
//
// with_transaction() does all of that, and begins again when another connection was in the way
// (SQLITE_BUSY):
//
//   using outbox::sqlite::Transaction;
//   const auto order = outbox::sqlite::with_transaction(db, [&](Transaction& tx) {
//     outbox::sqlite::check(db, sqlite3_exec(db, "UPDATE stock ...", ...), "take from the stock");
//     tx.enqueue(...);
//     return ...;     // COMMIT follows; an exception rolls back
//   });
//
// Threads: Transaction: One thread at a time, the one that uses its connection.
// Lifetime: the connection must outlive the Transaction. Our statements are compiled once per
//           connection and finalized with it: sqlite3_close() works as always.
// Errors: everything here throws outbox::Exception, because a lost event must abort the business
//         transaction. After invalid_argument or too_large with an empty Error::origin the
//         transaction is still usable. After any other error, or an error of commit(), it is not,
//         and Remedy says what to redo.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/payload.hpp>
#include <outbox/retry.hpp>
#include <outbox/task.hpp>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

struct sqlite3;

namespace outbox::sqlite {

struct Options {
  /// Checked before anything is written.
  EventLimits limits{};
};

class Transaction;

namespace detail {

void run_transaction(sqlite3* db, const std::function<void(Transaction&)>& body,
                     const RetryOptions& retry, const Options& options);

}  // namespace detail

/// A write transaction on a connection of yours. Statements on that connection belong to it until
/// commit().
class Transaction {
 public:
  /// Begins with BEGIN IMMEDIATE, which takes the write lock and waits for it at most for the busy
  /// timeout of the connection. Throws if that fails, or if a transaction is open already.
  explicit Transaction(sqlite3* db, const Options& options = {});
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  /// Rolls back what was not committed.
  ~Transaction();

  /// Writes the event and returns its id.
  EventId enqueue(const Event& event) &;
  /// Writes all events or none; all are checked before the first is written. Returns their ids in
  /// the same order.
  std::vector<EventId> enqueue(std::span<const Event> events) &;
  /// Writes the task and returns its id. If another task has its unique key already,
  /// Task::on_conflict decides; by default the id of that task is returned.
  EventId enqueue(Task task) &;
  /// Writes an event or a task that is a type of yours (outbox/payload.hpp).
  template <TypedEvent T>
  EventId enqueue(const T& event, std::string aggregate_id) & {
    return enqueue(to_event(event, std::move(aggregate_id)));
  }
  template <TypedTask T>
  EventId enqueue(const T& task, Task rest = {}) & {
    return enqueue(to_task(task, std::move(rest)));
  }
  /// Called by a consumer or a task's handler in the transaction of its effect. Returns true the
  /// first time that the consumer gets this message, and false if its effect was committed before.
  [[nodiscard]] bool receive(std::string_view consumer, std::string_view message_id) &;

  /// Events and tasks that are enqueued from now on get those of these headers that they do not
  /// have themselves, such as the correlation_id of what is being handled.
  void inherit(std::vector<Header> headers) &;

  /// Throws if it fails. If the error has Effect::none, the transaction was rolled back.
  void commit();
  void rollback() noexcept;

  [[nodiscard]] sqlite3* handle() const noexcept;

 private:
  friend void detail::run_transaction(sqlite3* db, const std::function<void(Transaction&)>& body,
                                      const RetryOptions& retry, const Options& options);
  struct State;
  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] sqlite3* open_handle() const;

  std::unique_ptr<State> state_;
};

/// Throws an Exception, with what SQLite said and what to redo, unless `code` is SQLITE_OK,
/// SQLITE_ROW or SQLITE_DONE. The message begins with `what` ("take from the stock").
void check(sqlite3* db, int code, std::string_view what);

/// Begins a transaction (BEGIN IMMEDIATE), calls f with it, commits, and returns what f returned.
/// If f throws, the transaction is rolled back and the exception is passed on.
///
/// If another connection holds the write lock for longer than the busy timeout (SQLITE_BUSY, at
/// BEGIN, in f or at COMMIT), the transaction is rolled back and f is called again after a pause,
/// at most retry.attempts times; then the exception of the last attempt is thrown. So f must have
/// no effect outside of the transaction: it sends no mail, and sets variables instead of adding to
/// them. A conflict in f is recognised by an outbox::Exception, which check() and enqueue() throw,
/// or by an exception of yours if retry.is_conflict says so.
///
/// After an exception nothing has happened, with one exception: if an outbox::Exception has
/// Effect::unknown, the disk failed during COMMIT. COMMIT is not repeated then; the event shows
/// whether the transaction is there.
///
/// If f calls tx.rollback(), nothing is committed. f reports a failure by an exception; a Result
/// does not compile, since a Result that holds an error would be committed. A connection that is in
/// a transaction is refused, so calls do not nest.
template <std::invocable<Transaction&> F>
std::invoke_result_t<F&, Transaction&> with_transaction(sqlite3* db, F&& f,
                                                        const RetryOptions& retry = {},
                                                        const Options& options = {}) {
  using Value = std::invoke_result_t<F&, Transaction&>;
  static_assert(!std::is_reference_v<Value>, "f returns a value, not a reference");
  static_assert(!outbox::detail::is_result<Value>,
                "f throws what fails: a Result with an error would be committed");
  if constexpr (std::is_void_v<Value>) {
    detail::run_transaction(
        db, [&f](Transaction& tx) { f(tx); }, retry, options);
  } else {
    std::optional<Value> value;
    detail::run_transaction(
        db, [&f, &value](Transaction& tx) { value.emplace(f(tx)); }, retry, options);
    return std::move(*value);
  }
}

// These functions do the same in a transaction that you began on this connection. Outside of a
// transaction they throw Errc::not_in_transaction and write nothing.
EventId enqueue(sqlite3* db, const Event& event, const Options& options = {});
std::vector<EventId> enqueue(sqlite3* db, std::span<const Event> events,
                             const Options& options = {});
EventId enqueue(sqlite3* db, Task task, const Options& options = {});
[[nodiscard]] bool receive(sqlite3* db, std::string_view consumer, std::string_view message_id);

/// What has become of a task (outbox/task.hpp); none: there is none with this id, or retention has
/// removed it. Reads in the transaction that is open on the connection, or in one of its own.
[[nodiscard]] std::optional<TaskStatus> task_status(sqlite3* db, const EventId& id);

}  // namespace outbox::sqlite

/// What Handlers::on_tx() runs, on a connection of its own for each thread of the worker. It begins
/// anew when another connection was in the way.
template <>
struct outbox::TaskTransaction<outbox::sqlite::Transaction> {
  /// `body` returns whether to commit. Returns false without calling it if an earlier run has
  /// committed.
  static bool run(const TaskRun& run, const std::function<bool(sqlite::Transaction&)>& body);
};
