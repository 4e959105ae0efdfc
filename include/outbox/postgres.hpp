// outbox/postgres.hpp: enqueueing events in a PostgreSQL transaction.
//
//   PGconn* connection = ...;                // yours; `outbox migrate` has made the schema
//   outbox::postgres::Transaction tx(connection);   // BEGIN
//   ... UPDATE orders ... on connection ...
//   tx.enqueue({.aggregate_type = "order", .aggregate_id = "42", .event_type = "OrderPlaced",
//               .payload = R"({"total": 12.5})"});
//   tx.commit();                             // the event exists if and only if this succeeds
//
// A Transaction writes its events as its last statement, in one round trip with COMMIT. That also
// keeps the order of a key, because by then the transaction has changed, and so locked, the
// aggregate. In a transaction that you began yourself, call outbox::postgres::enqueue(connection,
// event); change (or lock) the aggregate first, then enqueue. A connection outside a transaction is
// refused.
//
// with_transaction() does all of that, and begins again when another transaction was in the way (a
// serialization failure, a deadlock):
//
//   using outbox::postgres::Transaction;
//   const auto order = outbox::postgres::with_transaction(connection, [&](Transaction& tx) {
//     ... UPDATE stock ..., each result through outbox::postgres::check() ...
//     tx.enqueue(...);
//     return ...;     // COMMIT follows; an exception rolls back
//   });
//
// In a Transaction the events are in memory only until commit(), so ROLLBACK TO SAVEPOINT does not
// take back what was enqueued since the savepoint. With savepoints, flush() before SAVEPOINT and
// before ROLLBACK TO, or enqueue on the connection.
//
// Threads: Transaction: One thread at a time, the thread that uses its connection.
// Lifetime: the connection must outlive the Transaction. Statements are prepared once per
//           connection and forgotten when it is reset or finished; behind a pooler that shares
//           connections none are.
// Errors: everything here throws outbox::Exception, because a lost event must abort the business
//         transaction. After invalid_argument or too_large with an empty Error::origin nothing was
//         sent and the transaction is still usable; otherwise it is lost, and Remedy says what to
//         redo. commit() with Effect::unknown: the connection broke while COMMIT was under way;
//         with_transaction() then throws InDoubt.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/payload.hpp>
#include <outbox/retry.hpp>
#include <outbox/task.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

struct pg_conn;
typedef struct pg_conn PGconn;  // as in libpq-fe.h
struct pg_result;
typedef struct pg_result PGresult;

namespace outbox::postgres {

enum class Isolation { database_default, read_committed, repeatable_read, serializable };

struct Options {
  /// Schema of the outbox tables. Default: outbox.
  std::string schema{"outbox"};
  /// Events are checked against these limits before anything is sent.
  EventLimits limits{};
};

struct TransactionOptions {
  /// Default: the isolation level of the database.
  Isolation isolation{Isolation::database_default};
  RetryOptions retry{};
  Options outbox{};
  /// The server ends the transaction, and the connection, when it waits for its next statement for
  /// longer than this, unless the server has a limit of its own. Default: none.
  std::optional<std::chrono::milliseconds> idle_limit{};
};

class Transaction;

namespace detail {

void run_transaction(PGconn* connection, const std::function<void(Transaction&)>& body,
                     const TransactionOptions& options);

}  // namespace detail

/// A transaction on a connection of yours. Statements on that connection belong to it until
/// commit(). Events are not part of a savepoint until they are written (see above).
class Transaction {
 public:
  /// Begins the transaction. Throws if BEGIN fails, if the connection is not idle (a transaction is
  /// open, or a command is under way), or if the name of the schema is not valid.
  explicit Transaction(PGconn* connection, const Options& options = {},
                       Isolation isolation = Isolation::database_default);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  /// Rolls back what was not committed.
  ~Transaction();

  [[nodiscard]] PGconn* connection() const noexcept;
  /// The id of the transaction (xid8) if with_transaction() began it, else empty.
  [[nodiscard]] std::string_view id() const noexcept;

  /// Returns the id of the event, which commit() or flush() will write.
  EventId enqueue(const Event& event) &;
  /// Takes all events or none; all are checked before the first is taken. Returns their ids in the
  /// same order.
  std::vector<EventId> enqueue(std::span<const Event> events) &;
  /// Takes the task and returns its id. A task with a unique key is written at once, after a
  /// flush(). If another task has that key already, Task::on_conflict decides; by default the id of
  /// that task is returned.
  EventId enqueue(Task task) &;
  /// Takes an event or a task that is a type of yours (outbox/payload.hpp).
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
  /// Waits for another transaction that has received the message and is not committed yet.
  [[nodiscard]] bool receive(std::string_view consumer, std::string_view message_id) &;

  /// Events and tasks that are enqueued from now on get those of these headers that they do not
  /// have themselves, such as the correlation_id of what is being handled.
  void inherit(std::vector<Header> headers) &;

  /// Writes now what was enqueued so far, in one round trip: before a SAVEPOINT, so that rolling
  /// back to it leaves these events, and after what belongs to it, so that rolling back takes those
  /// with it. Throws as enqueue does; what was not written stays for the next flush() or commit().
  void flush();
  /// Writes the events and commits. Throws when it fails. After invalid_argument with an empty
  /// Error::origin (a command under way, pipeline mode, the client encoding) nothing was sent and
  /// the transaction is still usable; otherwise, also when a deferred constraint fails,
  /// Effect::none says that nothing happened and the transaction is rolled back.
  void commit();
  /// Ends pipeline mode if it is on, and rolls back. When that fails the connection is shut down,
  /// which rolls back as well.
  void rollback() noexcept;

 private:
  friend void detail::run_transaction(PGconn* connection,
                                      const std::function<void(Transaction&)>& body,
                                      const TransactionOptions& options);
  struct State;
  explicit Transaction(std::unique_ptr<State> state);
  [[nodiscard]] bool is_open() const noexcept;

  std::unique_ptr<State> state_;
};

/// Thrown by with_transaction(): the connection was lost while COMMIT was under way. The function
/// ran to its end and was not called again. Whether its effect is there: ask find_fate(), on a new
/// connection.
class InDoubt final : public Exception {
 public:
  /// An event that the transaction wrote, by which it is known, in the outbox of that schema.
  struct Mark {
    std::string schema;
    EventId event;
  };
  InDoubt(Error error, std::string transaction, std::optional<Mark> mark);
  /// The transaction's id (xid8).
  [[nodiscard]] const std::string& transaction() const noexcept { return transaction_; }
  /// Not set if nothing was enqueued with the Transaction.
  [[nodiscard]] const std::optional<Mark>& mark() const noexcept { return mark_; }

 private:
  std::string transaction_;
  std::optional<Mark> mark_;
};

enum class Fate : std::uint8_t {
  committed,
  rolled_back,
  /// The server has not noticed that the connection is lost: ask again, until it has.
  in_progress,
};

/// What has become of the transaction. Ask on a new connection to the same server, or to the server
/// that was promoted in its place; the login needs the role outbox_reader. The event is looked for,
/// too, because a server that crashed may give the id of the transaction to another one. Throws an
/// Exception with not_found if that cannot be told any more, or if nothing was enqueued; then look
/// for rows of yours.
[[nodiscard]] Fate find_fate(PGconn* connection, const InDoubt& doubt);

/// Throws an Exception, with what the server said and what to redo, unless the statement succeeded.
/// Meant for the statements of a with_transaction(). The message begins with `what` ("place the
/// order").
void check(PGconn* connection, const PGresult* result, std::string_view what);

/// Whether this SQLSTATE says that another transaction was in the way, so that the whole
/// transaction must be done again: a serialization failure (40001) or a deadlock (40P01).
[[nodiscard]] bool is_conflict(std::string_view sqlstate) noexcept;

/// Begins a transaction, calls f with it, commits, and returns what f returned. If f throws, the
/// transaction is rolled back and the exception is passed on.
///
/// After a serialization failure or a deadlock, in f or at COMMIT, the transaction is rolled back
/// and f is called again after a pause, at most options.retry.attempts times; then the exception of
/// the last attempt is thrown. So f must have no effect outside of the transaction: it sends no
/// mail, and sets variables instead of adding to them. A conflict in f is recognised by an
/// outbox::Exception, which check() and enqueue() throw, or by an exception of yours if
/// options.retry.is_conflict says so.
///
/// A COMMIT whose outcome is unknown is never repeated: InDoubt is thrown. After every other
/// exception nothing has happened.
///
/// If f calls tx.rollback(), nothing is committed. f reports a failure by an exception; a Result
/// does not compile, since a Result that holds an error would be committed. A connection that is in
/// a transaction is refused, so calls do not nest.
template <std::invocable<Transaction&> F>
std::invoke_result_t<F&, Transaction&> with_transaction(PGconn* connection, F&& f,
                                                        const TransactionOptions& options = {}) {
  using Value = std::invoke_result_t<F&, Transaction&>;
  static_assert(!std::is_reference_v<Value>, "f returns a value, not a reference");
  static_assert(!outbox::detail::is_result<Value>,
                "f throws what fails: a Result with an error would be committed");
  if constexpr (std::is_void_v<Value>) {
    detail::run_transaction(
        connection, [&f](Transaction& tx) { f(tx); }, options);
  } else {
    std::optional<Value> value;
    detail::run_transaction(
        connection, [&f, &value](Transaction& tx) { value.emplace(f(tx)); }, options);
    return std::move(*value);
  }
}

// These functions write at once, in a transaction that you began on this connection. Outside of a
// transaction they throw Errc::not_in_transaction and write nothing.
EventId enqueue(PGconn* connection, const Event& event, const Options& options = {});
std::vector<EventId> enqueue(PGconn* connection, std::span<const Event> events,
                             const Options& options = {});
EventId enqueue(PGconn* connection, Task task, const Options& options = {});
[[nodiscard]] bool receive(PGconn* connection, std::string_view consumer,
                           std::string_view message_id, const Options& options = {});

/// What has become of a task (outbox/task.hpp). Not set if there is no task with this id, if
/// retention has removed it, or if Transaction::commit() has not written it yet. Runs one
/// statement, in the transaction that is open or outside of any.
[[nodiscard]] std::optional<TaskStatus> task_status(PGconn* connection, const EventId& id,
                                                    const Options& options = {});

}  // namespace outbox::postgres

/// What Handlers::on_tx() runs, on a connection of its own for each thread of the worker. It begins
/// anew after a conflict with another transaction, and after a connection is lost: if a COMMIT was
/// under way, the row of the run says whether it has taken effect.
template <>
struct outbox::TaskTransaction<outbox::postgres::Transaction> {
  /// `body` returns whether to commit. Returns false without calling it if an earlier run has
  /// committed.
  static bool run(const TaskRun& run, const std::function<bool(postgres::Transaction&)>& body);
};
